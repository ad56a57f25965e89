#!/usr/bin/env python3
"""Time one decode step's attention against the length of the context, on a Mac: three ways to reach the KV cache.

    .venv/bin/python scripts/bench-attention.py                  # on an Apple GPU; the machine should be idle
    .venv/bin/python scripts/bench-attention.py --quick          # tiny sizes, anywhere: shows that it works

The paged kernel reads pages where they are; "gather, then fused" copies them together and calls MLX's own kernel;
mlx-lm keeps a contiguous cache. Times are medians of the repeats, bytes those that must pass through memory at the
least, and their rate is compared with what a plain copy reaches on the same machine. One record for each line goes to
the labbook.
Without an Apple GPU `--quick` runs the kernel in the runner on the CPU, and its times say nothing about Metal.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import uuid
from collections.abc import Sequence
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tqdm import tqdm

from labbook.book import Labbook, default_name
from labbook.errors import LabbookError, UsageError
from labbook.record import RECORD_VERSION, Record, environment_stamp, now_iso

if TYPE_CHECKING:
    from minivllm.attention.paged_kernels import MakeKernel
    from scripts.bench_attention.subjects import Shape, Subject

FAILED, WRONG_USAGE, INTERRUPTED = 1, 2, 130
CONTEXTS, QUICK_CONTEXTS = (256, 1024, 4096, 16384), (17, 64)
COPY_MIB, QUICK_COPY_MIB = 512, 4
MIB, GB = 2**20, 1e9
TOLERANCE = 2e-2  # of answers through all layers: only a wrong key or value is farther off


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        if options.repeats < 1 or min(options.contexts or [1]) < 1 or options.rows < 1:
            raise UsageError("--repeats, --rows and --contexts are at least 1")
        records = _measure(options)
    except UsageError as error:
        return _fail(str(error), WRONG_USAGE)
    except (LabbookError, RuntimeError) as error:
        return _fail(str(error), FAILED)
    except KeyboardInterrupt:
        return _fail("stopped; the contexts that were finished are in the labbook", INTERRUPTED)
    print(json.dumps(records, indent=2) if options.json else as_table(records))
    return 0


def _measure(options: argparse.Namespace) -> list[Record]:
    from minivllm.backend import is_cpu, mx
    from scripts.bench_attention.subjects import Shape, make_subjects

    on_metal = mx.metal.is_available() and not is_cpu
    if not on_metal and not options.quick:
        raise UsageError("this measures an Apple GPU, and MLX sees none here: --quick shows that the script works")
    book = Labbook(options.labbook)
    book.check_writable_place()
    contexts = options.contexts or (QUICK_CONTEXTS if options.quick else CONTEXTS)
    shape = Shape(rows=options.rows, layers=2 if options.quick else options.layers, dtype=options.dtype)
    conditions = _conditions(options, shape, on_metal)
    records = []
    with tqdm(contexts, unit="context", disable=not sys.stderr.isatty()) as bar:
        for context in bar:
            subjects = make_subjects(shape, context, _kernel_maker(on_metal))
            _require_equal_answers(subjects)
            for subject in subjects:
                seconds = [_seconds(subject) for _ in range(options.repeats)]
                records.append(book.append({**conditions, **_result(subject, shape, context, seconds)}))
    return records


def _kernel_maker(on_metal: bool) -> MakeKernel:
    from minivllm.backend import mx
    from minivllm.metal.runner import metal_kernel

    return mx.fast.metal_kernel if on_metal else metal_kernel


def _require_equal_answers(subjects: list[Subject]) -> None:
    """Also the first run of each, which compiles."""
    from minivllm.backend import mx

    answers = [subject.step().astype(mx.float32) for subject in subjects]
    for subject, answer in zip(subjects, answers, strict=True):
        difference = float(mx.abs(answer - answers[-1]).max())
        if not difference <= TOLERANCE:
            raise RuntimeError(f"{subject.name} differs from {subjects[-1].name} by {difference}: nothing was timed")


def _seconds(subject: Subject) -> float:
    from minivllm.backend import mx

    began = time.perf_counter()
    mx.eval(subject.step())
    return time.perf_counter() - began


def _result(subject: Subject, shape: Shape, context: int, seconds: list[float]) -> Record:
    return {
        "context_tokens": context,
        "subject": subject.name,
        "step_s": [round(one, 9) for one in seconds],
        "moved_bytes": subject.times_moved * shape.kv_bytes(context),
        "recorded_at": now_iso(),
    }


def _conditions(options: argparse.Namespace, shape: Shape, on_metal: bool) -> dict[str, Any]:
    from minivllm.backend import device
    from minivllm.server.version import version

    return {
        "version": RECORD_VERSION,
        "lab": "prefix-cache",
        "experiment": "attention-benchmark",
        "run": uuid.uuid4().hex[:8],
        "label": options.label,
        "engine": "minivllm",
        "engine_version": version(),
        "mlx_version": metadata.version("mlx"),
        "device": device,
        "kernel_ran_on": "Metal" if on_metal else "CPU, in the runner",
        "shape": asdict(shape),
        "copy_bytes_per_s": round(_copy_bytes_per_s((QUICK_COPY_MIB if options.quick else COPY_MIB) * MIB)),
        "environment": environment_stamp(),
    }


def _copy_bytes_per_s(num_bytes: int) -> float:
    """What a plain pass over memory reaches: every byte is read and another one written. The best of five."""
    from minivllm.backend import mx

    source = mx.zeros(num_bytes // 4)
    mx.eval(source)
    times = []
    for _ in range(5):
        began = time.perf_counter()
        mx.eval(source + 1)
        times.append(time.perf_counter() - began)
    return 2 * num_bytes / min(times)


def as_table(records: list[Record]) -> str:
    first = records[0]
    lines = [
        f"Attention of one decode step on {first['device']}, MLX {first['mlx_version']}; the kernel ran on "
        f"{first['kernel_ran_on']}",
        f"{_listed(first['shape'])}; a copy moves {first['copy_bytes_per_s'] / GB:.1f} GB/s",
    ]
    if first["kernel_ran_on"] != "Metal":
        lines.append("The times show that the script works. They say nothing about Metal.")
    lines += [
        "",
        "| context (tokens) | way | step (ms), median [least, most] | moved (MiB) | rate (GB/s) | of a copy (%) |",
        "|---|---|---|---|---|---|",
    ]
    return "\n".join([*lines, *(_row(record) for record in records)])


def _row(record: Record) -> str:
    step_s = median(record["step_s"])
    rate = record["moved_bytes"] / step_s
    return (
        f"| {record['context_tokens']} | {record['subject']} "
        f"| {1000 * step_s:.3f} [{1000 * min(record['step_s']):.3f}, {1000 * max(record['step_s']):.3f}] "
        f"| {record['moved_bytes'] / MIB:.2f} | {rate / GB:.2f} | {100 * rate / record['copy_bytes_per_s']:.1f} |"
    )


def _listed(shape: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in shape.items())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    add = parser.add_argument
    add("--quick", action="store_true", help="2 layers and short contexts, in the runner where there is no Apple GPU")
    add("--contexts", type=int, nargs="+", metavar="TOKENS", help=f"lengths ({', '.join(map(str, CONTEXTS))})")
    add("--rows", type=int, default=1, metavar="N", help="sequences decoded together (%(default)s)")
    add(
        "--layers",
        type=int,
        default=30,
        metavar="N",
        help="layers, each with a cache of its own (%(default)s)",
    )
    add("--dtype", choices=("float16", "bfloat16", "float32"), default="float16", help="of everything (%(default)s)")
    add("--repeats", type=int, default=10, metavar="N", help="timed steps of each way (%(default)s)")
    add("--label", default="", help="a word of yours that finds the records again")
    add("--labbook", type=Path, default=default_name(), metavar="FILE", help="append here (LABBOOK, else labbook.md)")
    add("--json", action="store_true", help="print the records instead of the table")
    return parser


def _fail(message: str, status: int) -> int:
    print(f"bench-attention: {message}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
