"""The Markdown of one page as HTML: what nbconvert reads as Markdown and formulas, in elements of ours."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from html import escape, unescape
from typing import Any

from mistune import HTMLRenderer
from nbconvert.filters.markdown_mistune import MarkdownWithMath

from scripts.build_site.code import highlighted
from scripts.build_site.formulas import mathml

Address = Callable[[str], str]


@dataclass(frozen=True)
class Heading:
    level: int
    anchor: str
    html: str


class Prose:
    """One for each page: anchors are unique in it, and `headings` are those that it has turned into HTML."""

    def __init__(self, link: Address, picture: Address) -> None:
        self._renderer = _Renderer(link, picture)

    @property
    def headings(self) -> list[Heading]:
        return self._renderer.headings

    def html(self, markdown: str) -> str:
        """Raises SiteError for a link, a picture or a formula that cannot be shown."""
        return str(MarkdownWithMath(renderer=self._renderer).render(markdown))

    def inline(self, markdown: str) -> str:
        """A single paragraph, without its element."""
        return self.html(markdown).strip().removeprefix("<p>").removesuffix("</p>")


class _Renderer(HTMLRenderer):
    """`escape=False`: HTML in Markdown stays, as in Jupyter; the finished page is checked for what it loads."""

    def __init__(self, link: Address, picture: Address) -> None:
        super().__init__(escape=False)
        self._address, self._picture = link, picture
        self.headings: list[Heading] = []

    def heading(self, text: str, level: int, **attrs: Any) -> str:
        anchor = self._new_anchor(unescape(re.sub(r"<[^>]+>", "", text)))
        self.headings.append(Heading(level, anchor, text))
        if level == 1:
            text = re.sub(r"^(\d\d) ", r'<span class="number">\1</span> ', text)
        return f'<h{level} id="{escape(anchor)}">{text}</h{level}>\n'

    def _new_anchor(self, text: str) -> str:
        """As JupyterLab makes them, so that one link works in both: spaces become hyphens."""
        first, taken = text.replace(" ", "-"), {heading.anchor for heading in self.headings}
        names = (first, *(f"{first}-{number}" for number in range(2, len(taken) + 2)))
        return next(name for name in names if name not in taken)

    def link(self, text: str, url: str, title: str | None = None) -> str:
        named = f' title="{escape(title)}"' if title else ""
        return f'<a href="{escape(self._address(unescape(url)))}"{named}>{text}</a>'

    def image(self, text: str, url: str, title: str | None = None) -> str:
        alt = escape(unescape(re.sub(r"<[^>]+>", "", text)))
        return f'<img src="{self._picture(unescape(url))}" alt="{alt}">'

    def block_code(self, code: str, info: str | None = None) -> str:
        language = info.split()[0] if info and info.split() else "text"
        return f"<pre {_box('Example')}>{highlighted(code, language)}</pre>\n"

    def table(self, text: str) -> str:
        return f'<div class="wide" {_box("Table")}><table>{text}</table></div>\n'

    def table_cell(self, text: str, align: str | None = None, head: bool = False) -> str:
        aligned = f' class="{align}"' if align else ""
        return f'<th scope="col"{aligned}>{text}</th>' if head else f"<td{aligned}>{text}</td>"

    def inline_math(self, latex: str) -> str:
        return mathml(latex, "inline")

    def block_math(self, latex: str) -> str:
        return f'<span class="formula" {_box("Formula")}>{mathml(latex, "block")}</span>'

    def latex_environment(self, name: str, body: str) -> str:
        return self.block_math(f"\\begin{{{name}}}{body}\\end{{{name}}}")


def _box(name: str) -> str:
    """What may be wider than the page scrolls by itself, and has to be reached by the keyboard for that."""
    return f'data-scrolls tabindex="0" role="group" aria-label="{name}"'
