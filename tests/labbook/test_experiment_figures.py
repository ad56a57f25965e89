"""Figures of growth, eviction and ratios: each says in a sentence what it shows, computed from the record."""

from __future__ import annotations

from pathlib import Path

import pytest

from labbook.burst import measure_burst
from labbook.errors import UsageError
from labbook.experiment_figures import eviction_bars, growth_lines, ratio_intervals
from labbook.growth import measure_growth
from labbook.measure import measure
from labbook.plot import figure_of

OPTIONS = {"prefix_words": 60, "timeout_s": 10.0}


@pytest.fixture
def growth(serve) -> dict:
    return measure_growth(serve().url, label="mine", repeats=3, **OPTIONS)


@pytest.fixture
def eviction(serve) -> dict:
    return measure(serve(most_stored=2).url, experiment="eviction", competitors=3, **OPTIONS)


def test_growth_draws_two_lines_and_every_pair_with_units(growth, tmp_path: Path) -> None:
    drawn = growth_lines(growth, tmp_path / "growth.png")
    (axes,) = drawn.figure.axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("length (tokens)", "time to first token (ms)")
    assert [len(line.get_xdata()) for line in axes.lines] == [15, 2, 15, 2]
    slope = growth["lines"]["cold"]["slope_ms"]["value"]
    assert drawn.sentence.startswith(f"mine: time to first token: cold {slope:.3f} ms a token (")
    assert drawn.sentence.endswith(f"verdict {growth['verdict']}.")
    assert (tmp_path / "growth.txt").read_text(encoding="utf-8").startswith(drawn.sentence)


def test_eviction_draws_what_was_there_before_and_after(eviction) -> None:
    drawn = eviction_bars(eviction)
    (axes,) = drawn.figure.axes
    assert [tick.get_text() for tick in axes.get_xticklabels()][0::3] == ["cold", "again,\nafter"]
    assert len(axes.patches) == 4
    assert f"after 3 competing prompts of {eviction['competing_s'] * 1000:.0f} ms each" in drawn.sentence
    assert drawn.sentence.endswith("verdict not_reused.")


def test_ratios_stand_beside_each_other_with_their_intervals(serve, eviction) -> None:
    pair = measure(serve().url, label="pair", **OPTIONS)
    drawn = ratio_intervals([pair, eviction])
    interval = pair["signals"]["clock"]["details"]["interval"]
    assert f"pair {interval['value']:.2f} ({interval['low']:.2f} to {interval['high']:.2f}), reused" in drawn.sentence
    assert [tick.get_text() for tick in drawn.figure.axes[0].get_xticklabels()] == ["pair", "eviction"]


def test_each_experiment_has_its_figure(serve, growth, eviction) -> None:
    burst = measure_burst(serve().url, 2, prefix_words=20, timeout_s=10.0)
    titles = [figure_of([record]).figure.axes[0].get_title() for record in (growth, eviction, burst)]
    assert titles == [
        "Time against the length of the prompt",
        "Before and after 3 competing prompts",
        "Bursts of 2",
    ]
    control = measure(serve().url, experiment="control", **OPTIONS)
    assert figure_of([control]).figure.axes[0].get_title() == "Cold, warm and control"


def test_a_record_of_another_experiment_is_refused() -> None:
    quiz = {"experiment": "quiz", "lab": "course"}
    for draw in (growth_lines, eviction_bars, lambda record: figure_of([record])):
        with pytest.raises(UsageError):
            draw(quiz)
    for records in ([], [{"experiment": "quiz"}]):
        with pytest.raises(UsageError):
            ratio_intervals(records)
