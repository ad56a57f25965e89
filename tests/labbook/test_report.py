"""The report's two ratios, its warning, and its word for the control."""

import pytest

from labbook.measure import measure
from labbook.report import as_text


@pytest.fixture
def record(serve) -> dict:
    return measure(serve().url, prefix_words=60, timeout_s=10.0, repeats=1)


def with_times(record: dict, cold_s: float, warm_s: float, control_s: float | None) -> list[str]:
    spread = {"count": 3, "p50": warm_s, "mean": warm_s, "min": warm_s, "max": warm_s}
    times = {"cold_s": cold_s, "warm_s": spread, "control_s": control_s, "warm_over_cold": warm_s / cold_s}
    return as_text(record | times).splitlines()


def line_with(lines: list[str], words: str) -> str:
    (line,) = [line for line in lines if words in line]
    return line


def test_the_ratio_stands_with_its_interval_and_the_clock_names_its_groups(record) -> None:
    lines = as_text(record).splitlines()
    interval = record["warm_over_cold_interval"]
    ratio = line_with(lines, "  warm / cold ")
    assert f"{record['warm_over_cold']:.3f} ({interval['low']:.3f} to {interval['high']:.3f})" in ratio
    assert "from 1 group" in " ".join(" ".join(lines).split())


def test_several_groups_are_told_in_a_row_for_each_phase_and_with_the_rule_of_repeating(serve) -> None:
    record = measure(serve().url, prefix_words=60, timeout_s=10.0, repeats=4)
    lines = as_text(record).splitlines()
    assert "4 groups, decided beforehand" in line_with(lines, "  groups ")
    assert "4 cold, 12 warm, 4 control; 0 failed" in line_with(lines, "  requests ")
    assert line_with(lines, "  warm, 12 ").endswith(" 64")
    assert line_with(lines, "  control (changed prefix), 4 ").endswith(" 0")


@pytest.mark.parametrize(
    ("cold_s", "control_s", "times"), [(3.0, 0.2, "15.0"), (0.2, 0.32, "1.6"), (0.2, 0.3, None), (0.3, 0.29, None)]
)
def test_cold_and_control_that_are_far_apart_ask_for_another_measurement(record, cold_s, control_s, times) -> None:
    warned = [line for line in with_times(record, cold_s, 0.1, control_s) if "cold and control differ" in line]
    told = f"  cold and control differ {times} times: the machine was busy or still warming up; measure again"
    assert warned == ([] if times is None else [told])


def test_without_a_control_there_is_one_ratio_and_no_warning(record) -> None:
    text = "\n".join(with_times(record, 3.0, 0.1, None))
    assert "differ" not in text


def test_the_control_is_explained_once_in_the_table_and_has_one_name(record) -> None:
    text = as_text(record)
    assert text.count("changed prefix") == text.count("\n  control (changed prefix)") == 1
    assert record["control_s"] is not None and "the control 0" in text
