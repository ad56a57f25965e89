"""The text of a .metal file, cut into its sections.

A section begins with a line `//// name` and ends where the next one begins. Text before the first is for readers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType


def cut(text: str) -> Mapping[str, str]:
    """Sections by name, without their first lines."""
    _, *parts = re.split(r"^//// (.+)\n", text, flags=re.MULTILINE)
    return MappingProxyType(dict(zip(parts[::2], parts[1::2], strict=True)))


@cache
def sections(file_name: str) -> Mapping[str, str]:
    """Sections of a file of this package: `sections("paged_attention.metal")["body: decode"]`."""
    return cut(files("minivllm.metal").joinpath(file_name).read_text(encoding="utf-8"))
