"""What a growth record shows, in words that are computed: which times grow with the prompt, and which tokens do."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from labbook.record import Record

# A warm time that grows by less than this share of the cold time's growth is flat for all that a reader cares.
FLAT_BELOW = 0.25
# Unless the cold time grows at least so many times, the machine was busy or the prompts were too short.
GROWS_FROM = 1.5
_TWO_PAGES = 32


def times_at(record: Record, phase: str, *, longest: bool) -> list[float]:
    """Seconds of the cold or warm requests of the longest, or of the shortest, length."""
    words = [pair["words"] for pair in record["lengths"]]
    wanted = max(words) if longest else min(words)
    return [pair[f"{phase}_s"] for pair in record["lengths"] if pair["words"] == wanted]


def growth_said(record: Record) -> str:
    """Both times from the shortest to the longest prompt, and whether they have the shape that the field reports."""
    times = {
        phase: [median(times_at(record, phase, longest=longest)) for longest in (False, True)]
        for phase in ("cold", "warm")
    }
    told = ", ".join(f"{phase} {_ms(first)} to {_ms(last)}" for phase, (first, last) in times.items())
    if times["cold"][1] < GROWS_FROM * times["cold"][0]:
        return f"{told}: here the cold time hardly grew with the prompt, so nothing can be compared with it."
    gained = {phase: last - first for phase, (first, last) in times.items()}
    share = max(gained["warm"], 0) / gained["cold"]
    if share < FLAT_BELOW:
        return f"{told}: the warm time gains {share:.0%} of what the cold time gains. Flat, as the field reports."
    return f"{told}: the warm time gains {share:.0%} of what the cold time gains. Here it is not flat."


def growth_counts(record: Record) -> str:
    """The same of the computed tokens, which no machine changes; says so where the server does not tell them."""
    computed = {phase: _computed(record, phase) for phase in ("cold", "warm")}
    if not all(computed.values()):
        return "this server tells no cached tokens, so the computed ones are not known"
    spread = {phase: max(counts) - min(counts) for phase, counts in computed.items()}
    grows = "grow with the prompt" if spread["cold"] > _TWO_PAGES else "hardly grow: use a longer prompt"
    stays = "hardly change, by less than two pages" if spread["warm"] < _TWO_PAGES else "grow, too"
    return f"cold: computed tokens {grows}\nwarm: computed tokens {stays}"


def _computed(record: Record, phase: str) -> Sequence[int]:
    requests = [one for one in record["requests"] if one["phase"] == phase and one["error"] is None]
    if any(one["prompt_tokens"] is None or one["cached_tokens"] is None for one in requests):
        return []
    return [one["prompt_tokens"] - one["cached_tokens"] for one in requests]


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"
