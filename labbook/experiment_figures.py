"""Figures of the experiments beyond the pair: growth as two lines, eviction as bars, ratios with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labbook.errors import UsageError
from labbook.figures import COLOURS, HATCHES, MARKERS, DrawnFigure, draw, finished
from labbook.output import printable
from labbook.record import Record
from labbook.signals import RATIO_BOUND

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_EVICTION_PHASES = (("cold", "cold"), ("warm", "warm,\nbefore"), ("competing", "competing"), ("again", "again,\nafter"))


def growth_lines(record: Record, path: str | Path | None = None) -> DrawnFigure:
    """Time against the length of the prompt: every pair as two markers, and a least-squares line for each kind."""
    if record.get("experiment") != "growth":
        raise UsageError(f"a record of experiment {record.get('experiment')!r} holds no growth: choose another")
    per, pairs = record["per"], record["lengths"]
    caption = (
        f"n = {len(pairs)} pairs of {len({pair['words'] for pair in pairs})} lengths, in random order; lines: least "
        f"squares through the medians; {_where(record)}"
    )
    figure, axes = draw("Time against the length of the prompt", f"length ({per}s)", f"{record['timed']} (ms)", caption)
    for row, name in enumerate(("cold", "warm")):
        lengths = [pair[f"{name}_length"] for pair in pairs]
        line = record["lines"][name]
        axes.plot(
            lengths,
            [pair[f"{name}_s"] * 1000 for pair in pairs],
            MARKERS[row],
            color=COLOURS[row],
            markerfacecolor="white",
            label=f"{name}, {line['slope_ms']['value']:.2f} ms a {per}",
        )
        ends = [min(lengths), max(lengths)]
        heights = [line["fixed_ms"]["value"] + line["slope_ms"]["value"] * end for end in ends]
        axes.plot(ends, heights, "-" if row == 0 else "--", color=COLOURS[row])
    axes.set_ylim(bottom=0)
    axes.legend(loc="upper left", frameon=False, fontsize=9)
    return finished(figure, growth_sentence(record), caption, path)


def growth_sentence(record: Record) -> str:
    """What the two lines show, in words."""
    per = record["per"]

    def told(name: str) -> str:
        slope, fixed = record["lines"][name]["slope_ms"], record["lines"][name]["fixed_ms"]
        return (
            f"{name} {slope['value']:.3f} ms a {per} ({slope['low']:.3f} to {slope['high']:.3f}) and "
            f"{fixed['value']:.0f} ms besides ({fixed['low']:.0f} to {fixed['high']:.0f})"
        )

    return f"{_label(record)}{record['timed']}: {told('cold')}; {told('warm')}; verdict {record['verdict']}."


def eviction_bars(record: Record, path: str | Path | None = None) -> DrawnFigure:
    """Median time of each phase: cold, warm before the competitors, the competitors, and the first prompt again."""
    if record.get("experiment") != "eviction":
        raise UsageError(f"a record of experiment {record.get('experiment')!r} holds no eviction: choose another")
    title = f"Before and after {record['competitors']} competing prompts"
    caption = f"n = {record['groups']} group(s), medians; {_where(record)}"
    figure, axes = draw(title, "request", f"{record['timed']} (ms)", caption)
    for place, (phase, _) in enumerate(_EVICTION_PHASES):
        _bar(axes, place, _median_s(record, phase))
    axes.set_xticks(range(len(_EVICTION_PHASES)), [name for _, name in _EVICTION_PHASES], fontsize=9)
    axes.margins(y=0.12)
    axes.set_ylim(bottom=0)
    return finished(figure, eviction_sentence(record), caption, path)


def eviction_sentence(record: Record) -> str:
    """What the bars show, in words."""
    times = {phase: _median_s(record, phase) for phase, _ in _EVICTION_PHASES}
    shown = {phase: "an unknown time" if s is None else f"{s * 1000:.0f} ms" for phase, s in times.items()}
    return (
        f"{_label(record)}{record['timed']} is {shown['cold']} cold and {shown['warm']} warm; after "
        f"{record['competitors']} competing prompts of {shown['competing']} each the first takes {shown['again']} "
        f"again; verdict {record['verdict']}."
    )


def ratio_intervals(records: Sequence[Record], path: str | Path | None = None) -> DrawnFigure:
    """The ratio that each record's clock is judged by, with its interval, beside the bound of the verdict."""
    if not records:
        raise UsageError("there is no record to draw")
    intervals = [_clock_interval(record) for record in records]
    names = [printable(record.get("label") or record.get("experiment") or "") for record in records]
    caption = f"n = {len(records)} records; the dotted line is no effect, the dashed one the bound of the verdict"
    figure, axes = draw("Time as a share of the time without reuse", "record", "ratio (1 is no effect)", caption)
    for place, interval in enumerate(intervals):
        middle, low, high = interval["value"], interval["low"], interval["high"]
        axes.errorbar(
            [place],
            [middle],
            yerr=[[max(middle - low, 0)], [max(high - middle, 0)]],
            fmt=MARKERS[place % len(MARKERS)],
            color=COLOURS[place % len(COLOURS)],
            capsize=5,
        )
    axes.axhline(1.0, color="black", linestyle=":", linewidth=1)
    axes.axhline(RATIO_BOUND, color="black", linestyle="--", linewidth=1)
    axes.set_xticks(range(len(names)), names, fontsize=9)
    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.set_ylim(bottom=0)
    told = "; ".join(
        f"{name} {one['value']:.2f} ({one['low']:.2f} to {one['high']:.2f}), {record['verdict']}"
        for name, one, record in zip(names, intervals, records, strict=True)
    )
    return finished(figure, f"Time over the time without reuse: {told}.", caption, path)


def _clock_interval(record: Record) -> dict[str, Any]:
    clock = (record.get("signals") or {}).get("clock") or {}
    interval = (clock.get("details") or {}).get("interval")
    if interval is None:
        raise UsageError(f"a record of experiment {record.get('experiment')!r} holds no interval: choose another")
    return dict(interval)


def _bar(axes: Axes, place: int, seconds: float | None) -> None:
    if seconds is None:
        return
    height = seconds * 1000
    axes.bar(place, height, 0.7, color=COLOURS[place], hatch=HATCHES[place], edgecolor="black", linewidth=0.8)
    offset: dict[str, Any] = {"xytext": (0, 4), "textcoords": "offset points", "ha": "center", "fontsize": 8}
    axes.annotate(f"{height:.0f} ms", (place, height), **offset)


def _median_s(record: Record, phase: str) -> float | None:
    value = record["warm_s"]["p50"] if phase == "warm" else record[f"{phase}_s"]
    return None if value is None else float(value)


def _label(record: Record) -> str:
    return f"{record['label']}: " if record.get("label") else ""


def _where(record: Record) -> str:
    engine = " ".join(str(record[name]) for name in ("engine", "engine_version") if record.get(name))
    return f"{record['model']}{' on ' + engine if engine else ''}; measured from {record['environment']['device']}"
