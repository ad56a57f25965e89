"""Bursts side by side: the same burst on several engines, taking turns, and tables of its counts and its times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from labbook.record import Record
from labs.kit.burst import Burst, Prompt, When, run_burst
from labs.kit.table import text_table
from minivllm import LLM

Runs = dict[str, list[Burst]]
_SAVES_BELOW = 0.9


def take_turns(
    engines: Mapping[str, LLM],
    repeats: int,
    prompts: Sequence[Prompt],
    max_tokens: int,
    *,
    late: Sequence[Prompt] = (),
    when: When = "decode",
) -> Runs:
    """Every engine once, then every engine again: a machine that slows down slows all of them."""
    runs: Runs = {name: [] for name in engines}
    for _ in range(repeats):
        for name, llm in engines.items():
            runs[name].append(run_burst(llm, prompts, max_tokens, late=late, when=when))
    return runs


def times_table(runs: Mapping[str, Sequence[Burst]]) -> str:
    """Medians over the repeats, and the least and the largest in brackets."""
    rows = [
        [name, _spread([one.first_token_s for one in bursts]), _spread([one.slowest_s for one in bursts])]
        for name, bursts in runs.items()
    ]
    return text_table(["", "first token, mean (s)", "slowest completion (s)"], rows)


def counts_table(runs: Mapping[str, Sequence[Burst]]) -> str:
    """Tokens and steps of the first repeat: those of the others are the same."""
    columns = ("", "requests", "computed", "restored", "published", "steps", "steps to first token, mean")
    return text_table(
        columns,
        [
            [
                name,
                len(burst.tracks),
                burst.computed,
                burst.restored,
                burst.published,
                burst.num_steps,
                burst.mean_steps_to_first_token,
            ]
            for name, (burst, *_) in runs.items()
        ],
    )


def server_facts(record: Record) -> str:
    """What is true of the counts of a burst record whatever the machine and the nonce are."""
    return "\n".join(f"{kind:<10} {_saving(burst)}" for kind, burst in record["bursts"].items())


def _saving(burst: Record) -> str:
    times, count = burst["computed_over_cold"], len(burst["requests"])
    if times is None:
        return f"{count} requests: this server tells no cached tokens"
    how_much = "less than" if times < _SAVES_BELOW * count else "as much as"
    return f"{count} requests compute {how_much} {count} single cold ones"


def _spread(values: Sequence[float]) -> str:
    return f"{median(values):.2f} ({min(values):.2f} to {max(values):.2f})"
