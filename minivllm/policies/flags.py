"""The options of `minivllm replay`, and what their values may be."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from minivllm.policies.designs import DESIGNS, EVICTING, EVICTIONS


def add_design(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("design")
    group.add_argument("--design", choices=tuple(DESIGNS), default="block-hash", help="default: %(default)s")
    group.add_argument(
        "--eviction", choices=EVICTIONS, default="lru", help=f"of {', '.join(EVICTING)}; default: %(default)s"
    )
    group.add_argument(
        "--capacity", type=_count, default=10_000, metavar="BLOCKS", help="in the traffic's blocks (default: 10000)"
    )
    group.add_argument(
        "--block-size",
        type=_count,
        metavar="TOKENS",
        help="of block-hash and engine (default: 16 for traffic in tokens, else the trace's)",
    )
    group.add_argument("--page-size", type=_count, metavar="TOKENS", help="of radix (default: 1, or the trace's block)")
    group.add_argument("--slots", type=_count, default=4, metavar="NUMBER", help="of slot (default: %(default)s)")
    group.add_argument(
        "--similarity",
        type=float,
        default=0.1,
        metavar="SHARE",
        help="of slot: what must be shared (default: 0.1)",
    )
    group.add_argument("--max-caches", type=_count, metavar="NUMBER", help="of whole-cache (default: what fits)")


def add_traffic(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("traffic")
    group.add_argument(
        "--publication-delay",
        type=_seconds,
        default=0.0,
        metavar="S",
        help="seconds of trace time from a request's arrival until others find what it computed (default: 0)",
    )
    group.add_argument(
        "--trace-block-size", type=_count, metavar="TOKENS", help="of the trace's blocks (default: inferred)"
    )
    group.add_argument(
        "--timestamp-unit",
        type=_positive,
        default=1e-3,
        metavar="S",
        help="of the trace (default: 0.001)",
    )


def add_sizing(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("sizing", "what a capacity costs in GiB and saves in seconds of prefill")
    group.add_argument("--model-config", type=Path, metavar="FILE", help="a Hugging Face config.json")
    group.add_argument("--kv-shape", type=_shape, metavar="LAYERS,KV_HEADS,HEAD_DIM", help="instead of a config.json")
    group.add_argument(
        "--kv-bytes", type=_positive, default=2.0, metavar="BYTES", help="of one key or value element (default: 2)"
    )
    group.add_argument("--prefill-speed", type=_positive, metavar="TOKENS_PER_S", help="as you measured it")


def add_output(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("output")
    group.add_argument("--sweep", action="store_true", help="every design and eviction, over eight capacities")
    group.add_argument("--json", action="store_true", help="print one JSON object")
    group.add_argument("--labbook", type=Path, metavar="FILE", help="append a record to this lab notebook")
    group.add_argument("--figure", type=Path, metavar="FILE", help="draw the sweep into this PNG")


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is no count: give a whole number of 1 or more")
    return int(text)


def _seconds(text: str) -> float:
    value = _number(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text!r} lies in the past: give 0 or more seconds")
    return value


def _positive(text: str) -> float:
    value = _number(text)
    if value <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is too small: give a number above 0")
    return value


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} is no number")
    return value


def _shape(text: str) -> tuple[int, int, int]:
    try:
        num_layers, num_kv_heads, head_dim = (_count(part) for part in text.split(","))
    except (ValueError, argparse.ArgumentTypeError):
        raise argparse.ArgumentTypeError(f"{text!r} is no shape: give LAYERS,KV_HEADS,HEAD_DIM as 30,3,64") from None
    return num_layers, num_kv_heads, head_dim
