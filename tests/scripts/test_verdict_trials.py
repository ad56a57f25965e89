"""The report of the trials counts what is wrong, and an inconclusive verdict is."""

from __future__ import annotations

from scripts.verdict_trials.report import Trial, as_markdown, as_table


def trial(verdict: str, *, cache: str = "on", ratio: float | None = 0.1, groups: int = 1) -> Trial:
    expected = "reused" if cache == "on" else "not_reused"
    record = {"verdict": verdict, "groups": groups, "signals": {"clock": {"value": ratio}}}
    return Trial("minivllm", cache, "clock alone", expected, record, 4.0)


TRIALS = [
    trial("reused"),
    trial("reused", ratio=0.3, groups=3),
    trial("inconclusive", ratio=None),
    trial("not_reused", cache="off", ratio=1.0, groups=3),
    trial("reused", cache="off", ratio=0.5, groups=3),
]


def test_inconclusive_and_the_other_verdict_are_wrong() -> None:
    assert [one.is_right for one in TRIALS] == [True, True, False, True, False]
    assert "WRONG, expected not_reused" in TRIALS[-1].line(2) and "(right)" in TRIALS[0].line(1)


def test_there_is_a_row_for_each_kind_with_counts_ratios_and_groups() -> None:
    _, on, off = as_table(TRIALS).splitlines()
    told = "minivllm on clock alone 3 2 1 inconclusive 0.200 (0.100 to 0.300) 2 x 1, 1 x 3 4 s"
    assert " ".join(on.split()) == told
    assert "1 reused" in off and "2 x 3" in off


def test_the_markdown_has_the_conditions_and_what_is_not_shown() -> None:
    text = as_markdown(TRIALS, {"machine": "two cores", "command": "scripts/verdict-trials.py --runs 3"})
    assert "| minivllm | on | clock alone | 3 | 2 | 1 inconclusive |" in text
    assert "- machine: two cores" in text and "## What this does not show" in text
