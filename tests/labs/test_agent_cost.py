from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from labs.kit.agent import AgentLoop
from labs.kit.agent_cost import AgentCost, computed_with_cache, shape_sentence
from labs.kit.agent_cost_view import agent_cost_view
from labs.kit.session import Session
from minivllm import LLM, EngineConfig, SamplingParams
from minivllm.models.loading import load_model


def test_a_step_computes_what_lies_behind_the_whole_pages_of_the_one_before() -> None:
    assert computed_with_cache([20, 30, 48, 49], page_tokens=16) == [20, 14, 32, 1]
    assert computed_with_cache([5]) == [5]


def test_the_formula_is_what_the_engine_does() -> None:
    loaded = load_model("tiny")
    prompts = AgentLoop(num_steps=4, result_words=5).prompts(loaded.tokenizer)
    one_token = SamplingParams(max_tokens=1, temperature=0.0)
    lengths = [len(prompt) for prompt in prompts]
    for is_cached, expected in ((False, lengths), (True, computed_with_cache(lengths))):
        with LLM(loaded, EngineConfig(num_pages=128, num_slots=0, prefix_cache=is_cached)) as llm:
            outputs = [llm.generate([prompt], one_token)[0] for prompt in prompts]
        assert [output.metrics.computed_tokens for output in outputs] == expected


def test_without_a_cache_the_cost_is_the_sum_of_an_arithmetic_series() -> None:
    cost = AgentCost(num_steps=10, system_tokens=100, step_tokens=30)
    assert cost.without_cache == 10 * 100 + 30 * 10 * 9 // 2
    assert 100 + 30 * 9 <= cost.with_cache <= 100 + (30 + 15) * 9


def test_twice_the_steps_cost_about_four_times_without_and_twice_with_the_cache() -> None:
    once, twice = (AgentCost(num_steps=steps, system_tokens=16, step_tokens=160) for steps in (50, 100))
    assert twice.without_cache / once.without_cache == pytest.approx(4, abs=0.1)
    assert twice.with_cache / once.with_cache == pytest.approx(2, abs=0.1)


@pytest.mark.parametrize("name", ["num_steps", "system_tokens", "step_tokens", "tokens_per_s", "page_tokens"])
def test_a_number_below_one_is_refused_by_name(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} is 0"):
        AgentCost(**{name: 0})


def test_the_shape_is_named_only_when_the_numbers_have_it() -> None:
    prompts = [100, 150, 200, 250]
    assert "This is the shape" in shape_sentence(prompts, computed_with_cache(prompts))
    assert "it is not a line with it" in shape_sentence(prompts, prompts)
    assert "not a square without the cache" in shape_sentence([100, 50, 50, 50], [100, 50, 50, 50])
    assert "grew 2.8 times without the cache" in shape_sentence(prompts, prompts)


def sliders_of(box: Any) -> tuple[dict[str, Any], Any]:
    *sliders, shown = box.children
    return {slider.description: slider for slider in sliders}, shown


def test_the_sliders_do_what_the_model_does_and_note_it(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    box = agent_cost_view(AgentCost(), session)
    assert capsys.readouterr().out == AgentCost().as_text() + "\n"
    sliders, shown = sliders_of(box)
    sliders["Steps"].value = 80
    assert f"{AgentCost(num_steps=80).without_cache:,}" in shown.value
    (record,) = session.book.records(strict=True)
    assert (record["experiment"], record["num_steps"]) == ("calculator", 80)
    assert record["with_cache_tokens"] == AgentCost(num_steps=80).with_cache


def test_more_tokens_a_second_save_time_and_no_tokens() -> None:
    slow, fast = AgentCost(tokens_per_s=100), AgentCost(tokens_per_s=10_000)
    assert slow.ratio == fast.ratio and slow.as_text() != fast.as_text()
    assert all(after > before for before, after in pairwise(slow.prompt_tokens))


def test_what_the_box_says_of_itself_points_to_the_text(session: Session) -> None:
    assert repr(agent_cost_view(AgentCost(), session)) == "(four sliders; the text above says the same)"
