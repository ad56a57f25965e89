from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

pytest.importorskip("minivllm.models.tiny", exc_type=ImportError)

from labs.kit.kv_rows import row_differences, stored_rows, where_it_differs
from labs.kit.logit_pair import LogitPair, last_rows
from minivllm import LLM, EngineConfig, SamplingParams

IDS = list(range(5, 45))  # two whole pages, and a half
ONE = SamplingParams(max_tokens=1, temperature=0.0)


@pytest.fixture(scope="module")
def llm() -> Iterator[LLM]:
    with LLM("tiny", EngineConfig(num_pages=16)) as engine:
        yield engine


def changed(position: int) -> list[int]:
    return [*IDS[:position], 99, *IDS[position + 1 :]]


def test_only_layer_0_knows_nothing_of_the_tokens_before(llm: LLM) -> None:
    llm.generate([IDS, changed(20)], ONE)
    differences = row_differences(stored_rows(llm, IDS), stored_rows(llm, changed(20)))
    assert differences.shape == (2, 32)
    assert [where_it_differs(differences[:, token]) for token in (0, 19, 20, 21, 31)] == [
        "nowhere", "nowhere", "from layer 0 on", "from layer 1 on", "from layer 1 on",
    ]  # fmt: skip


def test_layers_with_gaps_are_named_one_by_one() -> None:
    assert where_it_differs(np.array([0, 0.5, 0, 0.5])) == "in layers 1, 3"
    assert where_it_differs(np.array([0, 0.5, 0, 0.5]), rounding=0.1) == "nowhere"


def test_a_prompt_that_never_ran_has_no_rows(llm: LLM) -> None:
    with pytest.raises(LookupError, match="run it first"):
        stored_rows(llm, [7] * 20)


def test_warm_logits_stand_beside_the_last_cold_ones(llm: LLM) -> None:
    cold = llm.logits(IDS, use_cache=False)
    llm.generate([IDS], ONE)
    found = last_rows(cold, llm.logits(IDS))
    assert found.num_rows == len(IDS) - 32
    assert found.largest_difference < 1e-3 < found.size and found.flipped_rows == []
    assert found.about_flips == "no token flipped: in all 8 rows the likeliest token is the same"


def test_a_flip_is_counted_from_the_first_row() -> None:
    found = LogitPair(np.float32([[1, 2, 0], [3, 2.5, 0]]), np.float32([[1, 2, 0], [2.5, 2.75, 0]]))
    assert (found.flipped_rows, found.largest_difference, found.closest_race) == ([1], 0.5, 0.5)
    assert found.about_flips == "1 of 2 rows have another likeliest token, the first is row 1"
    assert found.as_dict()["first_flipped_row"] == 1


@pytest.mark.parametrize("second", [np.zeros((1, 3)), np.zeros((2, 4))])
def test_logits_of_different_shapes_are_refused(second: np.ndarray) -> None:
    with pytest.raises(ValueError, match="cannot be compared"):
        LogitPair(np.zeros((2, 3)), second)
