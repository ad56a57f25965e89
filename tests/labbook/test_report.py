"""The report's two ratios, its warning, and its word for the control."""

import pytest

from labbook.measure import measure
from labbook.report import as_text


@pytest.fixture
def record(serve) -> dict:
    return measure(serve().url, prefix_words=60, timeout_s=10.0)


def with_times(record: dict, cold_s: float, warm_s: float, control_s: float | None) -> list[str]:
    spread = {"count": 3, "p50": warm_s, "mean": warm_s, "min": warm_s, "max": warm_s}
    times = {"cold_s": cold_s, "warm_s": spread, "control_s": control_s, "warm_over_cold": warm_s / cold_s}
    return as_text(record | times).splitlines()


def line_with(lines: list[str], words: str) -> str:
    (line,) = [line for line in lines if words in line]
    return line


@pytest.mark.parametrize(("cold_s", "control_s"), [(3.0, 0.2), (0.2, 3.0)])
def test_the_ratio_that_the_clock_is_judged_by_stands_beside_warm_over_cold(record, cold_s, control_s) -> None:
    lines = with_times(record, cold_s, 0.19, control_s)
    assert f"warm / cold {0.19 / cold_s:.3f}:" in line_with(lines, "warm / cold 0")
    judged = line_with(lines, "the faster of cold and control")
    assert "cold and control 0.950:" in judged and "200.0 ms without reuse" in judged


@pytest.mark.parametrize(
    ("cold_s", "control_s", "times"), [(3.0, 0.2, "15.0"), (0.2, 0.32, "1.6"), (0.2, 0.3, None), (0.3, 0.29, None)]
)
def test_cold_and_control_that_are_far_apart_ask_for_another_measurement(record, cold_s, control_s, times) -> None:
    warned = [line for line in with_times(record, cold_s, 0.1, control_s) if "cold and control differ" in line]
    told = f"  cold and control differ {times} times: the machine was busy or still warming up; measure again"
    assert warned == ([] if times is None else [told])


def test_without_a_control_there_is_one_ratio_and_no_warning(record) -> None:
    text = "\n".join(with_times(record, 3.0, 0.1, None))
    assert "faster of cold" not in text and "differ" not in text


def test_the_control_is_explained_once_in_the_table_and_has_one_name(record) -> None:
    text = as_text(record)
    assert text.count("changed prefix") == text.count("\n  control (changed prefix)") == 1
    assert record["control_s"] is not None and "the control 0" in text
