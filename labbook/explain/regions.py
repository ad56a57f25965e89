"""Which field of the body a place in the rendered text comes from.

A template may put what it likes between the fields, trim them, or leave some out. So the texts of the body are looked
for in the rendered text, one message after the other; what no field claims is text of the template.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from labbook.explain.body import Body
from labbook.explain.json_place import path_at, value_at
from labbook.explain.rendered import Rendered

# Between a role and the text it announces stand a few signs of the template, rarely more.
_ROLE_GAP_CHARS = 40


@dataclass(frozen=True)
class Region:
    """`text[start:end]` of a rendered body is the field at `path`; `message` is None outside the messages."""

    start: int
    end: int
    path: str
    message: int | None = None
    is_json: bool = False

    def field_at(self, rendered: Rendered, offset: int) -> str:
        """The path, down to the value at `offset` when the field is rendered as JSON."""
        return self.path + (path_at(rendered.text, self.start, offset) if self.is_json else "")


@dataclass(frozen=True)
class Regions:
    """The fields of one rendered body, in the order of its text."""

    listed: tuple[Region, ...]

    def covering(self, offset: int) -> Region | None:
        at = bisect_right(self.listed, offset, key=lambda region: region.start) - 1
        return self.listed[at] if at >= 0 and offset < self.listed[at].end else None

    def ending(self, offset: int) -> Region | None:
        """The last field that ends at `offset`, or only blanks before it."""
        at = bisect_right(self.listed, offset, key=lambda region: region.start) - 1
        return self.listed[at] if at >= 0 and self.listed[at].end == offset else None

    def of(self, path: str) -> Region | None:
        return next((region for region in self.listed if region.path == path), None)

    def between(self, offset: int) -> str:
        """Names a place that belongs to no field, by the fields around it."""
        at = bisect_right(self.listed, offset, key=lambda region: region.start)
        if at < len(self.listed):
            return f"template text before {self.listed[at].path}"
        return f"template text after {self.listed[-1].path}" if self.listed else "template text"


def regions(rendered: Rendered) -> Regions:
    body, text = rendered.body, rendered.text
    if body.prompt_ids is not None:
        return Regions((Region(0, len(text), "prompt"),))
    found = list(_message_regions(body, text)) if body.is_chat else list(_prompt_region(body, text))
    taken = [(region.start, region.end) for region in found]
    found += _tool_regions(body, text, taken)
    return Regions(tuple(sorted(found, key=lambda region: region.start)))


def _prompt_region(body: Body, text: str) -> Iterator[Region]:
    place = _find(text, body.prompt_text, 0)
    if place is not None:
        yield Region(*place, "prompt")


def _message_regions(body: Body, text: str) -> Iterator[Region]:
    cursor = 0
    for index in range(len(body.messages)):
        leaves = [leaf for leaf in body.leaves if leaf.message == index and leaf.text.strip()]
        begin = cursor
        for leaf in leaves:
            place = _announced(text, body.role(index) or "", leaf.text, begin) or _find(text, leaf.text, begin)
            if place is None:
                continue
            yield Region(*place, leaf.path, index)
            cursor = max(cursor, place[1])
            begin = place[1] if ".content[" in leaf.path else begin


def _announced(text: str, role: str, wanted: str, begin: int) -> tuple[int, int] | None:
    """Where the text stands close behind its role: a short text also occurs by chance."""
    place = _find(text, wanted, begin)
    while place is not None:
        if role and role in text[max(begin, place[0] - len(role) - _ROLE_GAP_CHARS) : place[0]]:
            return place
        place = _find(text, wanted, place[0] + 1)
    return None


def _find(text: str, wanted: str, begin: int) -> tuple[int, int] | None:
    """Where `wanted` stands in the text, as it is, trimmed, or in the form to which a tokenizer normalizes it."""
    for form in (wanted, wanted.strip(), unicodedata.normalize("NFC", wanted).strip()):
        at = text.find(form, begin) if form else -1
        if at >= 0:
            return at, at + len(form)
    return None


def _tool_regions(body: Body, text: str, taken: list[tuple[int, int]]) -> Iterator[Region]:
    """Tools as JSON, the whole list or one by one, with or without the wrapper around the function."""
    if not body.tools:
        return
    known: list[tuple[object, str]] = [(body.tools, "tools")]
    for index, tool in enumerate(body.tools):
        known.append((tool, f"tools[{index}]"))
        if isinstance(tool, dict) and isinstance(tool.get("function"), dict):
            known.append((tool["function"], f"tools[{index}].function"))
    place = 0
    while known:
        starts = [at for at in (text.find("{", place), text.find("[", place)) if at >= 0]
        if not starts:
            return
        place = min(starts)
        inside = next((end for start, end in taken if start <= place < end), None)
        value = None if inside else value_at(text, place)
        path = next((path for known_value, path in known if value and known_value == value[0]), None)
        if value and path:
            yield Region(place, value[1], path, is_json=True)
            known = [] if path == "tools" else [one for one in known if not one[1].startswith(path.split(".")[0])]
            place = value[1]
        else:
            place = inside or place + 1
