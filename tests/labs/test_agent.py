from __future__ import annotations

from itertools import pairwise

import pytest

from labbook.sequences import shared_length
from labs.kit.agent import AgentLoop, time_of
from minivllm.models.loading import load_model
from minivllm.models.tokenizer import Tokenizer

LOOP = AgentLoop(num_steps=3, result_words=6)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return load_model("tiny").tokenizer


def test_each_step_goes_on_where_the_one_before_ended(tokenizer: Tokenizer) -> None:
    for clock_at_end in (False, True):
        for before, after in pairwise(LOOP.prompts(tokenizer, clock_at_end=clock_at_end)):
            assert after[: len(before)] == before and len(after) > len(before)


def test_a_step_adds_one_call_and_its_result() -> None:
    assert [len(LOOP.messages(step)) for step in (1, 2, 3)] == [2, 4, 6]
    assert [message["role"] for message in LOOP.messages(2)] == ["system", "user", "assistant", "user"]
    assert LOOP.messages(3)[:4] == LOOP.messages(2)


def test_a_clock_in_front_parts_the_prompts_before_the_first_page_ends(tokenizer: Tokenizer) -> None:
    for before, after in pairwise(LOOP.prompts(tokenizer, clock_in_front=True)):
        assert shared_length(before, after) < 16


def test_the_clock_goes_by_minutes() -> None:
    assert [time_of(step) for step in (1, 59, 61)] == ["It is 09:01.", "It is 09:59.", "It is 10:01."]


def test_the_transcript_holds_everything_that_the_last_step_sends() -> None:
    assert all(message["content"] in LOOP.transcript() for message in LOOP.messages(3))


@pytest.mark.parametrize("sizes", [(0, 5), (3, 0)])
def test_a_loop_without_steps_or_results_is_refused(sizes: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        AgentLoop(*sizes)
