"""`make bench`: one table from one run. minivllm against mlx_lm as installed, and against mlx_lm with the same BLAS.

Every side runs in a process of its own (scripts/bench_side.py), one after the other, on the same weights, prompts and
threads. A figure is the median of its repeats with the smallest and the largest. The machine should be idle.

    .venv/bin/python scripts/bench.py              # everything; mlx_lm as installed takes most of the time
    .venv/bin/python scripts/bench.py --quick      # small sizes: shows that it works, not how fast
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "scripts" / "bench_side.py"
LABELS = {
    "minivllm": "minivllm",
    "mlx_lm": "mlx_lm as installed",
    "mlx_lm-blas": "mlx_lm, same BLAS, float32",
}
BASELINE = "mlx_lm-blas"


@dataclass(frozen=True)
class Sizes:
    """Prompt lengths and decoded tokens, in tokens."""

    prefill: tuple[int, int] = (512, 2048)
    decode: int = 32
    ttft: int = 1200
    repeats: int = 3

    def arguments(self, side: str) -> list[str]:
        is_slow = side == "mlx_lm"  # on Linux CPU one repeat takes minutes
        repeats = ["--repeats", "1", "--no-warm-up"] if is_slow else ["--repeats", str(self.repeats)]
        lengths = [str(length) for length in self.prefill]
        return [
            "--prefill",
            *lengths,
            "--decode",
            str(self.decode),
            "--ttft",
            str(self.ttft),
            *repeats,
        ]


QUICK = Sizes(prefill=(32, 64), decode=4, ttft=64, repeats=1)


def run_side(side: str, model: str, sizes: Sizes) -> dict[str, Any]:
    """The figures of one side. Raises RuntimeError with the end of its output when it fails."""
    command = [sys.executable, str(SCRIPT), "--side", side, "--model", model, *sizes.arguments(side)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    child = subprocess.run(command, capture_output=True, text=True, env=environment)
    if child.returncode:
        raise RuntimeError(f"{LABELS[side]} failed:\n{child.stderr[-2000:]}")
    result: dict[str, Any] = json.loads(child.stdout.splitlines()[-1])
    return result


def table(results: dict[str, dict[str, Any]], sizes: Sizes) -> str:
    """A Markdown table: a row per figure, a column per side, and the ratio of minivllm to the baseline."""
    rows = [
        *[(f"prefill, {length} tokens (tokens/s)", f"prefill_{length}") for length in sizes.prefill],
        ("decode, 1 sequence (tokens/s)", "decode_1"),
        ("decode, 8 sequences (tokens/s, together)", "decode_8"),
        (f"first token, cold, {sizes.ttft} tokens (s)", "cold_ttft_s"),
        (f"first token, warm, {sizes.ttft} tokens (s)", "warm_ttft_s"),
    ]
    sides = list(results)
    lines = [
        "| | " + " | ".join(LABELS[side] for side in sides) + f" | minivllm / {LABELS[BASELINE]} |",
        "|---|" + "---|" * (len(sides) + 1),
    ]
    for title, key in rows:
        cells = [_cell(results[side]["figures"][key]) for side in sides]
        lines.append(f"| {title} | {' | '.join(cells)} | {_ratio(results, key)} |")
    warm_over_cold = [f"{_warm_over_cold(results[side]):.3f}" for side in sides]
    lines.append(f"| warm / cold | {' | '.join(warm_over_cold)} | |")
    eight_over_one = [
        f"{_median(results, side, 'decode_8') / _median(results, side, 'decode_1'):.2f}" for side in sides
    ]
    lines.append(f"| 8 sequences / 1 sequence | {' | '.join(eight_over_one)} | |")
    memory = [f"{results[side]['peak_memory_mb']:.0f}" for side in sides]
    lines.append(f"| peak memory (MiB) | {' | '.join(memory)} | |")
    if BASELINE in results and "minivllm" in results:
        versus_single = _median(results, "minivllm", "decode_8") / _median(results, BASELINE, "decode_1")
        lines.append(
            f"\n8 sequences of minivllm against 1 of {LABELS[BASELINE]}: {versus_single:.1f} times the tokens/s."
        )
    return "\n".join(lines)


def _cell(values: list[float]) -> str:
    digits = 3 if statistics.median(values) < 10 else 1
    middle = f"{statistics.median(values):.{digits}f}"
    return middle if len(values) == 1 else f"{middle} ({min(values):.{digits}f}–{max(values):.{digits}f})"


def _median(results: dict[str, dict[str, Any]], side: str, key: str) -> float:
    return statistics.median(results[side]["figures"][key])


def _warm_over_cold(result: dict[str, Any]) -> float:
    return statistics.median(result["figures"]["warm_ttft_s"]) / statistics.median(result["figures"]["cold_ttft_s"])


def _ratio(results: dict[str, dict[str, Any]], key: str) -> str:
    if BASELINE not in results or "minivllm" not in results:
        return ""
    return f"{_median(results, 'minivllm', key) / _median(results, BASELINE, key):.2f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--model", default="smollm2-135m", help="name, folder or file of the model (default: smollm2-135m)"
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, one repeat")
    parser.add_argument("--sides", nargs="+", choices=list(LABELS), default=list(LABELS), help="which sides to run")
    options = parser.parse_args()
    sizes = QUICK if options.quick else Sizes()
    results = {}
    with tqdm(options.sides, unit="side", disable=not sys.stderr.isatty()) as progress:
        for side in progress:
            progress.set_description(LABELS[side])
            try:
                results[side] = run_side(side, options.model, sizes)
            except RuntimeError as error:
                print(f"bench: {error}", file=sys.stderr)
                return 1
    print(f"{options.model} on {_machine()}; median of {sizes.repeats} (smallest–largest), mlx_lm as installed once\n")
    print(table(results, sizes))
    return 0


def _machine() -> str:
    sys.path.insert(0, str(ROOT))
    from minivllm.backend import device

    return f"{device}, Python {platform.python_version()}, {os.cpu_count()} cores"


if __name__ == "__main__":
    sys.exit(main())
