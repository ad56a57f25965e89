"""`minivllm evaluate`: what quantized keys and values cost, and what they save, in one table."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minivllm.config import ConfigError, EngineConfig
from minivllm.models.registry import DEFAULT_MODEL

if TYPE_CHECKING:
    from minivllm.models.loading import LoadedModel

Keep = Callable[[list[dict[str, Any]], Path], None]
FULL = "full precision"
WINDOW_TOKENS = 512
DEPTHS = (0.0, 0.25, 0.5, 0.75, 1.0)
NUM_PROMPTS, PROMPT_TOKENS, NUM_OUTPUT_TOKENS = 8, 128, 32


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser], keep: Keep) -> None:
    """`keep` writes records: this package knows no labbook, its command line does."""
    evaluate = commands.add_parser("evaluate", help="what a quantized KV cache costs on a text")
    evaluate.set_defaults(run=run, keep=keep)
    add = evaluate.add_argument
    add("--model", default=DEFAULT_MODEL, metavar="NAME", help="as of serve (default: %(default)s)")
    add("--kv-bits", type=int, nargs="+", choices=(8, 4), default=[8, 4], help="which to compare (default: both)")
    add("--kv-group-size", type=int, choices=(32, 64, 128), default=64, help="numbers that share a scale (%(default)s)")
    add("--quantized-kv-start", type=int, default=0, metavar="TOKENS", help="head in full precision (%(default)s)")
    add("--text", type=Path, metavar="FILE", help="held-out UTF-8 text (default: one that comes with the package)")
    add("--tokens", type=int, default=8_192, metavar="NUMBER", help="at most so many of it (default: %(default)s)")
    add("--labbook", type=Path, metavar="FILE", help="append a record of every precision here")
    add("--json", action="store_true", help="print one JSON object instead of the tables")


def run(arguments: argparse.Namespace) -> int:
    from minivllm.models.loading import load_model

    text = read_text(arguments.text)
    if arguments.tokens < 2:
        raise ConfigError(f"--tokens {arguments.tokens} is too few: a likelihood needs at least 2")
    loaded = load_model(arguments.model)
    token_ids = loaded.tokenizer.encode(text)[: arguments.tokens]
    if len(token_ids) < 2:
        raise ConfigError("the text has fewer than 2 tokens: give a longer one")
    configs = {
        f"{bits} bits": EngineConfig(
            num_pages=1,
            kv_bits=bits,
            kv_group_size=arguments.kv_group_size,
            quantized_kv_start=arguments.quantized_kv_start,
        )
        for bits in dict.fromkeys(arguments.kv_bits)
    }
    result = evaluate(loaded, configs, token_ids)
    if arguments.labbook is not None:
        arguments.keep(records_of(result), arguments.labbook)
    print(json.dumps(result) if arguments.json else as_text(result))
    return 0


def read_text(path: Path | None) -> str:
    if path is None:
        return resources.files("minivllm").joinpath("texts/held_out.txt").read_text(encoding="utf-8")
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"the text {path} is not UTF-8: byte {error.start} cannot be read") from None
    except OSError as error:
        raise ConfigError(f"cannot read the text {path}: {error.strerror}") from None


def evaluate(loaded: LoadedModel, configs: dict[str, EngineConfig], token_ids: list[int]) -> dict[str, Any]:
    """Every measurement for full precision and each of the settings, as plain values."""
    from dataclasses import replace

    from minivllm import evaluate as cost
    from minivllm.llm import LLM

    num_pages = 2 * (-(-max(WINDOW_TOKENS, NUM_PROMPTS * (PROMPT_TOKENS + NUM_OUTPUT_TOKENS)) // 16) + 1)
    heads = max((config.quantized_kv_start for config in configs.values()), default=0)
    num_pages += 2 * -(-heads // 16)
    full = LLM(loaded, EngineConfig(num_pages=num_pages))
    others = {name: LLM(loaded, replace(config, num_pages=num_pages)) for name, config in configs.items()}
    everyone = {FULL: full, **others}
    windows = cost.windows_of(token_ids, WINDOW_TOKENS)
    prompts = [window[:PROMPT_TOKENS] for window in windows[:NUM_PROMPTS]]
    steps = len(windows) + 3 * len(everyone)
    with _progress(steps) as step:
        quality = cost.quality(full, others, windows, step)
        rows: dict[str, dict[str, Any]] = {}
        for name, llm in everyone.items():
            row: dict[str, Any] = {**cost.bytes_of(llm), **(asdict(quality[name]) if name in quality else {})}
            row["greedy_agreement"] = cost.greedy_agreement(full, llm, prompts, NUM_OUTPUT_TOKENS)
            step()
            facts = cost.planted_facts(llm, token_ids, DEPTHS, min(WINDOW_TOKENS, len(token_ids)))
            row["planted_facts"] = {
                f"{depth:g}": {"found": hits, "asked": asked} for depth, (hits, asked) in facts.items()
            }
            step()
            row["speed"] = asdict(cost.speed(llm, windows[0]))
            step()
            rows[name] = row
        layers = {
            name: [asdict(error) for error in cost.layer_errors(full, windows[0], llm.engine.layout.kv_format)]
            for name, llm in others.items()
        }
    for llm in everyone.values():
        llm.close()
    return {
        "model": loaded.name,
        "num_text_tokens": len(token_ids),
        "window_tokens": WINDOW_TOKENS,
        "kv_dtype": full.engine.kv_dtype,
        "precisions": rows,
        "layer_errors": layers,
    }


def as_text(result: dict[str, Any]) -> str:
    """Tables in Markdown: cost and memory side by side, then the rounding error of every layer."""
    rows = result["precisions"]
    lines = [
        f"{result['model']} on {result['num_text_tokens']:,} tokens in windows of {result['window_tokens']}; "
        f"full precision is {result['kv_dtype']}",
        "",
        "| keys and values | bytes per token | mean KL (nats) | 99th percentile | perplexity | same top token "
        "| equal greedy text | facts found | prefill (tokens/s) | decode (tokens/s) |",
        "|---|" + "--:|" * 9,
        *(_row(name, row, rows) for name, row in rows.items()),
        "",
        "Rounding error of each layer's keys and values, relative to their root mean square:",
        "",
        "| layer | " + " | ".join(f"keys, {name} | values, {name}" for name in result["layer_errors"]) + " |",
        "|--:|" + "--:|" * 2 * len(result["layer_errors"]),
    ]
    for errors in zip(*result["layer_errors"].values(), strict=True):
        cells = [f"{error['keys']:.2%} | {error['values']:.2%}" for error in errors]
        lines.append(f"| {errors[0]['layer']} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _row(name: str, row: dict[str, Any], rows: dict[str, dict[str, Any]]) -> str:
    facts = row["planted_facts"].values()
    found = f"{sum(fact['found'] for fact in facts)} of {sum(fact['asked'] for fact in facts)}"
    prefill, decode = row["speed"]["prefill"], row["speed"]["decode"]
    if "divergence" in row:
        told, perplexity = row["divergence"], row["perplexity"]
        change = perplexity["quantized"] / perplexity["full"] - 1
        quality = [
            f"{told['mean_kl_nats']:.4f}",
            f"{told['p99_kl_nats']:.3f}",
            f"{perplexity['quantized']:.3f} ({change:+.2%})",
            f"{told['same_top_share']:.1%}",
        ]
    else:
        full = next((other["perplexity"]["full"] for other in rows.values() if "perplexity" in other), None)
        quality = ["0", "0", "" if full is None else f"{full:.3f}", "100.0%"]
    cells = [
        name,
        f"{row['bytes_per_token']:,}",
        *quality,
        f"{row['greedy_agreement']:.1%}",
        found,
        f"{prefill[0]:.0f} ({prefill[1]:.0f} to {prefill[2]:.0f})",
        f"{decode[0]:.1f} ({decode[1]:.1f} to {decode[2]:.1f})",
    ]
    return "| " + " | ".join(cells) + " |"


def records_of(result: dict[str, Any]) -> list[dict[str, Any]]:
    """One labbook record for each precision."""
    shared = {name: result[name] for name in ("model", "num_text_tokens", "window_tokens", "kv_dtype")}
    return [
        {
            "lab": "kv-quantization",
            "experiment": "evaluate",
            "label": name,
            **shared,
            **row,
            "layer_errors": result["layer_errors"].get(name, []),
        }
        for name, row in result["precisions"].items()
    ]


@contextmanager
def _progress(steps: int) -> Iterator[Callable[[], None]]:
    from tqdm import tqdm

    with tqdm(total=steps, unit="part", leave=False, disable=not sys.stderr.isatty()) as bar:
        yield lambda: bar.update() and None
