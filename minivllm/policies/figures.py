"""Hit ratio against capacity, as a figure. The house style comes from whoever calls: labbook.figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Row = Mapping[str, Any]
LINES = ("-", "--", ":")


def sweep_figure(style: Any, rows: Sequence[Row], traffic: str, path: str | Path | None = None) -> Any:
    """A line for each design and eviction in the rows of a sweep. `style` is the module labbook.figures.

    Rows have `design`, `eviction`, `capacity_blocks`, `block_tokens`, `hit_ratio_tokens` and `requests`.
    """
    curves = _curves(rows)
    block_tokens, requests = rows[0]["block_tokens"], rows[0]["requests"]
    unit = "tokens" if block_tokens == 1 else f"blocks of {block_tokens} tokens"
    caption = f"{traffic}, n = {requests:,} requests; counted, not timed: the same on every device"
    figure, axes = style.draw("What each design finds", f"capacity ({unit})", "hit ratio (of prompt tokens)", caption)
    for number, (name, curve) in enumerate(curves.items()):
        place = number % len(style.COLOURS)
        axes.plot(
            *zip(*curve, strict=True),
            label=name,
            color=style.COLOURS[place],
            marker=style.MARKERS[(number + number // len(style.COLOURS)) % len(style.MARKERS)],
            linestyle=LINES[number // len(style.COLOURS) % len(LINES)],
            markersize=5,
        )
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_ylim(bottom=0)
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize=8)
    return style.finished(figure, sweep_sentence(rows), caption, path)


def sweep_sentence(rows: Sequence[Row]) -> str:
    """What the lines show, in words: every line at its ends, the best of the largest capacity first."""
    told = [
        f"{name} {curve[0][1]:.2f} to {curve[-1][1]:.2f}"
        for name, curve in sorted(_curves(rows).items(), key=lambda item: (-item[1][-1][1], item[0]))
    ]
    capacities = sorted({row["capacity_blocks"] for row in rows})
    block_tokens = rows[0]["block_tokens"]
    unit = "tokens" if block_tokens == 1 else f"blocks of {block_tokens} tokens"
    ends = f"from {capacities[0]:,} to {capacities[-1]:,} {unit}"
    return f"Hit ratio of tokens {ends}: {', '.join(told)}."


def curve_name(row: Row) -> str:
    """The design, with its eviction where it has one to choose."""
    return f"{row['design']} {row['eviction']}" if row["eviction"] else str(row["design"])


def _curves(rows: Sequence[Row]) -> dict[str, list[tuple[int, float]]]:
    curves: dict[str, list[tuple[int, float]]] = {}
    for row in sorted(rows, key=lambda row: row["capacity_blocks"]):
        curves.setdefault(curve_name(row), []).append((row["capacity_blocks"], row["hit_ratio_tokens"]))
    return dict(sorted(curves.items()))
