from __future__ import annotations

import pytest

from labs.kit.working_set import PROMPT_TOKENS, cycle_twice, cycled_prompts, pool_config, sweep
from minivllm import LLM
from minivllm.models.loading import LoadedModel, load_model


@pytest.fixture(scope="module")
def tiny() -> LoadedModel:
    return load_model("tiny")


def test_no_prompt_begins_like_another() -> None:
    prompts = cycled_prompts(400)
    assert len({prompt[0] for prompt in prompts}) == 400
    assert {len(prompt) for prompt in prompts} == {PROMPT_TOKENS + 1}
    with pytest.raises(AssertionError, match="begin alike"):
        cycled_prompts(401)


def test_what_fits_is_restored_whole_and_one_prompt_more_costs_lru_everything(tiny: LoadedModel) -> None:
    assert sweep(tiny, 3, (2, 3, 4), "lru") == [
        (pytest.approx(2 / 3), 2 * PROMPT_TOKENS), (1.0, 3 * PROMPT_TOKENS), (pytest.approx(4 / 3), 0),
    ]  # fmt: skip


def test_scan_restores_half_of_what_fits_or_more(tiny: LoadedModel) -> None:
    with LLM(tiny, pool_config(6, "scan")) as llm:
        assert cycle_twice(llm, 7) >= 3 * PROMPT_TOKENS
