"""What a code cell showed, as few kinds of things: text, a figure with its sentence, a note, an error."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from nbconvert.filters import strip_ansi
from nbformat import NotebookNode

from scripts.build_site.problems import SiteError

Kind = Literal["text", "figure", "note", "error"]

_WIDGET = "application/vnd.jupyter.widget-view+json"
_PNG = "image/png"


@dataclass(frozen=True)
class Output:
    """`text` is shown; for a figure it is the text alternative of `png`, which is base64."""

    kind: Kind
    text: str
    png: str = ""

    @property
    def is_aligned(self) -> bool:
        """Whether it stands in columns, which a narrow screen must not wrap."""
        return re.search(r"\S {2,}\S", self.text) is not None


def outputs_of(cell: NotebookNode) -> list[Output]:
    """Raises SiteError for what has no text, and so could not be read aloud."""
    return [output for stored in cell.get("outputs", []) for output in _shown(stored)]


def _shown(stored: NotebookNode) -> Sequence[Output]:
    if stored.output_type == "stream":
        return _if_any("text", stored.text)
    if stored.output_type == "error":
        return [Output("error", strip_ansi("\n".join(stored.traceback)))]
    data, text = stored.data, str(stored.data.get("text/plain", ""))
    if _WIDGET in data:  # its text twin is printed by the same cell: the contract of notebooks
        return _if_any("note", text)
    if _PNG in data:
        return [Output("figure", _alternative(stored), data[_PNG].replace("\n", ""))]
    if not text:
        raise SiteError(f"it shows {', '.join(data)} and no text that says the same")
    return _if_any("text", text)


def _if_any(kind: Kind, text: str) -> Sequence[Output]:
    text = strip_ansi(text).rstrip("\n")
    return [Output(kind, text)] if text else []


def _alternative(stored: NotebookNode) -> str:
    alternative = str(stored.metadata.get(_PNG, {}).get("alt", ""))
    if not alternative.strip():
        raise SiteError("it shows a figure without a text alternative (image/png.alt in its metadata)")
    return alternative
