from __future__ import annotations

from pathlib import Path

import pytest

from labs.kit.parameters import DEFAULT_MODEL, ParameterError, checkout, default_labbook, resolve


def test_without_anything_the_engine_is_started_on_the_default_model() -> None:
    parameters = resolve(environment={})
    assert (parameters.model, parameters.fast, parameters.base_url) == (DEFAULT_MODEL, False, "")
    assert parameters.starts_engine
    assert parameters.labbook == checkout() / "labbook.md"


def test_the_environment_fills_in_what_the_cell_leaves_as_it_was(tmp_path: Path) -> None:
    book = str(tmp_path / "mine.md")
    environment = {"LAB_MODEL": "tiny", "LAB_FAST": "1", "LAB_BASE_URL": "http://h:1/v1", "LAB_LABBOOK": book}
    parameters = resolve(environment=environment)
    assert parameters.model == "tiny" and parameters.fast and parameters.base_url == "http://h:1/v1"
    assert parameters.labbook == Path(book)


def test_a_value_changed_in_the_cell_wins_over_the_environment(tmp_path: Path) -> None:
    environment = {"LAB_MODEL": "tiny", "LAB_BASE_URL": "http://h:1/v1", "LAB_LABBOOK": "elsewhere.md"}
    parameters = resolve("qwen3-0.6b", True, "http://g:2/v1", str(tmp_path / "here.md"), environment)
    assert parameters.model == "qwen3-0.6b" and parameters.fast and parameters.base_url == "http://g:2/v1"
    assert parameters.labbook == tmp_path / "here.md"


@pytest.mark.parametrize(("word", "is_fast"), [("false", False), ("False", False), ("0", False), ("true", True)])
def test_the_words_that_papermill_passes_are_understood(word: str, is_fast: bool) -> None:
    assert resolve(fast=word, environment={}).fast is is_fast


def test_a_word_that_is_neither_yes_nor_no_is_refused_by_name() -> None:
    with pytest.raises(ParameterError, match="LAB_FAST is 'maybe'"):
        resolve(environment={"LAB_FAST": "maybe"})


def test_an_empty_model_is_refused() -> None:
    with pytest.raises(ParameterError, match="MODEL"):
        resolve(model=" ", environment={})


def test_on_a_server_of_yours_the_default_model_means_the_only_one_it_lists() -> None:
    assert resolve(base_url="http://h:1", environment={}).model_or_only is None
    assert resolve("mine", base_url="http://h:1", environment={}).model_or_only == "mine"
    assert resolve(environment={}).model_or_only == DEFAULT_MODEL


def test_the_labbook_variable_moves_the_labbook(tmp_path: Path) -> None:
    assert default_labbook({"LABBOOK": str(tmp_path / "b.md")}) == tmp_path / "b.md"
    assert resolve(environment={"LABBOOK": str(tmp_path / "b.md")}).labbook == tmp_path / "b.md"


def test_a_fast_run_takes_the_smaller_size() -> None:
    assert resolve(fast=True, environment={}).choose(fast=2, full=9) == 2
    assert resolve(environment={}).choose(fast=2, full=9) == 9
