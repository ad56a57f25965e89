"""One record: a JSON object on one line, with the time and the machine it came from."""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, NoReturn

from labbook import __version__
from labbook.errors import LabbookError

RECORD_VERSION = 1

Record = dict[str, Any]

# JSON allows these inside strings, yet editors and str.splitlines() end a line at each of them.
_LINE_ENDS_IN_STRINGS = {"\u0085": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"}


class RecordError(LabbookError):
    """A value that cannot be a record, or a line that is not one."""


def to_line(record: Record) -> str:
    """The record as one line of strict JSON, without the newline.

    Raises RecordError, naming the field, for NaN, infinities, keys that are not strings, and what JSON lacks.
    """
    if not isinstance(record, dict):
        raise RecordError(f"a record is a JSON object, not {type(record).__name__}: pass a dict")
    _refuse_what_json_lacks(record, "record")
    line = json.dumps(record, ensure_ascii=False, allow_nan=False)
    for character, escape in _LINE_ENDS_IN_STRINGS.items():
        line = line.replace(character, escape)
    if _has_lone_surrogates(line):
        return json.dumps(record, ensure_ascii=True, allow_nan=False)
    return line


def from_line(line: str) -> Record:
    """The record on a line. Raises RecordError when the line is not one strict JSON object."""
    try:
        value = json.loads(line, parse_constant=_refuse_constant, parse_float=_finite_float)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"not JSON: {error}") from None
    if not isinstance(value, dict):
        raise RecordError(f"a JSON {type(value).__name__}, where a record is a JSON object")
    return value


def now_iso() -> str:
    """The current time in UTC, to the second, as ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def environment_stamp() -> Record:
    """The machine that measured. It names no host, user or path."""
    cores = os.cpu_count()
    return {
        "tool": "labbook",
        "tool_version": __version__,
        "python": platform.python_version(),
        "system": platform.system(),
        "machine": platform.machine(),
        "cpu_cores": cores,
        "device": f"{platform.system()} {platform.machine()}, {cores} CPU cores",
    }


def _refuse_constant(name: str) -> NoReturn:
    raise RecordError(f"{name} is not JSON: write null and say why the number is missing")


def _finite_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise RecordError(f"{text} is too large for a number here")
    return value


def _refuse_what_json_lacks(value: object, where: str) -> None:
    if value is None or isinstance(value, str | bool | int):
        return
    if isinstance(value, float):
        if not math.isfinite(value):
            raise RecordError(f"{where} is {value}, which JSON lacks: store None and say why the number is missing")
        return
    for name, child in _children(value, where):
        _refuse_what_json_lacks(child, name)


def _children(value: object, where: str) -> Iterable[tuple[str, object]]:
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise RecordError(f"{where} has the key {key!r}: the keys of a JSON object are strings")
        return [(f"{where}.{key}", child) for key, child in value.items()]
    if isinstance(value, list | tuple):
        return [(f"{where}[{index}]", child) for index, child in enumerate(value)]
    raise RecordError(f"{where} is a {type(value).__name__}, which JSON lacks: convert it to a number, string or list")


def _has_lone_surrogates(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False
