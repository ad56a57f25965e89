"""Growth: pairs of five lengths in random order, two lines, and what they support."""

from __future__ import annotations

import pytest

from labbook.errors import ServerError, UsageError
from labbook.growth import measure_growth, num_requests
from labbook.growth_fit import Point, clock_signal, fit
from labbook.record import from_line, to_line
from labbook.report import as_text, can_tell
from labbook.run import Plan

COUNTED = ("cached_tokens", "counters")


def run(state, **options) -> dict:
    return measure_growth(state.url, **{"prefix_words": 100, "repeats": 3, "timeout_s": 10.0, **options})


def points(cold_ms: float, warm_ms: float, *, fixed_ms: float = 50.0, spread: float = 0.0) -> list[list[Point]]:
    """Five lengths, three pairs each: `cold_ms` and `warm_ms` a token, and the times of a pair moved by `spread`."""
    moved = (1 - spread, 1.0, 1 + spread)
    return [
        [Point(n, (fixed_ms + cold_ms * n) * share, n, (fixed_ms + warm_ms * n) * share) for share in moved]
        for n in (100, 200, 300, 400, 500)
    ]


def test_times_on_two_lines_give_their_slopes_and_fixed_costs() -> None:
    growth = fit(points(2.0, 0.1))
    assert growth.cold.slope_ms.value == pytest.approx(2.0) and growth.cold.fixed_ms.value == pytest.approx(50)
    assert growth.warm.slope_ms.value == pytest.approx(0.1) and growth.warm.fixed_ms.value == pytest.approx(50)
    assert growth.slope_ratio is not None and growth.slope_ratio.value == pytest.approx(0.05)
    assert growth.slope_ratio.low == pytest.approx(growth.slope_ratio.high)


@pytest.mark.parametrize(
    ("cold_ms", "warm_ms", "spread", "supports"),
    [(2.0, 0.1, 0.1, "reused"), (2.0, 2.0, 0.05, "not_reused"), (2.0, 1.4, 0.3, None), (0.0, 0.0, 0.1, None)],
)
def test_the_slopes_support_only_what_they_show(cold_ms, warm_ms, spread, supports) -> None:
    assert clock_signal(fit(points(cold_ms, warm_ms, spread=spread)), "token").supports == supports


def test_a_straggler_at_one_length_moves_no_line() -> None:
    strata = points(2.0, 0.1)
    strata[0][0] = Point(100, 9000.0, 100, 9000.0)
    growth = fit(strata)
    assert growth.cold.slope_ms.value == pytest.approx(2.0) and growth.warm.slope_ms.value == pytest.approx(0.1)


def test_a_record_has_two_lines_three_signals_and_every_pair(serve) -> None:
    record = run(serve(), label="mine")
    assert (record["experiment"], record["per"]) == ("growth", "token")
    assert [record["signals"][name]["supports"] for name in COUNTED] == ["reused", "reused"]
    assert {pair["words"] for pair in record["lengths"]} == {20, 40, 60, 80, 100}
    assert len(record["lengths"]) == 15 and len(record["requests"]) == 30
    assert record["signals"].keys() == {"clock", "cached_tokens", "counters"}
    assert from_line(to_line(record)) == record
    nulls = {name for name, value in record.items() if value is None} - {"first_error"}
    assert nulls == record["absent"].keys()


def test_pairs_of_all_lengths_come_in_random_order_each_cold_by_its_own_nonce(serve) -> None:
    state = serve()
    record = run(state)
    words = [request["words"] for request in record["requests"] if request["phase"] == "cold"]
    assert words != sorted(words) and sorted(words) == sorted([20, 40, 60, 80, 100] * 3)
    nonces = [body["messages"][0]["content"].split()[0] for body in state.bodies[1:]]
    assert nonces[0::2] == nonces[1::2]
    assert len(set(nonces)) == 15
    assert all(request["cached_tokens"] == 0 for request in record["requests"] if request["phase"] == "cold")


def test_a_cache_that_is_off_is_told_by_the_counts(serve) -> None:
    record = run(serve(cache=False))
    assert [record["signals"][name]["supports"] for name in COUNTED] == ["not_reused", "not_reused"]


def test_without_token_counts_lengths_are_words(serve) -> None:
    record = run(serve(usage=False, metrics=False))
    assert (record["per"], record["prompt_tokens"]) == ("word", None)
    assert {pair["cold_length"] for pair in record["lengths"]} == {20, 40, 60, 80, 100}
    assert record["absent"]["prompt_tokens"]


def test_a_cold_request_that_was_warm_is_contaminated(serve) -> None:
    record = run(serve(foreign_tokens=60))
    assert record["verdict"] == "contaminated"


def test_a_failed_pair_is_left_out(serve) -> None:
    record = run(serve(fails_at_request=(2,)))
    assert record["failed"] == 1 and len(record["lengths"]) == 14


def test_too_little_that_succeeds_is_no_measurement(serve) -> None:
    with pytest.raises(ServerError, match="fewer than two lengths"):
        run(serve(fails_at_request=tuple(range(2, 30))))


@pytest.mark.parametrize("options", [{"prefix_words": 49}, {"repeats": 2}])
def test_a_plan_that_shows_no_growth_is_refused(serve, options: dict) -> None:
    with pytest.raises(UsageError):
        run(serve(), **options)


def test_the_progress_counts_every_request(serve) -> None:
    seen: list[str] = []
    run(serve(), progress=seen.append)
    assert len(seen) == num_requests(Plan(repeats=3)) == 31


def test_the_report_has_a_row_for_each_length_and_both_lines_with_units(serve) -> None:
    record = run(serve())
    assert can_tell(record)
    text = as_text(record)
    assert "words of prefix" in text and "ms a token" in text and "ms besides" in text and "verdict: " in text
    rows = [line for line in text.splitlines() if line.strip().startswith(("20 ", "40 ", "60 ", "80 ", "100 "))]
    assert len(rows) == 5
