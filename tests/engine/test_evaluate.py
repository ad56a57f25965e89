"""The measurements of what quantized pages cost: hand-worked numbers, and the real engine on `tiny`."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from minivllm import LLM, SamplingParams
from minivllm.cache.kv_format import KVFormat
from minivllm.cli import main
from minivllm.evaluate import (
    FACT,
    bytes_of,
    greedy_agreement,
    kl_divergence,
    layer_errors,
    losses,
    planted_facts,
    quality,
    speed,
    windows_of,
)
from minivllm.evaluate_command import read_text

MakeLLM = Callable[..., LLM]
TOKENS = [5 + number * 7 % 480 for number in range(150)]


def test_kl_divergence_of_two_coins_worked_by_hand() -> None:
    fair, biased = np.log([[0.5, 0.5]]), np.log([[0.25, 0.75]])
    by_hand = 0.5 * math.log(0.5 / 0.25) + 0.5 * math.log(0.5 / 0.75)
    assert kl_divergence(fair, biased) == pytest.approx([by_hand])
    assert kl_divergence(fair, fair) == pytest.approx([0.0])


def test_kl_divergence_goes_block_by_block_and_loses_no_row() -> None:
    draw = np.random.default_rng(0)
    one, other = draw.normal(size=(2, 150, 7))
    whole = kl_divergence(one, other)
    assert whole.shape == (150,)
    assert whole[130] == pytest.approx(kl_divergence(one[130:131], other[130:131])[0])


def test_a_model_that_knows_nothing_has_the_vocabulary_as_its_perplexity() -> None:
    told = losses(np.zeros((200, 50)), list(range(10)) * 20)
    assert len(told) == 199
    assert math.exp(told.mean()) == pytest.approx(50)


def test_losses_speak_of_the_next_token() -> None:
    sure = np.full((3, 4), -50.0)
    sure[0, 2] = sure[1, 1] = 0.0
    assert losses(sure, [3, 2, 1]) == pytest.approx([0.0, 0.0])
    assert losses(sure, [3, 1, 1]) == pytest.approx([50.0, 0.0])


def test_fewer_bits_cost_more_and_full_precision_costs_nothing(make_llm: MakeLLM) -> None:
    full = make_llm()
    others = {str(bits): make_llm(kv_bits=bits, kv_group_size=32) for bits in (8, 4)}
    told = quality(full, {"full": make_llm(), **others}, windows_of(TOKENS, 60))
    assert told["full"].divergence.mean_kl_nats == pytest.approx(0.0, abs=1e-6)
    assert told["full"].divergence.same_top_share == 1.0
    costs = [told[name].divergence.mean_kl_nats for name in ("full", "8", "4")]
    assert costs == sorted(costs) and costs[2] > 10 * costs[1] > 0
    assert {quality.divergence.num_positions for quality in told.values()} == {150}
    assert {quality.perplexity.num_tokens for quality in told.values()} == {147}


def test_an_engine_agrees_with_itself_and_four_bits_do_not_always(make_llm: MakeLLM) -> None:
    full, prompts = make_llm(), [TOKENS[start : start + 40] for start in range(0, 100, 10)]
    assert greedy_agreement(full, make_llm(), prompts, 8) == 1.0
    assert greedy_agreement(full, make_llm(kv_bits=4, kv_group_size=32), prompts, 8) < 1.0


def test_rounding_errors_of_each_layer_shrink_with_the_bits(make_llm: MakeLLM) -> None:
    llm = make_llm()
    eight, four = (layer_errors(llm, TOKENS, KVFormat("float32", bits, 32)) for bits in (8, 4))
    assert [error.layer for error in eight] == [0, 1]
    for fine, coarse in zip(eight, four, strict=True):
        assert 0 < fine.keys < 0.02 and 0 < fine.values < 0.02
        assert 10 < coarse.keys / fine.keys < 25, "a step is 17 times as wide"


def test_bytes_of_an_engine_are_those_of_its_pages(make_llm: MakeLLM) -> None:
    assert bytes_of(make_llm(num_pages=7)) == {"bytes_per_token": 1_024, "bytes_per_page": 16_384, "num_pages": 7}
    assert bytes_of(make_llm(num_pages=7, kv_bits=8, kv_group_size=32))["bytes_per_token"] == 2 * 2 * 2 * (32 + 8)


def test_speed_is_measured_cold_every_time(make_llm: MakeLLM) -> None:
    llm = make_llm()
    told = speed(llm, TOKENS, max_tokens=4, repeats=3)
    assert (told.num_prompt_tokens, told.num_output_tokens) == (150, 4)
    assert 0 < told.prefill[1] <= told.prefill[0] <= told.prefill[2]
    assert llm.stats()["computed_prefill_tokens"] == 3 * 150


class Reader:
    """Finds a planted number only in the first `reach` words of what it is given."""

    def __init__(self, reach: int) -> None:
        self.reach = reach
        self.words: list[str] = []
        self.tokenizer = SimpleNamespace(encode=self.encode)

    def encode(self, text: str) -> list[int]:
        self.words += text.split()
        return list(range(len(self.words) - len(text.split()), len(self.words)))

    def generate(self, prompts: Sequence[Sequence[int]], params: SamplingParams) -> list[SimpleNamespace]:
        texts = [" ".join(self.words[token] for token in prompt) for prompt in prompts]
        return [SimpleNamespace(text=self.answer(text)) for text in texts]

    def answer(self, text: str) -> str:
        thing = re.findall(r"the number of the (\w+) box is$", text)[0]
        seen = " ".join(text.split()[: self.reach])
        found = re.search(FACT.format(thing=thing, number=r"(\d+)"), seen)
        return f" {found[1]}." if found else " unknown"


def test_planted_facts_are_counted_by_depth() -> None:
    reader = Reader(reach=60)
    filler = reader.encode("word " * 200)
    told = planted_facts(reader, filler, (0.0, 0.5, 1.0), context_tokens=150)  # type: ignore[arg-type]
    assert told == {0.0: (5, 5), 0.5: (0, 5), 1.0: (0, 5)}


def test_windows_cover_the_text_and_leave_out_what_gives_no_likelihood() -> None:
    assert windows_of(list(range(7)), 3) == [[0, 1, 2], [3, 4, 5]]
    assert windows_of(list(range(5)), 3) == [[0, 1, 2], [3, 4]]


def test_the_text_that_comes_with_the_package_has_more_than_eight_thousand_tokens(make_llm: MakeLLM) -> None:
    text = read_text(None)
    assert len(text.split()) > 6_000
    assert len(make_llm().tokenizer.encode(text)) > 8_000


def test_the_command_tells_every_measurement_and_keeps_a_record_of_each_precision(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    text, labbook = tmp_path / "text.txt", tmp_path / "labbook.md"
    text.write_text("The lighthouse keeper writes one page a day. " * 60, encoding="utf-8")
    arguments = ["evaluate", "--model", "tiny", "--kv-group-size", "32", "--text", str(text), "--tokens", "600"]
    assert main([*arguments, "--json", "--labbook", str(labbook)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert list(told["precisions"]) == ["full precision", "8 bits", "4 bits"]
    assert told["precisions"]["8 bits"]["divergence"]["num_positions"] == 600
    assert [len(errors) for errors in told["layer_errors"].values()] == [2, 2]
    records = [json.loads(line) for line in labbook.read_text(encoding="utf-8").splitlines() if line.startswith("{")]
    assert [record["label"] for record in records] == list(told["precisions"])


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--text", "nowhere.txt"], "cannot read the text nowhere.txt"),
        (["--tokens", "1"], "--tokens 1 is too few"),
        (["--kv-group-size", "64"], "kv_group_size=64 does not divide the head size 32"),
    ],
)
def test_wrong_usage_is_told(capsys: pytest.CaptureFixture[str], arguments: list[str], told: str) -> None:
    assert main(["evaluate", "--model", "tiny", *arguments]) == 2
    assert told in capsys.readouterr().err
