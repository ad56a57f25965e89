"""One record for each workload and policy: conditions, and every repeat of every number."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from labbook.book import Labbook
from labbook.errors import LabbookError
from labbook.record import RECORD_VERSION, Record, environment_stamp, now_iso
from scripts.bench_reuse.drive import Measured
from scripts.bench_reuse.policies import BASE, Policy
from scripts.bench_reuse.workloads import Sizes, Workload

LAB, EXPERIMENT = "prefix-cache", "reuse-benchmark"


def record_of(
    workload: Workload, policy: Policy, repeats: list[Measured], conditions: dict[str, Any], sizes: Sizes
) -> Record:
    """`conditions` are those of the whole run: run, command, label, model, engine_version, device."""
    return {
        "version": RECORD_VERSION,
        "lab": LAB,
        "experiment": EXPERIMENT,
        **conditions,
        "engine": "minivllm",
        "workload": workload.name,
        "shape": workload.shape,
        "policy": asdict(policy),
        "page_tokens": BASE.page_size,
        "pool_pages": workload.num_pages(BASE.page_size),
        "max_batched_tokens": BASE.max_batched_tokens,
        "max_active_requests": BASE.max_active_requests,
        "sizes_tokens": asdict(sizes),
        "repeats": len(repeats),
        "groups": [
            {"group": group, **{name: [run[group][name] for run in repeats] for name in repeats[0][group]}}
            for group in repeats[0]
        ],
        "environment": environment_stamp(),
        "recorded_at": now_iso(),
    }


def records_of_run(book: Labbook, run: str | None = None) -> list[Record]:
    """The records of one run, the latest unless it is named. Raises LabbookError when there is none."""
    records = book.select(lab=LAB, experiment=EXPERIMENT)
    if not records:
        raise LabbookError(f"{book.path} holds no record of this benchmark: run it with --labbook {book.path.name}")
    run = run or records[-1]["run"]
    chosen = [record for record in records if record["run"] == run]
    if not chosen:
        raise LabbookError(f"{book.path} holds no run {run!r}: its runs are {_listed(records)}")
    return chosen


def _listed(records: list[Record]) -> str:
    return ", ".join(dict.fromkeys(record["run"] for record in records))
