"""Every figure of the project: white ground, markers and hatches besides colours, units, a caption, a sentence.

The sentence is the figure's text alternative, computed from the data. It is written into the PNG, beside it as `.txt`,
and shown by notebooks as text/plain and as the image's `alt`. matplotlib (extra `plot`) is imported when a figure is
drawn, and used without pyplot: no global state, no window.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labbook.errors import LabbookError, UsageError
from labbook.output import printable
from labbook.record import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, told apart with every common kind of colour vision; hatch and marker repeat the difference.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
HATCHES = ("", "///", "...", "xxx", "\\\\\\", "++")
_CAPTION_WIDTH = 96
_DRAWN_FIELDS = ("model", "cold_s", "warm_s", "warm_over_cold", "verdict")
MARKERS = ("o", "s", "^", "D", "v", "P")


@dataclass(frozen=True)
class DrawnFigure:
    """A finished figure. In a notebook it shows itself, with its sentence for those who do not see it."""

    sentence: str
    caption: str
    figure: Figure = field(repr=False)

    def png(self) -> bytes:
        buffer = io.BytesIO()
        self.figure.savefig(
            buffer,
            format="png",
            dpi=144,
            facecolor="white",
            bbox_inches="tight",
            metadata={"Description": self.sentence, "Software": None},
        )
        return buffer.getvalue()

    def save(self, path: str | Path) -> Path:
        """Write the PNG, and its sentence and caption beside it as `.txt`. Returns the PNG's path."""
        path = Path(path)
        if path.suffix.lower() != ".png":
            raise UsageError(f"the figure {path} is written as PNG: name a file that ends in .png")
        try:
            if path.is_fifo():  # opening it would hang
                raise LabbookError(f"cannot write the figure {path}: it is a FIFO and no regular file")
            path.write_bytes(self.png())
            path.with_suffix(".txt").write_text(f"{self.sentence}\n{self.caption}\n", encoding="utf-8")
        except OSError as error:
            raise LabbookError(f"cannot write the figure {path}: {error.strerror}") from None
        return path

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        bundle = {"text/plain": self.sentence, "image/png": self.png()}
        return bundle, {"image/png": {"alt": self.sentence}}


