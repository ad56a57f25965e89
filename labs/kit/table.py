"""Rows as text in columns: numbers to the right, words to the left. The form in which notebooks print counts."""

from __future__ import annotations

from collections.abc import Sequence

_GAP = "  "
_ABSENT = "-"


def text_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A line of headings, then one line for each row. None is shown as "-". Units belong into the headings.

    Raises ValueError when a row has more or fewer cells than there are columns.
    """
    for row in rows:
        if len(row) != len(columns):
            raise ValueError(f"a row has {len(row)} cells for {len(columns)} columns: {list(row)}")
    is_number = [
        all(isinstance(cell, int | float | None) and not isinstance(cell, bool) for cell in column)
        for column in zip(*rows, strict=True)
    ] or [False] * len(columns)
    shown = [list(columns), *([_shown(cell) for cell in row] for row in rows)]
    widths = [max(len(row[place]) for row in shown) for place in range(len(columns))]
    return "\n".join(
        _GAP.join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, is_number, strict=True)
        ).rstrip()
        for row in shown
    )


def _shown(cell: object) -> str:
    if cell is None:
        return _ABSENT
    if isinstance(cell, int) and not isinstance(cell, bool):
        return f"{cell:,}"
    if isinstance(cell, float):
        return f"{cell:.3g}" if abs(cell) < 100 else f"{cell:,.0f}"
    return str(cell)
