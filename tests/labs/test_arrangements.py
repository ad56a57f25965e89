from __future__ import annotations

import dataclasses

import pytest

pytest.importorskip("minivllm.models.tiny", exc_type=ImportError)

from labbook.explain import explain
from labbook.explain.tokenizer import TokenizerRenderer
from labs.kit.arrangements import ARRANGEMENTS, Arrangement, arrangement, missing
from labs.kit.ferry_desk import CHAPTERS, fresh_desks, two_asks
from labs.kit.parameters import Parameters
from labs.kit.rendering import renderer_of

ASKS = two_asks("357935", 3)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> TokenizerRenderer:
    parameters = Parameters("tiny", True, "", tmp_path_factory.mktemp("book") / "labbook.md")
    renderer, said = renderer_of(parameters, "tiny")
    assert said == "tokens by the tokenizer of tiny, read here"
    assert isinstance(renderer, TokenizerRenderer)
    return renderer


def bodies(one: Arrangement, side: str) -> list[dict]:
    return [{"messages": messages} for messages in one.messages(side, ASKS)]


@pytest.mark.parametrize("one", ARRANGEMENTS, ids=lambda one: one.key)
def test_each_fault_is_the_one_that_explain_names_and_its_repair_leaves_none(one, tokenizer) -> None:
    before, after = (explain(*bodies(one, side), tokenizer) for side in ("before", "after"))
    assert before.cause == one.cause and before.is_alarm and not after.is_alarm
    assert before.shared_pages < 8 < after.shared_pages


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("one", ARRANGEMENTS, ids=lambda one: one.key)
def test_neither_version_leaves_anything_out(one, side) -> None:
    assert [missing(one, ask, messages) for ask, messages in zip(ASKS, one.messages(side, ASKS), strict=True)] == [
        [],
        [],
    ]


@pytest.mark.parametrize(
    ("key", "lost"),
    [
        ("clock", "09:41:07"),
        ("tools", '"How many people travel"'),
        ("customer", "a teacher from the island"),
        ("passages", "Bicycles stand on the lower deck"),
        ("blank", "357935"),
    ],
)
def test_a_repair_that_leaves_something_out_is_noticed(key: str, lost: str) -> None:
    one, ask = arrangement(key), ASKS[0]
    cut = [{**message, "content": message["content"].replace(lost, "")} for message in one.after(ask)]
    assert any(lost in piece for piece in missing(one, ask, cut))


def test_the_blank_of_a_form_is_no_content() -> None:
    one = arrangement("blank")
    assert one.before(ASKS[0]) != one.before(ASKS[1]) != one.after(ASKS[1])


def test_the_ranking_is_told_after_the_passages_once_they_are_sorted() -> None:
    first, second = (messages[1]["content"] for messages in arrangement("passages").messages("after", ASKS))
    assert "first: [1], [2], [3]." in first and "first: [3], [2], [1]." in second
    assert first.partition("The best")[0] == second.partition("The best")[0]


def test_desks_are_told_apart_within_the_first_page_and_are_equally_long() -> None:
    desks = fresh_desks(12)
    assert len(set(desks)) == 12 and {len(desk) for desk in desks} == {6}


def test_names_and_sizes_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="choose one of clock, tools"):
        arrangement("colour")
    with pytest.raises(ValueError, match="choose one of before, after"):
        arrangement("clock").messages("middle", ASKS)
    with pytest.raises(ValueError, match=f"2 to {len(CHAPTERS)}"):
        two_asks("3", 99)
    with pytest.raises(ValueError, match="each of the 3 chapters once"):
        dataclasses.replace(ASKS[0], ranking=(0, 0, 1))


def test_a_name_that_is_no_model_here_is_looked_for_nowhere(tmp_path) -> None:
    renderer, said = renderer_of(Parameters("a/model", True, "", tmp_path / "labbook.md"), "somebody/model")
    assert said == "words, not tokens: somebody/model has no tokenizer on this machine"
    assert explain(*bodies(arrangement("clock"), "before"), renderer).cause == "clock"
