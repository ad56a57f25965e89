"""The same traffic with one thing changed, to see what that thing was worth."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce

from minivllm.policies.access import Access
from minivllm.policies.prefixes import common_length
from minivllm.policies.traffic.workload import Tokens


def swapped(traffic: Iterable[Access], first_tokens: int, second_tokens: int) -> list[Access]:
    """Every prompt with its first `first_tokens` behind the `second_tokens` that follow them."""
    end = first_tokens + second_tokens
    return [
        replace(
            access, unit_ids=access.unit_ids[first_tokens:end] + access.unit_ids[:first_tokens] + access.unit_ids[end:]
        )
        for access in traffic
    ]


def with_prefixes_sent_first(traffic: Iterable[Access]) -> list[Access]:
    """Each session begins with one more request: what all of its prompts have in common, without an answer."""
    sessions: dict[str | None, list[Tokens]] = defaultdict(list)
    accesses = list(traffic)
    for access in accesses:
        sessions[access.session].append(access.unit_ids)
    made: list[Access] = []
    for access in accesses:
        if common := _common_prefix(sessions.pop(access.session, [()])):
            alone = replace(access, unit_ids=common, num_input_tokens=len(common), output_ids=(), num_output_tokens=0)
            made.append(alone)
        made.append(access)
    return made


def _common_prefix(prompts: Sequence[Tokens]) -> Tokens:
    return reduce(lambda common, prompt: common[: common_length(common, prompt)], prompts)
