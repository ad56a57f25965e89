"""What a server tells about the pages it stores: identity, KV precision, version, build.

Sources: the labels of `cache_config_info` on the metrics page (vLLM and the mini engine), `/props` (llama-server),
the model's entry in `/v1/models`. Only what a stored page depends on goes into the identity: two servers that differ in
nothing but a cache switch have the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from labbook.client import Client

# Labels of cache_config_info that change what a stored page holds, and nothing about sizes of the pool.
_PAGE_LABELS = (
    "identity",
    "page_size",
    "block_size",
    "kv_dtype",
    "cache_dtype",
    "kv_bits",
    "kv_group_size",
    "quantized_kv_start",
)
_WEIGHT_FACTS = ("vocab_type", "n_vocab", "n_embd", "n_params", "size")
_FINGERPRINTS = (
    ("minivllm", r"minivllm-([^-]+)"),
    ("vllm", r"vllm-([^-]+)"),
    ("llama-server", r"(b\d+-\w+)$"),
    ("mlx-lm", r"(\d+(?:\.\d+)+)-\d+(?:\.\d+)+-"),
)
_UNTOLD = ("", "None", "none", "null")


@dataclass(frozen=True)
class ServerFacts:
    """None where the server does not tell; `why` says what was asked."""

    version: str | None
    identity: dict[str, Any] | None
    kv_precision: str | None
    why: dict[str, str] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        return {"identity": self.identity, "kv_precision": self.kv_precision}


def server_facts(client: Client, model: str, config: Mapping[str, str]) -> ServerFacts:
    """Ask once, after the measurement. No address has to be there; `config` holds the labels of cache_config_info."""
    props = client.facts(client.urls.props)
    entry = _entry(client.facts(client.urls.models), model)
    identity: dict[str, Any] = {name: config[name] for name in _PAGE_LABELS if config.get(name, "") not in _UNTOLD}
    identity |= {name: props[name] for name in ("model_ftype",) if isinstance(props.get(name), str)}
    if isinstance(entry.get("root"), str):
        identity["root"] = entry["root"].rstrip("/").rpartition("/")[2]  # a path of the server's machine stays there
    meta = entry.get("meta")
    if isinstance(meta, dict):
        identity |= {name: meta[name] for name in _WEIGHT_FACTS if isinstance(meta.get(name), str | int)}
    precision = kv_precision(config)
    why = {}
    if not identity:
        why["identity"] = "neither the metrics page nor /props nor /v1/models tells what a stored page depends on"
    if precision is None:
        why["kv_precision"] = "no cache_config_info on the metrics page tells it"
    return ServerFacts(client.version() or _text(props.get("build_info")), identity or None, precision, why)


def build_of(fingerprint: str | None) -> tuple[str | None, str | None]:
    """Engine and version, where the `system_fingerprint` of an answer has a form that is known here.

    As captured: "vllm-0.32.0-0a7da021", "minivllm-0.1.0", "b11434-0a1b2c3" (llama-server), and of mlx-lm its version,
    MLX's and the machine: "0.32.2-0.32.4-Linux-x86_64".
    """
    for engine, form in _FINGERPRINTS:
        if found := re.match(form, fingerprint or ""):
            return engine, found[1]
    return None, None


def kv_precision(config: Mapping[str, str]) -> str | None:
    """How the cache stores numbers, in the server's own words: "8 bits, groups of 64", "fp8", "auto"."""
    bits = config.get("kv_bits", "")
    if bits not in _UNTOLD:
        group = config.get("kv_group_size", "")
        return f"{bits} bits" + (f", groups of {group}" if group not in _UNTOLD else "")
    dtype = config.get("kv_dtype") or config.get("cache_dtype") or ""
    return None if dtype in _UNTOLD else dtype


def _entry(listed: Mapping[str, Any], model: str) -> dict[str, Any]:
    entries = listed.get("data")
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and entry.get("id") == model:
            return entry
    return {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
