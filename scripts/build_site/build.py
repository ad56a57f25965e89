"""From the notebooks of a checkout to the pages of the site, written whole or not at all."""

from __future__ import annotations

import base64
import hashlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from scripts.build_site.check import links_elsewhere, problems_of
from scripts.build_site.code import numbered_lines
from scripts.build_site.links import Links
from scripts.build_site.notebook import Page, page_name, read_page
from scripts.build_site.problems import BrokenSite

INDEX = "index.html"
LINKS_ELSEWHERE = "external-links.txt"
TEMPLATES = Path(__file__).with_name("templates")


@dataclass(frozen=True)
class Site:
    """`pages`: HTML by path. `elsewhere`: each address outside the site, with the pages that link to it."""

    pages: dict[str, str]
    elsewhere: dict[str, list[str]]


def build_site(checkout: Path, destination: Path, step: Callable[[str], None] = lambda doing: None) -> Site:
    """Write the site of `checkout/notebooks` to the folder `destination`, in the place of what is there.

    `step` is called for each notebook. Raises BrokenSite, and leaves the folder as it was, when anything is wrong.
    """
    site = make_site(checkout, step)
    beside = destination.with_name(f"{destination.name}.part")
    shutil.rmtree(beside, ignore_errors=True)
    for path, html in site.pages.items():
        (beside / path).parent.mkdir(parents=True, exist_ok=True)
        (beside / path).write_text(html, encoding="utf-8")
    listed = "".join(f"{address}  ({', '.join(pages)})\n" for address, pages in site.elsewhere.items())
    (beside / LINKS_ELSEWHERE).write_text(listed, encoding="utf-8")
    shutil.rmtree(destination, ignore_errors=True)
    beside.rename(destination)
    return site


def make_site(checkout: Path, step: Callable[[str], None] = lambda doing: None) -> Site:
    """The site in memory. Raises BrokenSite."""
    notebooks = sorted((checkout / "notebooks").glob("[0-9][0-9]_*.ipynb"))
    if not notebooks:
        raise BrokenSite([f"there is no notebook in {checkout / 'notebooks'}"])
    problems: list[str] = []
    links = Links(checkout, {notebook: page_name(notebook) for notebook in notebooks})
    read: list[Page] = []
    for notebook in notebooks:
        step(notebook.stem)
        page = read_page(notebook, links, problems.append)
        read += [page] if page else []
    if problems:
        raise BrokenSite(problems)
    pages = _rendered(read, links)
    if problems := list(problems_of(pages)):
        raise BrokenSite(problems)
    return Site(pages, _elsewhere(pages))


def _rendered(read: list[Page], links: Links) -> dict[str, str]:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, keep_trailing_newline=True
    )  # fmt: skip
    script = (TEMPLATES / "site.js").read_text(encoding="utf-8").strip()
    shared = {
        "all_pages": read,
        "style": Markup((TEMPLATES / "style.css").read_text(encoding="utf-8")),
        "script": Markup(script),
        # A browser runs the script of the site and no other, and loads nothing, whatever a notebook may hold.
        "script_hash": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii"),
    }
    pages = {INDEX: environment.get_template("index.html.j2").render(shared, top="", page=None)}
    for before, page, after in zip([None, *read], read, [*read[1:], None], strict=False):
        pages[page.file_name] = environment.get_template("notebook.html.j2").render(
            shared, top="", page=page, before=before, after=after
        )
    for path, place in sorted(links.files.items()):
        lines = numbered_lines(path.read_text(encoding="utf-8", errors="replace"), path.name)
        name = path.relative_to(links.checkout).as_posix()
        pages[place] = environment.get_template("file.html.j2").render(
            shared, top="../" * place.count("/"), page=None, name=name, lines=lines
        )
    return pages


def _elsewhere(pages: dict[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for path, html in pages.items():
        for address in links_elsewhere(html):
            found.setdefault(address, []).append(path)
    return dict(sorted(found.items()))
