from __future__ import annotations

from typing import Any

import pytest

from labs.kit.growth_words import growth_counts, growth_said, times_at


def record(cold_s: list[float], warm_s: list[float], **tokens: list[int | None]) -> dict[str, Any]:
    """Three pairs, of 10, 30 and 50 words."""
    lengths = [{"words": w, "cold_s": c, "warm_s": h} for w, c, h in zip((10, 30, 50), cold_s, warm_s, strict=True)]
    requests = [
        {"phase": phase, "error": None, "prompt_tokens": 100, "cached_tokens": None if count is None else 100 - count}
        for phase, counts in tokens.items()
        for count in counts
    ]
    return {"lengths": lengths, "requests": requests}


def test_the_times_of_the_longest_and_of_the_shortest_length_are_told_apart() -> None:
    pairs = record([0.1, 0.2, 0.3], [0.01, 0.02, 0.03])
    assert times_at(pairs, "warm", longest=True) == [0.03]
    assert times_at(pairs, "cold", longest=False) == [0.1]


def test_a_warm_time_that_gains_little_is_flat_and_one_that_gains_much_is_not() -> None:
    """Cold gains 200 ms; warm gains 10, 180 and less than nothing."""
    gains = {"warm time gains 5%": [0.05, 0.05, 0.06], "gains 90%": [0.1, 0.2, 0.28], "gains 0%": [0.06, 0.05, 0.05]}
    said = {share: growth_said(record([0.1, 0.2, 0.3], warm_s)) for share, warm_s in gains.items()}
    assert all(share in sentence for share, sentence in said.items())
    assert said["warm time gains 5%"].startswith("cold 100 ms to 300 ms, warm 50 ms to 60 ms: ")
    assert [sentence.endswith("Flat, as the field reports.") for sentence in said.values()] == [True, False, True]
    assert said["gains 90%"].endswith("Here it is not flat.")


def test_a_cold_time_that_does_not_grow_is_nothing_to_compare_with() -> None:
    assert "hardly grew" in growth_said(record([0.3, 0.2, 0.4], [0.05, 0.05, 0.06]))


def test_the_tokens_say_the_same_without_a_clock() -> None:
    nothing = [1.0, 1.0, 1.0]
    assert growth_counts(record(nothing, nothing, cold=[40, 80, 120], warm=[20, 25, 33])) == (
        "cold: computed tokens grow with the prompt\nwarm: computed tokens hardly change, by less than two pages"
    )
    assert "warm: computed tokens grow, too" in growth_counts(record(nothing, nothing, cold=[40, 120], warm=[40, 120]))
    assert "cold: computed tokens hardly grow" in growth_counts(record(nothing, nothing, cold=[40, 50], warm=[40, 50]))


@pytest.mark.parametrize("phase", ["cold", "warm"])
def test_a_server_that_tells_no_cached_tokens_is_said_to_tell_none(phase: str) -> None:
    tokens: dict[str, list[int | None]] = {"cold": [40, 80], "warm": [20, 20], phase: [None, None]}
    assert "tells no cached tokens" in growth_counts(record([1, 1, 1], [1, 1, 1], **tokens))
