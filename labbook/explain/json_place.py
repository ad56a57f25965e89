"""Places in JSON: the path at an offset of a JSON text, and the first difference in order between two JSON values."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_DECODER = json.JSONDecoder()
_BLANKS = re.compile(r"[\s,:]*")


@dataclass(frozen=True)
class Difference:
    """`kind` is `key_order`, `list_order`, `value` or `members`, at `path` (below where the search began)."""

    kind: str
    path: str


def value_at(text: str, start: int) -> tuple[Any, int] | None:
    """The JSON value that begins at `start`, and where it ends; None when none begins there."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return value, end


def path_at(text: str, start: int, offset: int) -> str:
    """Path of the innermost value of the JSON text at `start` that covers `offset`; its container on a key or comma."""
    for step, begin, end in _members(text, start):
        if begin <= offset < end:
            return step + path_at(text, begin, offset)
    return ""


def first_difference(a: Any, b: Any) -> Difference | None:
    """What differs first when both values are written in the order in which they were given."""
    if type(a) is not type(b):
        return Difference("value", "")
    if isinstance(a, dict):
        return _of_objects(a, b)
    if isinstance(a, list):
        return _of_lists(a, b)
    return None if a == b else Difference("value", "")


def canonical(value: Any) -> str:
    """The same text for values that differ in nothing but the order of keys."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _of_objects(a: dict[str, Any], b: dict[str, Any]) -> Difference | None:
    for name, other in zip(a, b, strict=False):
        if name != other:
            return Difference("key_order" if set(a) == set(b) else "members", "")
        if below := first_difference(a[name], b[name]):
            return Difference(below.kind, f".{name}{below.path}")
    return None if len(a) == len(b) else Difference("members", "")


def _of_lists(a: list[Any], b: list[Any]) -> Difference | None:
    for index, (one, other) in enumerate(zip(a, b, strict=False)):
        below = first_difference(one, other)
        if below is None:
            continue
        is_other_item = canonical(one) != canonical(other)
        if is_other_item and Counter(map(canonical, a)) == Counter(map(canonical, b)):
            return Difference("list_order", "")
        return Difference(below.kind, f"[{index}]{below.path}")
    return None if len(a) == len(b) else Difference("members", "")


def _members(text: str, start: int) -> Iterator[tuple[str, int, int]]:
    """Path step, begin and end of every value directly inside the object or list at `start`."""
    opening, place, index = text[start : start + 1], start + 1, 0
    if opening not in ("{", "["):
        return
    while True:
        place = _skip(text, place)
        if text[place : place + 1] in ("}", "]", ""):
            return
        step = f"[{index}]"
        if opening == "{":
            key = value_at(text, place)
            if key is None:
                return
            step, place = f".{key[0]}", _skip(text, key[1])
        value = value_at(text, place)
        if value is None:
            return
        yield step, place, value[1]
        place, index = value[1], index + 1


def _skip(text: str, place: int) -> int:
    blanks = _BLANKS.match(text, place)
    return blanks.end() if blanks else place
