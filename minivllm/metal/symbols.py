"""From an instruction of a compiled kernel to the line it came from, by the tools that come with a compiler."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from minivllm.metal.rewriter import HEADER, SOURCE

# How the runtime passes a line where it would pass an instruction (cpp/runtime.h).
_LINE, _LINE_OF_HEADER = 1 << 31, 1 << 30


@dataclass(frozen=True, slots=True)
class Place:
    """`text` is "source" or "header", or another file; line 0 is unknown."""

    text: str
    line: int

    def __str__(self) -> str:
        return f"{self.text} line {self.line}" if self.line else "an unknown line"


UNKNOWN = Place("", 0)


@lru_cache(maxsize=256)
def place_of(library: Path, instruction: int) -> Place:
    """The innermost line of the learner's own text that the instruction belongs to."""
    if instruction & _LINE:
        return Place(HEADER if instruction & _LINE_OF_HEADER else SOURCE, instruction & (_LINE_OF_HEADER - 1))
    tool = _tool()
    if tool is None or not instruction:
        return UNKNOWN
    frames = _frames(tool, library, instruction)
    return next((place for place in frames if place.text in (SOURCE, HEADER)), frames[0] if frames else UNKNOWN)


def _frames(tool: Sequence[str], library: Path, instruction: int) -> list[Place]:
    try:
        command = [*tool, str(library), hex(instruction)]
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return []
    return [
        Place(os.path.basename(file), int(line))
        for file, line in re.findall(r"([\w./+-]+):(\d+)", done.stdout)
        if int(line)
    ]


@cache
def _tool() -> tuple[str, ...] | None:
    if sys.platform == "darwin":
        atos = shutil.which("atos")
        return (atos, "-i", "-o") if atos else None
    if addr2line := shutil.which("addr2line"):
        return (addr2line, "-i", "-e")
    names = ("llvm-symbolizer", *(f"llvm-symbolizer-{version}" for version in range(30, 12, -1)))
    found = next(filter(None, map(shutil.which, names)), None)
    return (found, "--inlines", "-s", "-e") if found else None
