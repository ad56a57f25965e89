"""Texts that say the same in another form: line endings, blanks, Unicode normalization."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

from labbook.explain.divergence import Texts
from labbook.sequences import shared_length

# After this many equal characters in the common form, what differs later has causes of its own.
_ALIKE_CHARS = 32


def _one_line_ending(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _composed(text: str) -> str:
    return unicodedata.normalize("NFC", _one_line_ending(text))


def _compatible(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


def _without_blanks(text: str) -> str:
    return "".join(text.split())


_FORMS: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("line_endings", _one_line_ending),
    ("unicode_form", _composed),
    ("whitespace", _without_blanks),
    ("unicode_form", _compatible),
)


def find_form(texts: Texts) -> tuple[str, str] | None:
    """Cause and confidence when the two texts agree, from their first difference on, in a common form."""
    begin = _cluster_start(texts.a, texts.offset)
    tail_a, tail_b = texts.a[begin:], texts.b[begin:]
    for cause, common_form in _FORMS:
        form_a, form_b = common_form(tail_a), common_form(tail_b)
        if form_a == form_b:
            return cause, "certain"
        if shared_length(form_a, form_b) >= _ALIKE_CHARS + texts.offset - begin:
            return cause, "likely"
    return None


def _cluster_start(text: str, offset: int) -> int:
    """Where the letter begins whose marks may differ at `offset`."""
    start = offset
    while start > 0 and start < len(text) and unicodedata.combining(text[start]):
        start -= 1
    return start
