"""Engines of every number format, on `tiny`: bytes, stored keys, rounding, and how decoding is timed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from labs.kit.figures.quality_and_speed import quality_and_speed
from labs.kit.precisions import (
    FORMATS,
    cost_table,
    decode_ms,
    group_size_for,
    measured_bytes_per_token,
    open_precisions,
    rounding_error,
    stored_keys,
)
from minivllm import LLM
from minivllm.backend import mx
from minivllm.evaluate import bytes_of, quality

TOKENS = [5 + number * 7 % 480 for number in range(70)]


@pytest.fixture(scope="module")
def llms() -> Iterator[dict[str, LLM]]:
    opened = open_precisions("tiny", num_pages=24)
    yield opened
    for llm in opened.values():
        llm.close()


def test_bytes_of_the_arrays_are_those_of_the_layout(llms: dict[str, LLM]) -> None:
    measured = {name: measured_bytes_per_token(llm) for name, llm in llms.items()}
    # 2 x 2 layers x 2 heads x (32 numbers of so many bytes, and 4 bytes of scale and bias)
    assert measured == {"32 bits": 8 * 128, "16 bits": 8 * 64, "8 bits": 8 * (32 + 4), "4 bits": 8 * (16 + 4)}
    assert measured == {name: bytes_of(llm)["bytes_per_token"] for name, llm in llms.items()}


@pytest.mark.parametrize(("head_dim", "group"), [(32, 32), (64, 64), (96, 32), (128, 64)])
def test_the_group_divides_the_head(head_dim: int, group: int) -> None:
    assert group_size_for(head_dim) == group and head_dim % group == 0


def test_the_table_has_a_row_for_each_format_and_costs_nothing_against_itself(llms: dict[str, LLM]) -> None:
    costs = quality(llms["32 bits"], llms, [TOKENS])
    head, *rows = cost_table(costs).splitlines()
    assert "mean KL (nats)" in head
    assert [row.split("  ")[0] for row in rows] == list(FORMATS)
    assert rows[0].split()[2:5] == ["0.00000", "0.00000", "100.0%"]


def test_decode_steps_are_timed_in_turns_and_the_prompt_is_not_computed_again(llms: dict[str, LLM]) -> None:
    some = {name: llms[name] for name in ("16 bits", "8 bits")}
    decode_ms(some, TOKENS, max_tokens=2, repeats=1)
    before = {name: llm.stats() for name, llm in some.items()}
    taken = decode_ms(some, TOKENS, max_tokens=3, repeats=2)
    assert {name: len(values) for name, values in taken.items()} == {"16 bits": 2, "8 bits": 2}
    for name, llm in some.items():
        grown = {key: llm.stats()[key] - before[name][key] for key in ("decoded_tokens", "computed_prefill_tokens")}
        assert grown["computed_prefill_tokens"] == 2 * (70 - 64), "only what stands behind the last whole page"


def test_stored_keys_are_those_of_the_pages(llms: dict[str, LLM]) -> None:
    llm = llms["32 bits"]
    llm.logits(TOKENS)
    keys = stored_keys(llm, TOKENS)
    assert [layer.shape for layer in keys] == [(64, 2, 32)] * 2
    second = llm.engine.manager.index.lookup(TOKENS, 4, None)[1]
    assert np.array_equal(keys[1][16:32], llm.engine.storage.page_arrays(second)[1][0])
    with pytest.raises(ValueError, match="no page of these 20 tokens is cached"):
        stored_keys(llm, [9] * 20)


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("group", [32, 64])
def test_rounding_loses_what_mx_quantize_loses(bits: int, group: int) -> None:
    values = np.random.default_rng(1).normal(size=(48, 3, 64)).astype(np.float32)
    theirs = np.array(mx.dequantize(*mx.quantize(mx.array(values), group, bits), group, bits))
    lost = np.sqrt(((theirs - values) ** 2).mean() / (values**2).mean())
    assert rounding_error(values, bits, group) == pytest.approx(lost, rel=0.1)


def test_one_large_number_costs_its_whole_group() -> None:
    values = np.tile(np.linspace(-1, 1, 64, dtype=np.float32), (16, 1, 1))
    values[3, 0, 5] = 100.0
    small, large = (rounding_error(values * (values < 50), 4, 64), rounding_error(values, 4, 64 * 16))
    assert small < 0.1
    ordinary = values.copy()
    ordinary[3, 0, 5] = 0.0
    assert large * np.sqrt((values**2).mean()) > np.sqrt((ordinary**2).mean()) / 2, "nothing else was left of them"


def test_equal_numbers_lose_nothing() -> None:
    assert rounding_error(np.full((16, 1, 64), 0.5), 4, 64) == 0.0


def test_a_figure_shows_time_and_divergence_of_the_same_formats() -> None:
    drawn = quality_and_speed({"16 bits": [40.0, 42.0, 41.0], "8 bits": [60.0]}, {"16 bits": 0.0, "8 bits": 0.0003},
                              caption="n = 3")  # fmt: skip
    assert drawn.sentence == (
        "What fewer bits cost: 16 bits take 41 ms a decode step and diverge by 0 nats; "
        "8 bits take 60 ms a decode step and diverge by 0.0003 nats."
    )
    assert drawn.png().startswith(b"\x89PNG")
    assert [axes.get_title() for axes in drawn.figure.axes] == ["Time", "Divergence"]


def test_a_time_without_a_divergence_is_not_drawn() -> None:
    with pytest.raises(ValueError, match="give both of each"):
        quality_and_speed({"16 bits": [40.0], "8 bits": [60.0]}, {"16 bits": 0.0}, caption="")
