"""Which figure draws a record, and `labbook plot`.

A figure of another experiment hooks in with one line in `FIGURES`: the record's `experiment`, then module and function
that take one record and a path (None draws without saving) and return a DrawnFigure. The module is imported when such
a record is drawn, never before.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from labbook.errors import UsageError
from labbook.output import printable
from labbook.record import Record
from labbook.selection import CHOICE_HELP, chosen, read_and_tell

if TYPE_CHECKING:
    from labbook.figures import DrawnFigure

FIGURES = {
    "burst": ("labbook.burst_report", "burst_bars"),
    "eviction": ("labbook.experiment_figures", "eviction_bars"),
    "growth": ("labbook.experiment_figures", "growth_lines"),
}


def figure_of(records: Sequence[Record], path: Path | None = None) -> DrawnFigure:
    """The figure of these records: one of any experiment in FIGURES, else cold and warm pairs side by side.

    Raises UsageError when the records hold nothing that this figure can draw.
    """
    if len(records) == 1 and (experiment := records[0].get("experiment")) in FIGURES:
        module, function = FIGURES[experiment]
        try:
            return getattr(import_module(module), function)(records[0], path)
        except (KeyError, TypeError, AttributeError) as error:  # a record that somebody edited
            raise UsageError(f"this {experiment} record lacks what its figure draws: {error!r}") from None
    from labbook.figures import cold_warm_bars

    return cold_warm_bars(records, path)


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser], shared: argparse.ArgumentParser) -> None:
    plot = commands.add_parser("plot", parents=[shared], help="draw the bars of cold and warm records, or of one burst")
    plot.add_argument("numbers", nargs="*", default=["-1"], metavar="number", help=CHOICE_HELP)
    plot.add_argument("--out", type=Path, metavar="FILE", help="a .png file (its record's number in labbook-figures)")
    plot.set_defaults(run=_plot)


def _plot(options: argparse.Namespace) -> int:
    reading = read_and_tell(options.labbook)
    picked = [chosen(reading, text) for text in options.numbers]
    out = options.out or _figure_path(options.labbook, [number for number, _ in picked])
    drawn = figure_of([record for _, record in picked], out)
    if options.json:
        print(json.dumps({"figure": str(out), "sentence": drawn.sentence, "caption": drawn.caption}))
        return 0
    print(printable(f"figure {out}: {drawn.sentence}"))
    print(printable(drawn.caption))
    return 0


def _figure_path(labbook: Path, numbers: Sequence[int]) -> Path:
    """Beside the labbook, where `make measure` puts its figures, named after the records."""
    folder = labbook.parent / "labbook-figures"
    folder.mkdir(exist_ok=True)
    return folder / f"{'-'.join(f'{number:03}' for number in numbers)}.png"
