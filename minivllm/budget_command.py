"""`minivllm memory`: what fits into how much memory."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from minivllm.budget import MemoryBudget, ModelShape, human_bytes, memory_budget, parse_bytes, read_shape
from minivllm.models.errors import ModelError
from minivllm.models.registry import DEFAULT_MODEL

WEIGHT_FILES = ("*.safetensors", "*.npz")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    memory = commands.add_parser("memory", help="what weights and KV cache take of a memory budget")
    memory.set_defaults(run=run)
    add = memory.add_argument
    add(
        "--model",
        default=DEFAULT_MODEL,
        metavar="NAME",
        help="a registered name, a folder, or any Hugging Face config.json; no weights needed (default: %(default)s)",
    )
    add(
        "--context",
        type=int,
        default=32_768,
        metavar="TOKENS",
        help="length of one conversation (default: %(default)s)",
    )
    add(
        "--kv-bits",
        type=int,
        choices=(32, 16, 8, 4),
        default=16,
        help="bits of a cached number; 16 means no quantization (default: %(default)s)",
    )
    add("--kv-group-size", type=int, choices=(32, 64, 128), default=64, help="numbers that share a scale (%(default)s)")
    add("--budget", default="24GiB", metavar="BYTES", help="memory for everything, as 24GiB or 24GB (%(default)s)")
    add("--weights", metavar="BYTES", help="size of the weights (default: of the files, else by the config)")
    add("--page-size", type=int, default=16, metavar="TOKENS", help="tokens of a page (default: %(default)s)")
    add("--json", action="store_true", help="print one JSON object, bytes as whole numbers")


def run(arguments: argparse.Namespace) -> int:
    path = _config_path(arguments.model)
    weights = _weights_bytes(path, arguments.weights)
    budget = memory_budget(
        read_shape(path),
        context_tokens=arguments.context,
        kv_bits=arguments.kv_bits,
        kv_group_size=arguments.kv_group_size,
        budget_bytes=parse_bytes(arguments.budget),
        page_size=arguments.page_size,
        weights_bytes=weights,
    )
    if arguments.json:
        print(json.dumps(as_json(budget)))
        return 0
    print(as_text(budget, arguments.model, "estimated from the config" if weights is None else "as given or on disk"))
    return 0


def as_json(budget: MemoryBudget) -> dict[str, object]:
    return {**asdict(budget), "free_bytes": budget.free_bytes, "num_conversations": budget.num_conversations}


def as_text(budget: MemoryBudget, model: str, weights_source: str) -> str:
    shape = budget.shape
    kv_bytes = budget.num_conversations * budget.conversation_bytes
    bits = f"{budget.kv_bits} bits" + ("" if budget.kv_bits >= 16 else ", scales and biases included")
    rows = [
        ("weights", budget.weights_bytes, f"{shape.num_parameters:,} parameters, {weights_source}"),
        ("buffers", budget.buffers_bytes, "the largest arrays of one forward pass"),
        ("KV cache", kv_bytes, f"{budget.num_conversations} conversations of {budget.context_tokens:,} tokens"),
        ("free", budget.free_bytes - kv_bytes, ""),
        ("budget", budget.budget_bytes, ""),
    ]
    lines = [
        f"{model}: {_shape_text(shape)}",
        f"{budget.bytes_per_token:,} bytes per token of KV cache at {bits}; {budget.bytes_per_page:,} per page",
        f"{human_bytes(budget.conversation_bytes)} for one conversation of {budget.context_tokens:,} tokens",
        "",
        *(f"{name:<10}{human_bytes(size):>24}  {told}".rstrip() for name, size, told in rows),
    ]
    if budget.free_bytes < 0:
        lines += ["", f"weights and buffers exceed the budget by {human_bytes(-budget.free_bytes)}: nothing fits"]
    if budget.kv_bits < 16:
        lines += [
            "",
            "Quantized keys and values change the output: measure what that costs before you count on the room.",
        ]
    return "\n".join([*lines, *(f"note: {note}" for note in shape.notes)])


def _shape_text(shape: ModelShape) -> str:
    return f"{shape.num_layers} layers, {shape.num_kv_heads} KV heads of size {shape.head_dim}"


def _config_path(model: str) -> Path:
    path = Path(model).expanduser()
    if path.is_file() and path.suffix == ".json":
        return path
    if path.is_dir() and not (path / "config.json").is_file():
        raise ModelError(f"the folder {path} has no config.json: give a model's folder, or the file itself")
    if path.is_dir():
        return path
    if path.suffix == ".json":
        raise ModelError(f"there is no file {path}")
    from minivllm.models.registry import resolve

    return resolve(model)


def _weights_bytes(path: Path, given: str | None) -> int | None:
    """What was given, else the size of the weight files in the folder, else None."""
    if given is not None:
        return parse_bytes(given)
    if not path.is_dir():
        return None
    return sum(file.stat().st_size for pattern in WEIGHT_FILES for file in path.glob(pattern)) or None
