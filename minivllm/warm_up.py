"""The first passes of an engine, over free pages: whoever comes first then pays for no set-up."""

from __future__ import annotations

from collections.abc import Sequence

from minivllm.config import SamplingParams
from minivllm.request import Request
from minivllm.runner import ModelRunner
from minivllm.scheduler import Work


def warm_up(runner: ModelRunner, free_page_table: Sequence[int], num_tokens: int) -> None:
    """One prefill chunk and one decode pass over the pages of a sequence, which hold `num_tokens` tokens."""
    request = Request("warm-up", [0] * num_tokens, SamplingParams(), None, arrived_at=0.0)
    request.page_table = list(free_page_table)
    for work in (Work(request, 0, num_tokens - 1), Work(request, num_tokens - 1, num_tokens)):
        if work.num_tokens > 0:
            runner.forward([work])
