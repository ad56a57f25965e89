"""The six servers: what is wrong with each, what shows it, what mends it, and who is who for one learner."""

from __future__ import annotations

import random
from dataclasses import dataclass

LETTERS = "ABCDEF"
ENGINE, FLAGS = "vllm", ("--enable-prompt-tokens-details",)
"""They all speak like this server: what differs is only what they do."""


@dataclass(frozen=True)
class Suspect:
    """`fault` is a fault of the doubles (`python -m labs.kit.doubles --list`), `setting` the name of what mends it."""

    fault: str
    about: str
    setting: str


SUSPECTS = {
    "cache_off": Suspect("cache-off", "the prefix cache is off", "turn_the_cache_on"),
    "one_slot": Suspect("one-slot", "one conversation is remembered, and any other one drives it out", "more_slots"),
    "clock_injected": Suspect("clock-injected", "something puts the time in front of every prompt", "remove_the_clock"),
    "evicting": Suspect("evicting=1024", "the pool is too small for the traffic", "a_larger_pool"),
    "salted_per_request": Suspect("salted", "every request has a salt of its own", "one_salt_per_tenant"),
    "counters_lying": Suspect(
        "counters-lying", "the counters tell hits, and nothing is reused", "distrust_the_counters"
    ),
}
"""Diagnoses by name."""

SETTINGS = {
    "turn_the_cache_on": "--enable-prefix-caching, or whatever the engine calls it",
    "more_slots": "as many slots as conversations that take turns (llama-server: --parallel)",
    "remove_the_clock": "the template or the proxy that inserts the time, or its place in the prompt",
    "a_larger_pool": "more memory for the cache (vLLM: --gpu-memory-utilization, --num-gpu-blocks-override)",
    "one_salt_per_tenant": "cache_salt once for each tenant instead of each request",
    "distrust_the_counters": "the exporter: mend or replace it; the cache itself is to be turned on",
}
"""What could be changed, by name."""


def who_is_who(seed: int) -> dict[str, str]:
    """Letter to diagnosis, in an order of the learner's own."""
    names = sorted(SUSPECTS)
    random.Random(seed).shuffle(names)
    return dict(zip(LETTERS, names, strict=True))
