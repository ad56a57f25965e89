"""One notebook as the site shows it: what its opening says, and its cells."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import nbformat
from markupsafe import Markup
from nbformat import NotebookNode

from labs.kit.contract.cells import IGNORE_MARKER, is_ignored
from scripts.build_site.code import highlighted
from scripts.build_site.links import Links
from scripts.build_site.outputs import Output, outputs_of
from scripts.build_site.problems import SiteError
from scripts.build_site.prose import Heading, Prose

T = TypeVar("T")

# The words that a reader sees for the tags of the contract; other tags are for programs.
BADGES = {
    "parameters": "Parameters",
    "prediction": "Prediction",
    "baseline": "Baseline",
    "negative-control": "Control",
    "break": "Break it",
    "try-it": "Try it yourself",
    "quiz": "Quiz",
    "records": "Records",
}


@dataclass(frozen=True)
class Cell:
    """`number` is that of a code cell in its run. `varies`: the outputs differ from run to run."""

    name: str
    html: str
    is_code: bool = False
    number: int | None = None
    badge: str = ""
    badge_kind: str = ""
    varies: bool = False
    outputs: tuple[Output, ...] = ()


@dataclass(frozen=True)
class Page:
    """`purpose` and `time` are HTML of one paragraph each; `headings` are those below the title."""

    file_name: str
    number: str
    title: str
    purpose: str
    time: str
    cells: tuple[Cell, ...]
    headings: tuple[Heading, ...]


def page_name(notebook: Path) -> str:
    return f"{notebook.stem}.html"


def read_page(path: Path, links: Links, tell: Callable[[str], None]) -> Page | None:
    """The page of a notebook. `tell` hears what cannot be shown, each with its cell; None: there is no page then."""
    try:
        notebook = nbformat.read(path, as_version=4)
    except Exception as error:  # of JSON, of the schema, of the file system
        tell(f"{path.name} cannot be read as a notebook: {str(error).splitlines()[0]}")
        return None
    reader = _Reader(path, links, tell)
    cells = tuple(reader.cell(cell) for cell in notebook.cells)
    headings = reader.prose.headings
    opening = reader.tried("opening", lambda: _opening(notebook, reader.new_prose()))
    if opening is None:
        return None
    return Page(page_name(path), *opening, cells, tuple(one for one in headings if 1 < one.level <= 3))


def _opening(notebook: NotebookNode, prose: Prose) -> tuple[str, str, str, str]:
    """Number, title, purpose and time, as the contract places them in the first cell."""
    first = notebook.cells[0].source if notebook.cells else ""
    title = re.match(r"# (\d\d) (\S[^\n]*)\n\s*\n(\S.*?)(?:\n\s*\n|\Z)", first, re.DOTALL)
    time = re.search(r"^\*\*Time\*\*:?\s*(\S.*?)(?:\n\s*\n|\Z)", first, re.DOTALL | re.MULTILINE)
    if not title or not time:
        raise SiteError("it needs a title ('# 00 ...'), a sentence of purpose below, and a line '**Time**: ...'")
    return title[1], Markup(prose.inline(title[2])).striptags(), prose.inline(title[3]), prose.inline(time[1])


class _Reader:
    """Turns the cells of one notebook into HTML, and goes on after a problem so that all are told at once."""

    def __init__(self, path: Path, links: Links, tell: Callable[[str], None]) -> None:
        self._path, self._links, self._tell = path, links, tell
        self.prose = self.new_prose()

    def new_prose(self) -> Prose:
        folder = self._path.parent
        return Prose(lambda url: self._links.resolve(url, folder), lambda url: self._links.picture(url, folder))

    def cell(self, cell: NotebookNode) -> Cell:
        name = str(cell.get("id", "?"))
        if cell.cell_type != "code":
            return Cell(name, self.tried(f"cell {name}", lambda: self.prose.html(cell.source)) or "")
        kind = next((tag for tag in cell.metadata.get("tags", []) if tag in BADGES), "")
        return Cell(
            name,
            highlighted("\n".join(_code_to_read(cell)).strip("\n"), "python"),
            is_code=True,
            number=cell.execution_count,
            badge=BADGES.get(kind, ""),
            badge_kind=kind,
            varies=is_ignored(cell),
            outputs=tuple(self.tried(f"cell {name}", lambda: outputs_of(cell)) or ()),
        )

    def tried(self, where: str, make: Callable[[], T]) -> T | None:
        try:
            return make()
        except SiteError as error:
            self._tell(f"{self._path.name}, {where}: {error}")
            return None


def _code_to_read(cell: NotebookNode) -> Iterator[str]:
    """Without the marker for nbval: the page says in words that the output varies."""
    return (line for line in cell.source.splitlines() if line.strip() != IGNORE_MARKER)
