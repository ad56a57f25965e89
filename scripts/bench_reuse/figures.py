"""One figure for each workload: time to first token and slowest completion of every group under every policy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from labbook.figures import COLOURS, HATCHES, DrawnFigure, draw, finished
from labbook.record import Record
from scripts.bench_reuse.report import policy_name, spread

GROUP_WIDTH = 0.84


def draw_workload(records: Sequence[Record], path: Path) -> DrawnFigure:
    """Bars of the mean time to first token, with the standard deviation, and a marker at the slowest completion."""
    groups = [str(group["group"]) for group in records[0]["groups"]]
    caption = _caption(records[0])
    figure, axes = draw(str(records[0]["workload"]), "requests", "time (s), logarithmic", caption)
    figure.set_size_inches(max(7.5, 1.7 * len(groups) + 3.5), 4.8)
    width = GROUP_WIDTH / len(records)
    for row, record in enumerate(records):
        places = [number - GROUP_WIDTH / 2 + width * (row + 0.5) for number in range(len(groups))]
        first = [spread(group["first_mean_s"]) for group in record["groups"]]
        axes.bar(
            places,
            [middle for middle, _ in first],
            width,
            yerr=[deviation for _, deviation in first],
            label=policy_name(record),
            color=COLOURS[row % len(COLOURS)],
            hatch=HATCHES[(row + row // len(COLOURS)) % len(HATCHES)],  # a seventh row has a first one's colour only
            edgecolor="black",
            linewidth=0.6,
            capsize=2,
        )
        ends = [spread(group["end_slowest_s"])[0] for group in record["groups"]]
        label = "slowest completion" if row == len(records) - 1 else None
        axes.plot(places, ends, "_", color="black", markersize=8, markeredgewidth=1.6, label=label)
    axes.set_yscale("log")
    axes.set_xticks(range(len(groups)), groups, fontsize=8, rotation=20 if len(groups) > 4 else 0)
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize=8, title="bar: first token, mean")
    return finished(figure, _sentence(records, groups), caption, path)


def _sentence(records: Sequence[Record], groups: Sequence[str]) -> str:
    told = [
        f"{group}: first token {_reach(records, number, 'first_mean_s')}, "
        f"slowest completion {_reach(records, number, 'end_slowest_s')}"
        for number, group in enumerate(groups)
    ]
    return f"Mean time to first token and slowest completion. {'. '.join(told)}."


def _reach(records: Sequence[Record], number: int, name: str) -> str:
    """From the quickest policy to the slowest."""
    times = sorted((spread(record["groups"][number][name])[0], policy_name(record)) for record in records)
    (least_s, quickest), (most_s, slowest) = times[0], times[-1]
    return f"{least_s:.3f} s ({quickest}) to {most_s:.3f} s ({slowest})"


def _caption(record: Record) -> str:
    return (
        f"n = {record['repeats']} repeats, lines are their standard deviation; {record['model']} on minivllm "
        f"{record['engine_version']}; {record['device']}"
    )