def draw(title: str, x_label: str, y_label: str, caption: str) -> tuple[Figure, Axes]:
    """An empty figure in the house style; finish it with `finished`. Units belong into the labels."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise LabbookError("figures need matplotlib: install the extra `plot`") from None
    figure = Figure(figsize=(6.4, 4.2), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot(facecolor="white")
    axes.set_title(title)
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", linewidth=0.5, alpha=0.5)
    axes.set_axisbelow(True)
    figure.supxlabel(textwrap.fill(caption, _CAPTION_WIDTH), fontsize=8)
    return figure, axes


def finished(figure: Figure, sentence: str, caption: str, path: str | Path | None = None) -> DrawnFigure:
    """The figure with its sentence, saved when a path is given."""
    drawn = DrawnFigure(sentence, caption, figure)
    if path is not None:
        drawn.save(path)
    return drawn


def cold_warm_bars(records: Record | Sequence[Record], path: str | Path | None = None) -> DrawnFigure:
    """Bars of cold, warm and control time, in groups when there are several records. The warm bar is the median of
    its requests, its line reaches from the fastest to the slowest, and its markers are the requests."""
    records = [records] if isinstance(records, dict) else list(records)
    if not records:
        raise UsageError("there is no record to draw")
    for record in records:
        if missing := [name for name in _DRAWN_FIELDS if record.get(name) is None]:
            raise UsageError(
                f"a record of lab {record.get('lab')!r} holds no cold and warm pair: "
                f"it lacks {', '.join(missing)}; choose another"
            )
    caption = _caption(records)
    timed = str(records[0].get("timed", "time to first token"))
    unit, per_s = ("s", 1.0) if max(_longest_s(record) for record in records) >= 1 else ("ms", 1000.0)
    figure, axes = draw("Cold, warm and control", "request", f"{timed} ({unit})", caption)
    ticks: list[tuple[float, str]] = []
    for group, record in enumerate(records):
        ticks += _draw_group(axes, group * 4.0, record, per_s)
    axes.set_xticks([place for place, _ in ticks], [text for _, text in ticks], fontsize=9)
    axes.margins(y=0.12)
    axes.set_ylim(bottom=0)
    return finished(figure, " ".join(cold_warm_sentence(record) for record in records), caption, path)


def cold_warm_sentence(record: Record) -> str:
    """What the bars of one record show, in words."""
    warm = record["warm_s"]
    name = f"{record['label']}: " if record.get("label") else ""
    control = record.get("control_s")
    changed = "" if control is None else f", the control {_s(control)}"
    timed = record.get("timed", "time to first token")
    return (
        f"{name}{timed} is {_s(record['cold_s'])} cold and {_s(warm['p50'])} warm "
        f"(median of {warm['count']}, {_s(warm['min'])} to {_s(warm['max'])}){changed}; "
        f"warm over cold {record['warm_over_cold']:.2f}, verdict {record['verdict']}."
    )


def _draw_group(axes: Axes, left: float, record: Record, per_s: float) -> list[tuple[float, str]]:
    warm, label = record["warm_s"], printable(record.get("label") or "")
    bars = [
        ("cold", record["cold_s"], record["cold_s"]),
        (f"warm\n{label}", warm["p50"], warm["max"]),
        ("control", record.get("control_s"), record.get("control_s")),
    ]
    ticks = []
    for index, (name, seconds, top_s) in enumerate(bars):
        if seconds is None:
            continue
        axes.bar(
            left + index,
            seconds * per_s,
            width=0.7,
            color=COLOURS[index],
            hatch=HATCHES[index],
            edgecolor="black",
            linewidth=0.8,
        )
        axes.annotate(
            _s(seconds),
            (left + index, top_s * per_s),
            xytext=(0, 6),
            textcoords="offset points",
            ha="center",
            fontsize=8,
        )
        ticks.append((left + index, name))
    axes.vlines(left + 1, warm["min"] * per_s, warm["max"] * per_s, color="black", linewidth=1.5)
    singles = [seconds * per_s for seconds in _warm_times(record)]
    axes.plot(
        [left + 1] * len(singles), singles, MARKERS[1], markersize=4, markerfacecolor="white", markeredgecolor="black"
    )
    return ticks


def _longest_s(record: Record) -> float:
    return float(max(record["cold_s"], record["warm_s"]["max"], record.get("control_s") or 0))


def _warm_times(record: Record) -> list[float]:
    key = "ttft_s" if record.get("timed") == "time to first token" else "total_s"
    times = [request.get(key) for request in record.get("requests", []) if request["phase"] == "warm"]
    return [seconds for seconds in times if seconds is not None]


def _caption(records: Sequence[Record]) -> str:
    counts = " / ".join(str(record["warm_s"]["count"]) for record in records)
    first = records[0]
    engine = " ".join(str(first[name]) for name in ("engine", "engine_version") if first.get(name))
    device = (first.get("environment") or {}).get("device", "an unknown machine")
    cold = " / ".join(str(record.get("groups", 1)) for record in records)
    control = f"{cold} control (changed prefix); " if first.get("control_s") is not None else ""
    tokens = "" if first.get("prompt_tokens") is None else f"prompt of {first['prompt_tokens']} tokens; "
    return (
        f"n = {cold} cold request{'' if cold == '1' else 's'}, {counts} warm, {control}{tokens}{first['model']}"
        f"{' on ' + engine if engine else ''}; measured from {device}"
    )


def _s(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"


def token_bars(
    counts: Mapping[str, tuple[int, int]],
    path: str | Path | None = None,
    *,
    caption: str = "",
) -> DrawnFigure:
    """One bar for each prompt, by name: (cached tokens, prompt tokens). Counts have no spread, so none is drawn."""
    for name, (cached, prompt) in counts.items():
        if not 0 <= cached <= prompt:
            raise UsageError(f"{name!r} has {cached} cached of {prompt} prompt tokens: give 0 to all of them")
    caption = caption or "n = 1 request for each bar; counts do not depend on the device"
    figure, axes = draw("Prompt tokens, cached and computed", "prompt", "tokens", caption)
    places, cached_counts = range(len(counts)), [cached for cached, _ in counts.values()]
    computed = [prompt - cached for cached, prompt in counts.values()]
    for index, (label, heights, bottoms) in enumerate(
        [("cached", cached_counts, [0] * len(counts)), ("computed", computed, cached_counts)]
    ):
        axes.bar(
            places,
            heights,
            bottom=bottoms,
            width=0.6,
            label=label,
            color=COLOURS[index],
            hatch=HATCHES[index],
            edgecolor="black",
            linewidth=0.8,
        )
    axes.set_xticks(places, list(counts), fontsize=9)
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    told = ", ".join(f"{cached} of {prompt} ({name})" for name, (cached, prompt) in counts.items())
    return finished(figure, f"Cached tokens of the prompt: {told}.", caption, path)
