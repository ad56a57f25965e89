"""Example servers for notebook 11: doubles of four engines, and three that a clock cannot tell apart.

A double computes with the real `tiny` engine and speaks as the other server does. Each computed prompt token takes
a millisecond more, so that the clock sees what is saved; counts do not depend on that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from labbook.measure import measure
from labbook.record import Record
from labs.kit.doubles import DIALECTS, Faults, double

TOKEN_DELAY_S = 0.001
# What makes each of them tell as much as it can.
FLAGS: dict[str, Sequence[str]] = {
    "vllm": ["--enable-prompt-tokens-details"],
    "sglang": ["--enable-metrics", "--enable-cache-report"],
    "llama-server": ["--metrics"],
    "mlx-lm": [],
}
ALIKE: dict[str, dict[str, Any]] = {
    "A": {"salted": True},
    "B": {"cache_off": True, "counters": "as_if_cached"},
    "C": {"cache_off": True},
}
WHAT_THEY_ARE = {
    "A": "its cache is on, but every request has a salt of its own, so no two share a page",
    "B": "its cache is off, and its hit counter moves as if it were on",
    "C": "its cache is off, and it does not even look anything up",
}


def origin(engine: str) -> str:
    """What a record of a double must say of itself."""
    return f"a double of {engine} {DIALECTS[engine].version}: the model `tiny` behind its dialect; {engine} did not run"


def command(engine: str) -> str:
    """How to start the same double in a terminal."""
    flags = FLAGS[engine]
    return " ".join(["python -m labs.kit.doubles", engine, *(["--", *flags] if flags else [])])


def measured_double(
    engine: str, label: str, plan: dict[str, Any], *, faults: dict[str, Any] | None = None, flags: Sequence[str] = ()
) -> Record:
    """The record of one measurement; `flags` are added to those that make the server tell. Marked as a double's."""
    asked = Faults(**{"computed_token_delay_s": TOKEN_DELAY_S, **(faults or {})})
    with double(engine, faults=asked, flags=[*FLAGS[engine], *flags]) as server:
        record = measure(server.base_url, label=label, engine=f"{engine} (double)", **plan)
    return {**record, "origin": origin(engine)}
