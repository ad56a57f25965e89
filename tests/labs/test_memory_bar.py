"""The memory bar: the same numbers as `minivllm memory`, in a bar, in words, and behind sliders."""

from __future__ import annotations

from typing import Any

import pytest

from labs.kit.memory_bar import SIGNS, WIDTH, MemoryBar
from labs.kit.memory_bar_view import bar_html, memory_bar_view
from labs.kit.session import Session
from minivllm.budget import memory_budget
from minivllm.config import GIB, ConfigError

FITS = MemoryBar(conversations=3, kv_bits=8)
TOO_MUCH = MemoryBar(conversations=3, kv_bits=16)
HUGE = MemoryBar(budget_gib=8, conversations=2)


def bar_of(bar: MemoryBar) -> str:
    return bar.as_text().splitlines()[1].strip("[]")


@pytest.mark.parametrize(("kv_bits", "fit"), [(16, 1), (8, 3), (4, 6)])
def test_conversations_that_fit_24_gib_are_those_of_the_budget(kv_bits: int, fit: int) -> None:
    bar = MemoryBar(kv_bits=kv_bits)
    budget = memory_budget(bar.shape, context_tokens=32_768, kv_bits=kv_bits, budget_bytes=24 * GIB)
    assert bar.as_record()["conversations_that_fit"] == budget.num_conversations == fit
    assert MemoryBar(kv_bits=kv_bits, conversations=fit).free_bytes >= 0
    assert MemoryBar(kv_bits=kv_bits, conversations=fit + 1).free_bytes < 0


@pytest.mark.parametrize("bar", [FITS, TOO_MUCH, HUGE, MemoryBar(conversations=0)])
def test_what_is_needed_and_what_is_left_or_lacks_is_the_budget(bar: MemoryBar) -> None:
    weights, kv, rest = bar.parts
    sign = 1 if rest.name == "free" else -1
    assert weights.num_bytes + kv.num_bytes + sign * rest.num_bytes == bar.budget_gib * GIB
    drawn = sum(segment.num_bytes for segment in bar.segments)
    assert drawn == max(bar.budget.budget_bytes, bar.weights_bytes + bar.kv_bytes)


def test_a_bar_that_fits_ends_in_free_space_and_has_no_limit_mark() -> None:
    assert len(bar_of(FITS)) == WIDTH
    assert [bar_of(FITS).count(sign) > 0 for sign in "#=.!|"] == [True, True, True, False, False]
    assert "It fits; there is room for 3 conversations of this length." in FITS.as_text()


def test_what_is_over_budget_stands_behind_the_limit_and_is_said_in_words() -> None:
    inside, over = bar_of(TOO_MUCH).split("|")
    assert set(inside) == {"#", "="} and set(over) == {"!"}
    assert "over budget 4.8 GiB" in TOO_MUCH.as_text()
    assert "It does not fit; there is room for 1 conversation of this length." in TOO_MUCH.sentence


def test_weights_alone_can_be_too_much() -> None:
    inside, over = bar_of(HUGE).split("|")
    assert set(inside) == {"#"} and set(over) == {"!"}
    assert "there is room for 0 conversations of this length" in HUGE.sentence


def test_signs_tell_the_segments_apart_without_colour() -> None:
    assert len(set(SIGNS.values())) == len(SIGNS) == 4
    html = bar_html(TOO_MUCH)
    for part in TOO_MUCH.parts:
        assert f'<div title="{part.label}"' in html, "the size that is needed, not what fits of it"
    assert html.count("background: repeating-linear-gradient") == 2
    assert f'role="img" aria-label="{TOO_MUCH.sentence}"' in html


@pytest.mark.parametrize("settings", [{"conversations": -1}, {"context_tokens": 0}, {"budget_gib": 0}])
def test_a_number_that_means_nothing_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="must be at least"):
        MemoryBar(**settings)


def test_sliders_do_what_the_model_does_and_each_setting_goes_to_the_labbook(
    session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    box = memory_bar_view(TOO_MUCH, session)
    assert capsys.readouterr().out.strip() == TOO_MUCH.as_text()
    assert repr(box) == "(four sliders and a bar; the text above says the same)"
    context, conversations, bits, budget, picture, twin = box.children
    assert "over budget" in picture.value and "It does not fit" in twin.value
    bits.value = 8
    assert "It fits" in twin.value and "over budget" not in picture.value
    context.value, conversations.value, budget.value = 16_384, 5, 32
    records = [record for record in session.book.records(strict=True) if record["experiment"] == "memory-bar"]
    assert [record["kv_bits"] for record in records] == [8] * 4
    last = records[-1]
    assert (last["context_tokens"], last["conversations"], last["budget_gib"]) == (16_384, 5, 32)
    assert last["free_bytes"] == MemoryBar(conversations=5, kv_bits=8, context_tokens=16_384, budget_gib=32).free_bytes


def test_a_value_that_is_on_no_slider_gets_its_place(session: Session) -> None:
    box = memory_bar_view(MemoryBar(context_tokens=5_000, conversations=40), session)
    assert (box.children[0].value, box.children[1].value, box.children[1].max) == (5_000, 40, 40)
