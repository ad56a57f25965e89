"""A small checkout with two notebooks, to build a site from and to break."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import nbformat

OPENING = "# {number} {title}\n\nYou will see one *thing*.\n\n**You need** nothing.\n\n**Time**: 5 minutes to read.\n"
ONE_PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n and the rest of a picture").decode("ascii")


class Checkout:
    """`add` writes a notebook whose opening is as the contract has it; the cells given follow."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "notebooks").mkdir()

    def add(self, name: str, *cells: Any, title: str = "What is it?") -> Path:
        opening = nbformat.v4.new_markdown_cell(OPENING.format(number=name[:2], title=title), id="title")
        notebook = nbformat.v4.new_notebook(cells=[opening, *cells])
        path = self.folder / "notebooks" / f"{name}.ipynb"
        nbformat.write(notebook, path)
        return path

    def write(self, name: str, content: str | bytes) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def text(markdown: str, name: str = "about") -> Any:
    return nbformat.v4.new_markdown_cell(markdown, id=name)


def code(source: str, *outputs: Any, name: str = "measure", tags: tuple[str, ...] = (), count: int | None = 1) -> Any:
    cell = nbformat.v4.new_code_cell(source, id=name, outputs=list(outputs), execution_count=count)
    if tags:
        cell.metadata["tags"] = list(tags)
    return cell


def printed(words: str) -> Any:
    return nbformat.v4.new_output("stream", name="stdout", text=words)


def figure(alternative: str) -> Any:
    metadata = {"image/png": {"alt": alternative}} if alternative else {}
    data = {"image/png": ONE_PIXEL, "text/plain": alternative}
    return nbformat.v4.new_output("display_data", data=data, metadata=metadata)


def widget(words: str) -> Any:
    view = {"model_id": "abc", "version_major": 2, "version_minor": 0}
    data = {"application/vnd.jupyter.widget-view+json": view, "text/plain": words}
    return nbformat.v4.new_output("display_data", data=data)
