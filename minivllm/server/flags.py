"""Every field of `EngineConfig` as a flag: `num_pages` is `--num-pages`."""

from __future__ import annotations

import argparse
import types
import typing
from dataclasses import fields

from minivllm.config import CHOICES, NUMBER_CHOICES, EngineConfig

HELP: dict[str, str] = {
    "page_size": "tokens in a page of the KV cache",
    "num_pages": "pages in the pool; give this or --kv-cache-bytes",
    "kv_cache_bytes": "size of the pool in bytes, keys and values of all layers",
    "max_model_len": "longest prompt plus answer, in tokens; default: what the model was made for",
    "max_batched_tokens": "tokens computed in one forward pass, prefill chunks and decode rows together",
    "max_active_requests": "requests computed at the same time",
    "prefix_cache": "reuse the pages of equal prefixes",
    "prefix_ttl_s": "seconds that an unused cached page stays findable; default: until it is evicted",
    "publication": "when a filled page may be found by other requests",
    "single_flight": "how requests for the same prefix wait for each other",
    "scheduling": "which waiting request is admitted next",
    "admission": "how many pages a request must have before it starts",
    "eviction": "which cached page goes first when the pool is full",
    "kv_dtype": "number format of cached keys and values",
    "kv_bits": "bits of a cached number, 8 or 4; default: full precision (this changes the output)",
    "kv_group_size": "numbers that share a scale when pages are quantized: 32, 64 or 128",
    "quantized_kv_start": "tokens at the head of a sequence that stay in full precision, rounded up to whole pages",
    "attention": "implementation of attention; auto is metal on an Apple GPU, else portable",
    "num_slots": "slots, each of which remembers the last sequence it processed",
    "slot_save_path": "folder of slot files, this user's own; default: slots cannot be saved or restored",
    "debug_poison_pages": "fill free pages with NaN, so that a wrong read shows; slow",
}

METAVARS = {"slot_save_path": "FOLDER"}


def add_engine_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("engine")
    hints = typing.get_type_hints(EngineConfig)
    for field in fields(EngineConfig):
        flag = "--" + field.name.replace("_", "-")
        kind = _plain_type(hints[field.name])
        help_text = HELP[field.name] + ("" if field.default is None else f" (default: {_shown(field.default)})")
        if kind is bool:
            group.add_argument(flag, action=argparse.BooleanOptionalAction, default=field.default, help=help_text)
            continue
        choices = CHOICES.get(field.name) or NUMBER_CHOICES.get(field.name)
        if choices is not None and len(choices) == 1:
            help_text += "; the only one so far"
        metavar = None if choices else METAVARS.get(field.name, "SECONDS" if field.name.endswith("_s") else "NUMBER")
        group.add_argument(flag, type=kind, choices=choices, default=field.default, metavar=metavar, help=help_text)


def engine_config(arguments: argparse.Namespace) -> EngineConfig:
    """Raises `ConfigError` when the values do not go together."""
    return EngineConfig(**{field.name: getattr(arguments, field.name) for field in fields(EngineConfig)})


def _plain_type(hint: object) -> type:
    """int for `int | None`: a flag that is not given is None."""
    if isinstance(hint, types.UnionType):
        hint = next(kind for kind in typing.get_args(hint) if kind is not type(None))
    assert isinstance(hint, type)
    return hint


def _shown(default: object) -> str:
    return ("yes" if default else "no") if isinstance(default, bool) else str(default)
