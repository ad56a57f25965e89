"""Files that a restore must refuse, made and tried on `tiny`, and the two sides of mlx-lm's files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from labs.kit.mlx_cache_files import mlx_lm_goes_on, mlx_lm_makes
from labs.kit.slot_trouble import (
    Attempt,
    cut,
    flipped,
    link_out_of,
    model_with_one_other_weight,
    tokenizer_of,
    tried,
    without_digests,
)
from minivllm import LLM, EngineConfig, SamplingParams
from minivllm.models.loading import load_model
from minivllm.models.registry import resolve
from minivllm.prompt_cache import read_prompt_cache

GREEDY = SamplingParams(max_tokens=6, temperature=0.0, ignore_eos=True)
TOKENS = list(range(40, 90))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "slots"


@pytest.fixture
def llm(folder: Path) -> Iterator[LLM]:
    with LLM("tiny", EngineConfig(num_pages=32, slot_save_path=folder)) as opened:
        opened.generate([TOKENS], SamplingParams(max_tokens=1, temperature=0.0), id_slot=0)
        yield opened


@pytest.fixture
def good(llm: LLM) -> Path:
    return llm.slots[0].save("good.bin").path


def test_a_good_file_is_taken_in_and_a_damaged_one_is_refused_with_nothing_changed(
    llm: LLM, good: Path, folder: Path
) -> None:
    assert tried("good", llm, good, folder) == Attempt("good", None, True), "it holds what the slot held"
    for bad, reason in ((flipped(good, 5000), "checksum does not fit"), (cut(good, 500), "it is cut")):
        attempt = tried("bad", llm, bad, folder)
        assert attempt.is_refused and attempt.is_unharmed and reason in (attempt.said or "")
    assert good.read_bytes()[5000] ^ 1 == (folder / "flipped.bin").read_bytes()[5000]


def test_a_file_that_is_taken_in_where_nothing_was_held_changes_something(llm: LLM, good: Path, folder: Path) -> None:
    llm.reset_prefix_cache()
    attempt = tried("good", llm, good, folder)
    assert (attempt.is_refused, attempt.is_unharmed) == (False, False)
    assert attempt.as_text() == "good: taken in"


def test_names_are_looked_up_as_the_server_does(llm: LLM, good: Path, folder: Path) -> None:
    assert not tried("name", llm, "good.bin", folder).is_refused
    assert "is not a plain name" in (tried("climbs", llm, "../good.bin", folder).said or "")
    assert "leads out of the folder" in (tried("link", llm, link_out_of(folder, good), folder).said or "")


def test_one_other_weight_is_another_model(llm: LLM, good: Path, folder: Path, tmp_path: Path) -> None:
    with LLM(load_model(model_with_one_other_weight(tmp_path)), EngineConfig(num_pages=32)) as tuned:
        said = tried("tuned", tuned, good, folder).said or ""
    assert "weights_id is" in said and "<digest>" in said and "tokenizer" not in said


def test_an_attempt_says_what_happened() -> None:
    refused = Attempt("a bit", "a.bin is refused: its checksum does not fit", True)
    assert refused.as_text() == "a bit: refused, nothing has changed\n    a.bin is refused: its checksum does not fit"
    assert "SOMETHING HAS CHANGED" in Attempt("a bit", "no", False).as_text()
    assert without_digests("weights 0123456789abcdef0123 and 16") == "weights <digest> and 16"


def test_a_tokenizer_alone_reads_token_ids(llm: LLM) -> None:
    text = "The keeper writes one page a day."
    assert tokenizer_of("tiny").decode(llm.tokenizer.encode(text)) == text


def test_mlx_lm_makes_a_file_and_goes_on_from_it_as_the_engine_would(llm: LLM, tmp_path: Path) -> None:
    file = mlx_lm_makes(tmp_path / "a.safetensors", resolve("tiny"), TOKENS)
    assert read_prompt_cache(file).num_tokens == len(TOKENS)
    (output,) = llm.generate([[*TOKENS, 7, 8]], GREEDY)
    assert tuple(mlx_lm_goes_on(file, resolve("tiny"), [7, 8], max_tokens=6)) == output.token_ids
