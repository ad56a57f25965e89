"""The report as Markdown, with its figures, from records alone: the same records give the same bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from labbook.errors import LabbookError
from labbook.record import Record
from scripts.bench_reuse.drive import COUNTS
from scripts.bench_reuse.policies import BASELINE

NOT_SHOWN = (
    "A server: requests go to the engine in this process, without HTTP, sockets or queues of clients. "
    "`measure-prefix-cache --burst` measures those.",
    "Another machine, model or precision. Token and step counts carry over to them, seconds do not.",
    "Arrivals at times of their own: here the engine's steps say when the next request comes.",
    "Natural prompts: these are synthetic prose of equal lengths, greedy answers of fixed length, no chat template.",
    "Small differences: each time is the mean of the repeats named above with their standard deviation. Repeats of all "
    "policies take turns, so that a machine that slows down slows all of them.",
)


def write_report(records: Sequence[Record], folder: Path) -> Path:
    """`report.md` and its figures in `folder`, which is made when missing. Returns the report's path."""
    from scripts.bench_reuse.figures import draw_workload

    path = folder / "report.md"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        sentences = {}
        for workload, of_workload in by_workload(records).items():
            drawn = draw_workload(of_workload, folder / f"{workload}.png")
            sentences[workload] = drawn.sentence
        path.write_text(as_markdown(records, sentences), encoding="utf-8")
    except OSError as error:
        raise LabbookError(f"cannot write the report {path}: {error.strerror}") from None
    return path


def as_markdown(records: Sequence[Record], sentences: dict[str, str] | None = None) -> str:
    """The whole report; with `sentences`, each workload shows its figure and has the sentence as its text."""
    blocks = [*_head(records), *_policies(records)]
    for workload, of_workload in by_workload(records).items():
        blocks += [
            f"## {workload}",
            str(of_workload[0]["shape"]),
            _counts_table(of_workload),
            _times_table(of_workload),
        ]
        if sentences is not None:
            blocks.append(f"![{sentences[workload]}]({workload}.png)")
        blocks += _remarks(of_workload)
    blocks += ["## What this does not show", "\n".join(f"- {line}" for line in NOT_SHOWN)]
    return "\n\n".join(blocks) + "\n"


def by_workload(records: Sequence[Record]) -> dict[str, list[Record]]:
    names = dict.fromkeys(str(record["workload"]) for record in records)
    return {name: [record for record in records if record["workload"] == name] for name in names}


def policy_name(record: Record) -> str:
    return str(record["policy"]["name"])


def spread(values: Sequence[float]) -> tuple[float, float]:
    """Mean and standard deviation of the repeats; of a single one the deviation is 0."""
    return mean(values), stdev(values) if len(values) > 1 else 0.0


def _head(records: Sequence[Record]) -> Iterator[str]:
    first = records[0]
    sizes = first["sizes_tokens"]
    yield "# Publication and single flight, compared"
    yield (
        "Scope: what identical and similar requests compute, restore and wait for under each policy of the mini "
        "engine, in one process, driven step by step. Token counts are exact; times are the mean of the "
        "repeats and, behind ±, their standard deviation."
    )
    rows = {
        "model": first["model"],
        "machine": f"{first['device']}; {first['environment']['device']}; Python {first['environment']['python']}",
        "engine": (
            f"minivllm {first['engine_version']}; pages of {first['page_tokens']} tokens, at most "
            f"{first['max_batched_tokens']} tokens a step, at most {first['max_active_requests']} requests at once"
        ),
        "prompts": (
            f"24 paragraphs of {sizes['paragraph']} tokens and a question of {sizes['question']}, where a workload "
            "says nothing else"
        ),
        "repeats": f"{first['repeats']}, each on a new engine",
        "measured": f"{first['recorded_at']} to {records[-1]['recorded_at']}, run `{first['run']}`",
    }
    yield "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows.items())])
    yield f"Command:\n\n    {first['command']}\n\nThe same report from the records alone:\n\n    {first['rebuild']}"


def _policies(records: Sequence[Record]) -> Iterator[str]:
    seen = {policy_name(record): record["policy"] for record in records}
    lines = ["| row | single_flight | publication | eviction |", "|---|---|---|---|"]
    for name, policy in seen.items():
        lines.append(f"| {name} | `{policy['single_flight']}` | `{policy['publication']}` | `{policy['eviction']}` |")
    yield "## Rows"
    yield "\n".join(lines)


