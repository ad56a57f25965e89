"""`minivllm replay`: traffic through cache designs, without a model."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from minivllm.config import ConfigError
from minivllm.policies.designs import Setup
from minivllm.policies.experiment import Sizing, measure, sweep
from minivllm.policies.figures import sweep_figure
from minivllm.policies.flags import add_design, add_output, add_sizing, add_traffic
from minivllm.policies.report import lines
from minivllm.policies.sizing import KVShape
from minivllm.policies.source import Source, open_source
from minivllm.policies.trace import TraceError
from minivllm.policies.traffic import TrafficError

BLOCK_TOKENS = 16  # for traffic in tokens, as vLLM and minivllm have it

Module = Callable[[], Any]


def add_replay(commands: Any, book: Module, figures: Module) -> None:
    """Add the command. `book` and `figures` import labbook's modules of that name, when they are needed."""
    parser = commands.add_parser(
        "replay", help="run traffic through cache designs, without a model", description=__doc__
    )
    parser.set_defaults(run=lambda arguments: _run(arguments, book, figures))
    parser.add_argument(
        "trace",
        metavar="TRACE",
        help="a public trace (JSON lines, gzipped or not), or workload:NAME[:SEED] for generated traffic",
    )
    add_design(parser)
    add_traffic(parser)
    add_sizing(parser)
    add_output(parser)


def _run(arguments: argparse.Namespace, book: Module, figures: Module) -> int:
    _check_outputs(arguments, book)
    try:
        record = _record(arguments)
    except (TraceError, TrafficError) as error:
        print(f"minivllm: {error}", file=sys.stderr)
        return 1
    except ValueError as error:
        raise ConfigError(str(error)) from None
    print(json.dumps(record) if arguments.json else "\n".join(lines(record)))
    if arguments.labbook:
        book().Labbook(arguments.labbook).append(record)
    if arguments.figure:
        sweep_figure(figures(), record["sweep"], record["trace"], arguments.figure)
    return 0


def _check_outputs(arguments: argparse.Namespace, book: Module) -> None:
    """A sweep takes minutes: what could not be written in the end is said before."""
    figure = arguments.figure
    if figure and not arguments.sweep:
        raise ConfigError("--figure draws a sweep: give --sweep, too")
    if figure and (figure.suffix.lower() != ".png" or not figure.parent.is_dir()):
        raise ConfigError(f"--figure is {figure}: name a file that ends in .png, in a folder that exists")
    if arguments.labbook:
        book().Labbook(arguments.labbook).check_writable_place()


def _record(arguments: argparse.Namespace) -> dict[str, Any]:
    sizing = Sizing(_kv_shape(arguments), arguments.prefill_speed)
    source = open_source(arguments.trace, arguments.trace_block_size, arguments.timestamp_unit)
    setup = _setup(arguments, source)
    started_s = time.perf_counter()
    record = {
        "lab": "replay",
        "recorded_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "trace": source.name,
        **measure(source, setup, arguments.publication_delay, sizing),
    }
    record["replay_s"] = time.perf_counter() - started_s
    if arguments.sweep:
        record["sweep"] = sweep(source, setup, arguments.publication_delay, sizing)
    return record


def _setup(arguments: argparse.Namespace, source: Source) -> Setup:
    unit = source.unit_tokens
    return Setup(
        design=arguments.design,
        eviction=arguments.eviction,
        capacity_units=arguments.capacity,
        block_units=_in_units("--block-size", arguments.block_size or (unit if unit > 1 else BLOCK_TOKENS), unit),
        page_units=_in_units("--page-size", arguments.page_size or unit, unit),
        num_slots=arguments.slots,
        similarity=arguments.similarity,
        max_caches=arguments.max_caches,
    )


def _in_units(flag: str, tokens: int, unit_tokens: int) -> int:
    if tokens % unit_tokens:
        raise ConfigError(f"{flag} is {tokens}: give a multiple of the traffic's blocks of {unit_tokens} tokens")
    return tokens // unit_tokens


def _kv_shape(arguments: argparse.Namespace) -> KVShape | None:
    if arguments.kv_shape:
        num_layers, num_kv_heads, head_dim = arguments.kv_shape
        return KVShape(num_layers, num_kv_heads, head_dim, arguments.kv_bytes)
    if arguments.model_config is None:
        return None
    try:
        config = json.loads(arguments.model_config.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot read the model's config {arguments.model_config}: {error}") from None
    if not isinstance(config, dict):
        raise ConfigError(f"the model's config {arguments.model_config} is no JSON object: name a config.json")
    return KVShape.from_config(config, arguments.kv_bytes)
