"""Standard output that never fails over a character the terminal cannot show, and obeys none of a stranger's."""

from __future__ import annotations

import io
import sys
import unicodedata

_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def show_everything() -> None:
    """Let stdout and stderr escape what their encoding lacks: a label may hold any character."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def printable(text: str) -> str:
    """One line to show: what would move the cursor, colour or reverse the text is escaped, as JSON would do it."""
    if text.isprintable():
        return text
    return "".join(map(_shown, text))


def counted(count: int, noun: str) -> str:
    """As in "1 record" and "2 records"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _shown(character: str) -> str:
    # Spaces of every width count as not printable, and harm nothing.
    if character.isprintable() or unicodedata.category(character) == "Zs":
        return character
    code = ord(character)
    return _SHORT.get(character) or (f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}")
