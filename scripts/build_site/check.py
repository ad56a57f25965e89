"""What finished pages must be, whatever made them: whole, complete in themselves, and in order for a screen reader."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from itertools import pairwise
from posixpath import dirname, join, normpath
from urllib.parse import unquote, urlsplit

from scripts.build_site.links import ELSEWHERE

# Every attribute that makes a browser fetch something, `href` where it is not on a link that somebody has to follow.
_LOADING = ("src", "srcset", "poster", "data", "background", "href", "xlink:href", "action", "formaction", "manifest")
_IN_STYLE = re.compile(r"url\(\s*[\"']?([^\"')]+)|@import\s+[\"']?([^\"';]+)", re.IGNORECASE)
_IN_SCRIPT = re.compile(r"""https?:|["'`]//|\bimport\b|\bfetch\(|XMLHttpRequest|WebSocket|\.src\s*=""")


class _Reader(HTMLParser):
    """Collects what the checks ask about."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.anchors: list[str] = []
        self.links: list[str] = []
        self.loads: list[str] = []
        self.levels: list[int] = []
        self.num_pictures_without_alt = 0
        self._inside = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self._inside = tag if tag in ("style", "script") else ""
        self.anchors += [values["id"]] if "id" in values else []
        if tag in ("a", "area") and "href" in values:
            self.links.append(values.pop("href"))
        if tag == "img" and not values.get("alt", "").strip():
            self.num_pictures_without_alt += 1
        if re.fullmatch(r"h[1-6]", tag):
            self.levels.append(int(tag[1]))
        if tag == "meta" and values.get("http-equiv", "").lower() == "refresh":
            self.loads.append(values.get("content", ""))
        self.loads += [values[name] for name in _LOADING if name in values and not _is_within(values[name])]
        self.loads += _loads_of_style(values.get("style", ""))

    def handle_endtag(self, tag: str) -> None:
        self._inside = "" if tag == self._inside else self._inside

    def handle_data(self, data: str) -> None:
        if self._inside == "style":
            self.loads += _loads_of_style(data)
        if self._inside == "script":
            self.loads += [f"script: {found[0]}" for found in _IN_SCRIPT.finditer(data)]


def what_it_loads(html: str) -> list[str]:
    """Every address that a browser would fetch to show this page; nothing that is a part of the page itself."""
    return _Reader(html).loads


def links_elsewhere(html: str) -> list[str]:
    """The addresses outside the site that a reader may follow; nothing here asks whether they answer."""
    return sorted({link for link in _Reader(html).links if urlsplit(link).scheme in ELSEWHERE})


def problems_of(pages: Mapping[str, str]) -> Iterator[str]:
    """`pages`: the HTML of the whole site by its path. One sentence for each thing that is wrong."""
    read = {path: _Reader(html) for path, html in pages.items()}
    anchors = {path: set(reader.anchors) for path, reader in read.items()}
    for path, reader in read.items():
        for address in reader.loads:
            yield f"{path} loads {address!r}: a page brings everything with it, and loads nothing"
        for link in reader.links:
            if reason := _why_broken(link, path, anchors):
                yield f"{path} has a link to {link!r}, but {reason}"
        for anchor in (anchor for anchor, times in Counter(reader.anchors).items() if times > 1):
            yield f"{path} has the anchor {anchor!r} twice"
        if reader.num_pictures_without_alt:
            yield f"{path} has {reader.num_pictures_without_alt} pictures without a text alternative"
        if reason := _why_out_of_order(reader.levels):
            yield f"{path} has its headings out of order: {reason}"


def _is_within(address: str) -> bool:
    """Data in the page, or a place in it, as in SVG."""
    return address.startswith(("data:", "#"))


def _loads_of_style(style: str) -> list[str]:
    found = (match[1] or match[2] for match in _IN_STYLE.finditer(style))
    return [address for address in found if not _is_within(address)]


def _why_broken(link: str, path: str, anchors: Mapping[str, set[str]]) -> str:
    parts = urlsplit(link)
    if parts.scheme in ELSEWHERE:
        return ""
    if parts.scheme or parts.netloc:
        return "it is neither a page of the site nor an address that a browser may open"
    target = normpath(join(dirname(path), unquote(parts.path))) if parts.path else path
    if target not in anchors:
        return "there is no such page"
    if parts.fragment and unquote(parts.fragment) not in anchors[target]:
        return f"{target} has no such heading"
    return ""


def _why_out_of_order(levels: list[int]) -> str:
    if levels.count(1) != 1 or levels[:1] != [1]:
        return f"{levels.count(1)} are of level 1, where the first and no other is right"
    for before, level in pairwise(levels):
        if level > before + 1:
            return f"level {level} follows level {before}"
    return ""