def _counts_table(records: Sequence[Record]) -> str:
    """Tokens, and the steps of the engine, a row for all policies that agree in every number of a group."""
    lines = ["| requests | policy | prompt tokens | computed | restored | published | evicted | steps |"]
    lines.append("|---|---|" + "--:|" * (1 + len(COUNTS)))
    agreeing: dict[tuple[str, str], list[str]] = {}
    for group, record, measured in _rows(records):
        cells = " | ".join(_count(measured[name]) for name in ("prompt", *COUNTS))
        agreeing.setdefault((group, cells), []).append(policy_name(record))
    for (group, cells), names in agreeing.items():
        lines.append(f"| {group} | {'all' if len(names) == len(records) else '; '.join(names)} | {cells} |")
    return "\n".join(lines)


def _times_table(records: Sequence[Record]) -> str:
    lines = [
        f"| requests | policy | first token, mean (s) | to `{BASELINE}` | first token, slowest (s) "
        f"| completion, mean (s) | completion, slowest (s) | to `{BASELINE}` |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    for group, record, measured in _rows(records):
        base = _baseline(records, group)
        cells = [
            _time(measured["first_mean_s"]),
            _ratio(measured, base, "first_mean_s"),
            _time(measured["first_slowest_s"]),
            _time(measured["end_mean_s"]),
            _time(measured["end_slowest_s"]),
            _ratio(measured, base, "end_slowest_s"),
        ]
        lines.append(f"| {group} | {policy_name(record)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _rows(records: Sequence[Record]) -> Iterator[tuple[str, Record, dict[str, Any]]]:
    """Every group under every policy, one group after the other."""
    for number, group in enumerate(records[0]["groups"]):
        for record in records:
            yield str(group["group"]), record, record["groups"][number]


def _baseline(records: Sequence[Record], group: str) -> dict[str, Any] | None:
    return next(
        (measured for name, record, measured in _rows(records) if (name, policy_name(record)) == (group, BASELINE)),
        None,
    )


def _remarks(records: Sequence[Record]) -> Iterator[str]:
    """What follows from the records by counting."""
    yield _answers(records)
    workload = records[0]["workload"]
    if workload == "churn":
        yield from _what_fits(records)
    if workload == "distinct":
        yield from _cost_of_coordination(records)


def _answers(records: Sequence[Record]) -> str:
    differing = []
    for number, group in enumerate(records[0]["groups"]):
        if len({digest for record in records for digest in record["groups"][number]["answers_sha256"]}) > 1:
            differing.append(str(group["group"]))
    if not differing:
        return "Answers: the same tokens under every policy and in every repeat."
    return f"Answers: they differ between policies or repeats for {', '.join(differing)}."


def _what_fits(records: Sequence[Record]) -> Iterator[str]:
    held = records[0]["pool_pages"] * records[0]["page_tokens"]
    told = []
    for record in records:
        restored = record["groups"][-1]["restored"][0]
        told.append(f"{policy_name(record)} ({record['policy']['eviction']}) {restored} ({restored / held:.0%})")
    yield f"The pool holds {held} tokens. Restored in the second cycle, and that over what fits: {'; '.join(told)}."


def _cost_of_coordination(records: Sequence[Record]) -> Iterator[str]:
    named = {policy_name(record): record["groups"][0] for record in records}
    if not {BASELINE, "page"} <= named.keys():
        return
    off, page = named[BASELINE], named["page"]
    (off_s, off_sd), (page_s, page_sd) = spread(off["end_slowest_s"]), spread(page["end_slowest_s"])
    yield (
        f"Cost of coordination: `page` took {page['steps'][0]} steps and `{BASELINE}` {off['steps'][0]} "
        f"({page['steps'][0] / off['steps'][0] - 1:+.1%}); the slowest completion {page_s:.3f} ± {page_sd:.3f} s "
        f"against {off_s:.3f} ± {off_sd:.3f} s ({page_s / off_s - 1:+.1%})."
    )


def _count(values: Sequence[int]) -> str:
    return f"{values[0]:,}" if len(set(values)) == 1 else " / ".join(f"{value:,}" for value in values)


def _time(values: Sequence[float]) -> str:
    middle, deviation = spread(values)
    return f"{middle:.3f} ± {deviation:.3f}" if len(values) > 1 else f"{middle:.3f}"


def _ratio(measured: dict[str, Any], base: dict[str, Any] | None, name: str) -> str:
    return "" if base is None else f"{mean(measured[name]) / mean(base[name]):.2f}"
