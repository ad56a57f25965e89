"""The pieces of a self-contained HTML page: everything escaped, light and dark, and no request to any host."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from html import escape

from labbook.output import printable

# `default-src 'none'` makes a browser refuse whatever an overlooked hole could ask it to load or run.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_STYLE = """
:root { color-scheme: light dark; --ink: #1a1a1a; --ground: #ffffff; --line: #767676; --soft: #f2f2f2; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8e8e8; --ground: #16181b; --line: #8a8a8a; --soft: #24272b; }
}
body { color: var(--ink); background: var(--ground); font: 16px/1.5 system-ui, sans-serif; max-width: 72rem;
  margin: 0 auto; padding: 1rem; }
a { color: inherit; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: 0.5rem 0; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: 0.25rem 0; }
th, td { border: 1px solid var(--line); padding: 0.2rem 0.5rem; text-align: left; vertical-align: top; }
thead th { background: var(--soft); }
figure { margin: 1rem 0; }
img { box-sizing: border-box; max-width: 100%; height: auto; background: #ffffff; padding: 0.25rem; }
pre { overflow-x: auto; background: var(--soft); padding: 0.75rem; font-size: 0.85rem; }
:focus-visible { outline: 3px solid; outline-offset: 2px; }
@media print { details { display: none; } }
"""


def page(title: str, parts: Iterable[str]) -> str:
    """A whole document. `parts` are HTML already; everything else here takes text and escapes it."""
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{text(title)}</title>",
            f"<style>{_STYLE}</style>",
            "</head>",
            "<body>",
            "<main>",
            f"<h1>{text(title)}</h1>",
            *parts,
            "</main>",
            "</body>",
            "</html>",
            "",
        ]
    )


def text(value: object) -> str:
    """A value as HTML text: control characters are shown, not obeyed."""
    return escape(printable(str(value)))


def paragraph(value: str) -> str:
    return f"<p>{text(value)}</p>"


def heading(level: int, value: str, anchor: str) -> str:
    return f'<h{level} id="{escape(anchor)}">{text(value)}</h{level}>'


def table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[object]], links: Sequence[str] = ()) -> str:
    """A table whose first cell in each row is the row's heading; `links` are the anchors that these lead to."""
    head = "".join(f'<th scope="col">{text(column)}</th>' for column in columns)
    lines = [_row(cells, links[place] if links else None) for place, cells in enumerate(rows)]
    named = text(caption)
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{named}"><table><caption>{named}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )


def picture(png: bytes, alternative: str, caption: str) -> str:
    """A figure that is part of the page. Its alternative text stands beneath it too, for everybody."""
    data = base64.b64encode(png).decode("ascii")
    return (
        f'<figure><img src="data:image/png;base64,{data}" alt="{text(alternative)}">'
        f"<figcaption>{text(alternative)}<br>{text(caption)}</figcaption></figure>"
    )


def preformatted(value: str) -> str:
    return f'<pre tabindex="0">{chr(10).join(map(text, value.split(chr(10))))}</pre>'


def folded(summary: str, content: str) -> str:
    return f"<details><summary>{text(summary)}</summary>{content}</details>"


def _row(cells: Sequence[object], anchor: str | None) -> str:
    first, *others = (text(cell) for cell in cells)
    if anchor is not None:
        first = f'<a href="#{escape(anchor)}">{first}</a>'
    return f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in others)}</tr>'
