"""Standard output that never fails over a character the terminal cannot show."""

from __future__ import annotations

import io
import sys


def show_everything() -> None:
    """Let stdout and stderr escape what their encoding lacks: a label may hold any character."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
