#!/usr/bin/env python3
"""Compare every publication and single flight policy of the mini engine on eight workloads, in one run.

    .venv/bin/python scripts/bench-reuse.py --report docs/reuse            # everything; the machine should be idle
    .venv/bin/python scripts/bench-reuse.py --quick                        # the tiny model: shows that it works
    .venv/bin/python scripts/bench-reuse.py --from labbook.md --report docs/reuse      # the report from the records

One record for each workload and policy goes to the labbook. Without --report the report is printed, without figures.
"""

from __future__ import annotations

import argparse
import importlib.util
import shlex
import sys
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tqdm import tqdm

from labbook.book import Labbook, default_name
from labbook.errors import LabbookError, UsageError
from scripts.bench_reuse.workloads import NAMES, QUICK, Sizes, Workload, all_workloads

FAILED, WRONG_USAGE, INTERRUPTED = 1, 2, 130
MODEL, QUICK_MODEL = "smollm2-135m", "tiny"


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        if options.repeats < 1:
            raise UsageError(f"--repeats is {options.repeats}: at least 1 is needed")
        _check_report(options.report)
        book, run = (Labbook(options.source), options.run) if options.source else _measure(options)
        _tell(book, run, options.report)
    except UsageError as error:
        return _fail(str(error), WRONG_USAGE)
    except (LabbookError, RuntimeError) as error:
        return _fail(str(error), FAILED)
    except KeyboardInterrupt:
        return _fail("stopped; the workloads that were finished are in the labbook", INTERRUPTED)
    return 0


def _check_report(folder: Path | None) -> None:
    """Whatever would keep the report from being written is told before an hour of measuring."""
    if folder is None:
        return
    if importlib.util.find_spec("matplotlib") is None:
        raise UsageError("--report draws figures and needs matplotlib: install the extra `plot`")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot make the folder {folder} of the report: {error.strerror}") from None


def _measure(options: argparse.Namespace) -> tuple[Labbook, str]:
    from minivllm.models.errors import ModelError
    from minivllm.models.loading import load_model

    book = Labbook(options.labbook)
    book.check_writable_place()
    model = options.model or (QUICK_MODEL if options.quick else MODEL)
    try:
        loaded = load_model(model)
    except ModelError as error:
        raise LabbookError(str(error)) from None
    sizes = QUICK if options.quick else Sizes()
    made = all_workloads(lambda text: loaded.tokenizer.encode(text, add_special_tokens=False), sizes)
    workloads = [workload for workload in made if workload.name in options.workloads]
    conditions = _conditions(options, loaded.name)
    _run_all(loaded, workloads, options.repeats, sizes, conditions, book)
    return book, str(conditions["run"])


def _run_all(
    loaded: Any, workloads: list[Workload], repeats: int, sizes: Sizes, conditions: dict[str, Any], book: Labbook
) -> None:
    """Every workload; its repeats take turns over the policies. A finished workload is in the labbook at once."""
    from scripts.bench_reuse.drive import Measured, estimated_s, run_workload, warm_up
    from scripts.bench_reuse.policies import policies_of
    from scripts.bench_reuse.records import record_of

    total_s = sum(estimated_s(workload, policy) for workload in workloads for policy in policies_of(workload)) * repeats
    warm_up(loaded)
    layout = "{desc} {percentage:3.0f}%|{bar}| {elapsed} gone, {remaining} left"
    with tqdm(total=total_s, bar_format=layout, disable=not sys.stderr.isatty()) as bar:
        for workload in workloads:
            policies = policies_of(workload)
            measured: dict[str, list[Measured]] = {policy.name: [] for policy in policies}
            for _ in range(repeats):
                for policy in policies:
                    bar.set_description_str(f"{workload.name}, {policy.name}")
                    measured[policy.name].append(run_workload(loaded, workload, policy))
                    bar.update(estimated_s(workload, policy))
            for policy in policies:
                book.append(record_of(workload, policy, measured[policy.name], conditions, sizes))


def _conditions(options: argparse.Namespace, model: str) -> dict[str, Any]:
    from minivllm.backend import device
    from minivllm.server.version import version

    words = ["--model", model] if options.model else []
    words += ["--quick"] if options.quick else []
    words += ["--repeats", str(options.repeats)] if options.repeats != 3 else []
    words += ["--workloads", *options.workloads] if set(options.workloads) != set(NAMES) else []
    command = ".venv/bin/python scripts/bench-reuse.py"
    run = uuid.uuid4().hex[:8]
    return {
        "run": run,
        "command": f"{command} {shlex.join([*words, '--report', 'docs/reuse'])}",
        "rebuild": f"{command} --from labbook.md --run {run} --report docs/reuse",
        "label": options.label,
        "model": model,
        "engine_version": version(),
        "device": device,
    }


def _tell(book: Labbook, run: str | None, report: Path | None) -> None:
    """The report is always made from what the labbook holds, so that it can be made again."""
    from scripts.bench_reuse.records import records_of_run
    from scripts.bench_reuse.report import as_markdown, write_report

    records = records_of_run(book, run)
    if report is None:
        print(as_markdown(records), end="")
    else:
        print(f"report {write_report(records, report)}, from {len(records)} records of {book.path}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    add = parser.add_argument
    add("--model", help=f"a registered name, a folder or a file ({MODEL}; with --quick {QUICK_MODEL})")
    add("--quick", action="store_true", help="short prompts and answers")
    add("--workloads", nargs="+", choices=NAMES, default=list(NAMES), metavar="NAME", help=f"of {', '.join(NAMES)}")
    add("--repeats", type=int, default=3, metavar="N", help="runs of each workload under each policy (%(default)s)")
    add("--label", default="", help="a word of yours that finds the records again")
    add("--labbook", type=Path, default=default_name(), metavar="FILE", help="append here (LABBOOK, else labbook.md)")
    add("--report", type=Path, metavar="DIR", help="write report.md and its figures into this folder")
    add("--from", dest="source", type=Path, metavar="FILE", help="measure nothing: report what this labbook holds")
    add("--run", metavar="ID", help="with --from, which run (the latest)")
    return parser


def _fail(message: str, status: int) -> int:
    print(f"bench-reuse: {message}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
