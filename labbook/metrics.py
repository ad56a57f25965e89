"""Prefix cache counters, in tokens, from a Prometheus text page.

Names come from an exact list in order of preference (`X_total`, `X`, then deprecated aliases), never from a pattern, so
that `_created`, `external_` and other twins cannot be taken for them. What is missing is None with a reason, never 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

_QUOTED = re.compile(r'"(?:\\.|[^"\\])*"')
_MODEL_LABELS = ("model_name", "model")
_PAGE_LABELS = ("block_size", "page_size")
_GENERIC_NAME = re.compile(r"^([A-Za-z_]\w*):prefix_cache_hits(?:_total)?$")


@dataclass(frozen=True)
class CounterNames:
    """Where an engine counts: names in order of preference. `hits_plus` is added to hits to give queries.

    With `hits_appear_late` the page has no sample of hits before the first one: a page that counts queries and has no
    hits then means 0. Everywhere else what is missing is unknown.
    """

    hits: tuple[str, ...]
    queries: tuple[str, ...] = ()
    hits_plus: tuple[str, ...] = ()
    hits_appear_late: bool = False


@dataclass(frozen=True)
class Sample:
    name: str
    labels: Mapping[str, str]
    value: float

    @property
    def model(self) -> str | None:
        return next((self.labels[label] for label in _MODEL_LABELS if label in self.labels), None)


@dataclass(frozen=True)
class Reading:
    """Counters of one model, summed over the engine's processes; tokens since the server started.

    `names` says which counters were used, `why` why a number is None, `rejected_lines` which lines were not readable
    (counted from 1), `page_tokens` and `started_at_s` (Unix time) what the page tells besides, None when it does not.
    `config` holds the labels of `cache_config_info`.
    """

    hits: int | float | None
    queries: int | float | None
    engine: str | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    why: str | None = None
    models: tuple[str, ...] = ()
    page_tokens: int | None = None
    started_at_s: float | None = None
    rejected_lines: tuple[int, ...] = ()
    config: Mapping[str, str] = field(default_factory=dict)


def names_for(prefix: str) -> CounterNames:
    """The counter names of an engine. llama-server counts computed tokens, so its queries are a sum."""
    if prefix == "llamacpp":
        return CounterNames(hits=("llamacpp:prompt_tokens_cached_total",), hits_plus=("llamacpp:prompt_tokens_total",))
    if prefix == "sglang":  # documented, summed over the label cache_source
        names = ("sglang:cached_tokens_total",), ("sglang:prompt_tokens_total",)
        return CounterNames(*names, hits_appear_late=True)
    return CounterNames(hits=_in_order(prefix, "hits"), queries=_in_order(prefix, "queries"))


def read(text: str, prefix: str | None = None, model: str | None = None) -> Reading:
    """Read a metrics page. `prefix` names the engine ("vllm", "llamacpp", ...); None finds it from the page."""
    samples, rejected = parse(text)
    prefix = prefix or detect(samples)
    page: dict[str, Any] = {
        "engine": prefix,
        "page_tokens": _page_tokens(samples),
        "started_at_s": _started_at(samples),
        "rejected_lines": tuple(rejected),
        "config": _config(samples, model),
    }
    if prefix is None:
        return Reading(None, None, why="the page holds no prefix cache counter that is known here", **page)
    names = names_for(prefix)
    hits = _total(samples, names.hits, model)
    queries = _total(samples, names.queries, model)
    if names.hits_appear_late and hits.name is None and queries.value is not None:
        hits = _Total(0, names.hits[0], None)
    if names.hits_plus:
        queries = _sum(hits, _total(samples, names.hits_plus, model))
    used = {kind: total.name for kind, total in (("hits", hits), ("queries", queries)) if total.name}
    models = tuple(sorted({s.model for s in samples if s.name in names.hits and s.model is not None}))
    return Reading(hits.value, queries.value, names=used, why=hits.why or queries.why, models=models, **page)


def detect(samples: list[Sample]) -> str | None:
    """The engine whose counters are on the page, by their exact names."""
    present = {sample.name for sample in samples}
    for prefix in ("minivllm", "vllm", "sglang", "llamacpp"):
        names = names_for(prefix)
        if present.intersection(names.hits + (names.queries if names.hits_appear_late else ())):
            return prefix
    generic = (match.group(1) for name in sorted(present) if (match := _GENERIC_NAME.match(name)))
    return next(generic, None)


def parse(text: str) -> tuple[list[Sample], list[int]]:
    """Samples, and the numbers of the lines that are none. Line by line: one bad line costs only itself."""
    from prometheus_client.parser import text_string_to_metric_families as families

    samples: dict[object, Sample] = {}
    rejected = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        sample = _sample(line.rstrip("\r"), families)
        if sample is None:
            rejected.append(number)
        else:
            samples[sample.name, frozenset(sample.labels.items())] = sample
    return list(samples.values()), rejected


def _sample(line: str, families: Callable[[str], Any]) -> Sample | None:
    # float() takes digits of every script; the exposition format knows ASCII ones only.
    if not _QUOTED.sub("", line).isascii():
        return None
    try:
        found = [sample for family in families(line + "\n") for sample in family.samples]
    except Exception:  # the parser raises whatever its string handling raises, IndexError included
        return None
    if len(found) != 1:
        return None
    return Sample(found[0].name, dict(found[0].labels), float(found[0].value))


@dataclass(frozen=True)
class _Total:
    value: int | float | None
    name: str | None
    why: str | None


def _total(samples: list[Sample], names: tuple[str, ...], model: str | None) -> _Total:
    for name in names:
        named = [sample for sample in samples if sample.name == name]
        if not named:
            continue
        own = [sample for sample in named if model is None or sample.model in (None, model)]
        if not own:
            others = ", ".join(sorted({str(sample.model) for sample in named}))
            return _Total(None, name, f"{name} counts the model(s) {others}, not {model}")
        total = math.fsum(sample.value for sample in own) if all(math.isfinite(s.value) for s in own) else math.nan
        if not math.isfinite(total):
            return _Total(None, name, f"{name} is not a finite number on this page")
        return _Total(int(total) if total.is_integer() else total, name, None)
    return _Total(None, None, f"the page has none of {', '.join(names)}")


def _sum(first: _Total, second: _Total) -> _Total:
    if first.value is None or second.value is None:
        return _Total(None, None, first.why or second.why)
    return _Total(first.value + second.value, f"{first.name} + {second.name}", None)


def _in_order(prefix: str, kind: str) -> tuple[str, ...]:
    current, deprecated = f"{prefix}:prefix_cache_{kind}", f"{prefix}:gpu_prefix_cache_{kind}"
    return (current + "_total", current, deprecated + "_total", deprecated)


def _config(samples: list[Sample], model: str | None) -> Mapping[str, str]:
    found = [sample for sample in samples if sample.name.endswith(":cache_config_info")]
    own = [sample for sample in found if sample.model == model] or found
    return own[0].labels if own else {}


def _page_tokens(samples: list[Sample]) -> int | None:
    for sample in samples:
        if sample.name.endswith(":cache_config_info"):
            for label in _PAGE_LABELS:
                text = sample.labels.get(label, "")
                if text.isascii() and text.isdigit() and int(text) > 0:
                    return int(text)
    return None


def _started_at(samples: list[Sample]) -> float | None:
    starts = [s.value for s in samples if s.name == "process_start_time_seconds" and math.isfinite(s.value)]
    return starts[0] if len(starts) == 1 else None
