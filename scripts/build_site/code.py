"""Code with the names of its parts, for the style sheet to colour."""

from __future__ import annotations

from html import escape

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.util import ClassNotFound

_SPANS = HtmlFormatter(nowrap=True)


def highlighted(code: str, language: str) -> str:
    """A `code` element. A language that nobody knows is shown without colours."""
    try:
        lexer = get_lexer_by_name(language, stripnl=False)
    except ClassNotFound:
        return f"<code>{escape(code)}</code>"
    return f"<code>{highlight(code, lexer, _SPANS).rstrip()}</code>"


def numbered_lines(text: str, file_name: str) -> list[str]:
    """The lines of a file as HTML, by the language that its name says."""
    try:
        lexer = get_lexer_for_filename(file_name, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return [escape(line) for line in text.split("\n")]
    return str(highlight(text, lexer, _SPANS)).rstrip("\n").split("\n")
