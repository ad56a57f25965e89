"""The rules of `lint`. Each looks at one rendered body, and keeps quiet about clean ones: documents may hold dates."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from labbook.explain.corpus import USER_NAMED
from labbook.explain.regions import Regions
from labbook.explain.rendered import Rendered
from labbook.explain.stamp_forms import EVENT
from labbook.explain.stamps import stamps_in

# Something that changes does harm when this much text stands behind it, and is the writer's own when it stands near the
# head of its message: what documents say is not inserted by a program.
_BEHIND_CHARS = 240
_HEAD_CHARS = 400
_FIRST_CHARS, _BEFORE_CHARS = 24, 48

_ANNOUNCES = {
    "clock": r"\b(?:now|current|time|clock|timestamp|generated|sent|it is|it's|as of|Uhrzeit|jetzt|es ist|"
    r"aktuell\w*)\b|_at\b",
    "date": r"\b(?:today|current date|date is|date[:=]|now|heute|datum|aktuell\w*)",
    "uuid": r"request|session|trace|conversation|correlation|thread|run|nonce|user|tenant|id\b",
    "counter": r"request|session|attempt|retry|turn|seq|conversation|call|anfrage|versuch|sitzung|message|iteration",
}


@dataclass(frozen=True)
class Seen:
    """A place in the rendered text; `field` replaces what stands there."""

    level: str
    cause: str
    offset: int
    text: str
    why: str
    field: str | None = None


Rule = Callable[[Rendered, Regions], Iterator[Seen]]


def all_rules() -> tuple[Rule, ...]:
    return (
        _stamps,
        _user_first,
        _line_endings,
        _unicode_form,
        _invisible,
        _trailing_blanks,
        _blanks_in_lines,
        _unsorted_keys,
    )


def _stamps(rendered: Rendered, known: Regions) -> Iterator[Seen]:
    for begin, end in _heads(rendered, known):
        head = rendered.text[begin:end]
        for cause, at, stamp in stamps_in(head):
            before = head[max(0, at - _BEFORE_CHARS) : at]
            is_announced = re.search(_ANNOUNCES[cause], before, re.IGNORECASE) and not EVENT.search(before)
            is_first = cause in ("clock", "uuid") and at < _FIRST_CHARS  # needs no announcement
            if (is_announced or is_first) and _much_behind(rendered, known, begin + at):
                yield Seen("warning", cause, begin + at, stamp, f"{stamp!r} changes, and what stands behind it is lost")


def _heads(rendered: Rendered, known: Regions) -> Iterator[tuple[int, int]]:
    """The first characters of every field, and the template's text between the fields, which may hold a date, too."""
    at = 0
    for region in known.listed:
        yield at, region.start
        yield region.start, min(region.end, region.start + _HEAD_CHARS)
        at = region.end


def _user_first(rendered: Rendered, known: Regions) -> Iterator[Seen]:
    for found in USER_NAMED.finditer(rendered.text):
        region = known.covering(found.start())
        is_head = region is not None and found.start() - region.start < _HEAD_CHARS
        if is_head and _much_behind(rendered, known, found.start()):
            why = "what belongs to one user stands before text that others could share"
            yield Seen("warning", "user_before_corpus", found.start(), found.group(), why)


def _line_endings(rendered: Rendered, known: Regions) -> Iterator[Seen]:
    for found in re.finditer(r"\r\n?", rendered.text):
        yield Seen("warning", "line_endings", found.start(), found.group(), "the text holds CRLF or CR line endings")


def _unicode_form(rendered: Rendered, known: Regions) -> Iterator[Seen]:
    for region in known.listed:
        text = rendered.text[region.start : region.end]
        if not unicodedata.is_normalized("NFC", text):
            at = next((at for at, sign in enumerate(text) if unicodedata.combining(sign)), 0)
            letter = max(0, at - 1)
            shown = text[letter : at + 1]
            yield Seen("warning", "unicode_form", region.start + letter, shown, "the text is not in the form NFC")


def _invisible(rendered: Rendered, known: Regions) -> Iterator[Seen]:
    for found in re.finditer("[\ufeff\u200b]", rendered.text):
        why = f"an invisible character, U+{ord(found.group()):04X}"
        yield Seen("warning", "whitespace", found.start(), found.group(), why)


def _trailing_blanks(rendered: Rendered, known: Regions) -> Iterator[Seen]:
    for leaf in rendered.body.leaves:
        region = known.of(leaf.path)
        blanks = leaf.text[len(leaf.text.rstrip()) :]
        if region and blanks not in ("", "\n") and rendered.text[: region.end].endswith(blanks):
            yield Seen(
                "warning", "whitespace", region.end - len(blanks), blanks, f"the field ends in blanks: {blanks!r}"
            )


def _blanks_in_lines(rendered: Rendered, known: Regions) -> Iterator[Seen]:
    """Only a hint: two blanks at the end of a line are a line break in Markdown."""
    for found in re.finditer(r"[ \t]+(?=\r?\n)", rendered.text):
        region = known.covering(found.start())
        if region and found.end() < region.end:  # at the end of a field it is a warning
            yield Seen("hint", "whitespace", found.start(), found.group(), "a line ends in blanks, which nobody sees")


def _unsorted_keys(rendered: Rendered, known: Regions) -> Iterator[Seen]:
    for index, tool in enumerate(rendered.body.tools):
        if _first_unsorted(tool) is not None:
            path = f"tools[{index}]{_first_unsorted(tool)}"
            region = known.of(f"tools[{index}]") or known.of("tools")
            why = "the keys are in no sorted order: harmless as long as every request has them in this one"
            yield Seen("hint", "key_order", region.start if region else 0, "", why, path)
            return


def _first_unsorted(value: Any) -> str | None:
    """Path of the first `properties` of a schema whose keys are not sorted; other objects have a customary order."""
    if isinstance(value, dict):
        properties = value.get("properties")
        if isinstance(properties, dict) and list(properties) != sorted(properties):
            return ".properties"
        paths = ((f".{name}", below) for name, below in value.items())
    elif isinstance(value, list):
        paths = ((f"[{index}]", below) for index, below in enumerate(value))
    else:
        return None
    return next((step + found for step, below in paths if (found := _first_unsorted(below)) is not None), None)


def _much_behind(rendered: Rendered, known: Regions, offset: int) -> bool:
    """What follows in the same field, and in the messages up to the last one, which is expected to change."""
    region = known.covering(offset)
    last = len(rendered.body.messages) - 1
    is_last = region is not None and region.message == last
    ends = [one.end for one in known.listed if one.message is None or one.message < last]
    end = region.end if region and is_last else max(ends, default=len(rendered.text))
    return end - offset >= _BEHIND_CHARS
