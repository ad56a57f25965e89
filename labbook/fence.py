"""Fenced code blocks of Markdown, as far as a lab notebook needs them.

The rules: https://spec.commonmark.org/0.31.2/#fenced-code-blocks
"""

from __future__ import annotations

import re

# Three or more of one character, indented as far as a list may ask; no back-tick may follow back-ticks on the line.
_OPENS = re.compile(rb"[ \t]*(?:(`{3,})[^`]*|(~{3,}).*)", re.DOTALL)
_CLOSES = re.compile(rb"[ \t]*(`{3,}|~{3,})[ \t]*")


class FenceReader:
    """Feed it the lines in order; `opened_at` is the number of the line whose fence is still open, else None."""

    def __init__(self) -> None:
        self.opened_at: int | None = None
        self._fence = b""

    def feed(self, number: int, line: bytes) -> None:
        if self.opened_at is None:
            opens = _OPENS.fullmatch(line)
            if opens:
                self.opened_at, self._fence = number, opens[1] or opens[2]
            return
        closes = _CLOSES.fullmatch(line)
        if closes and closes[1].startswith(self._fence):
            self.opened_at = None
