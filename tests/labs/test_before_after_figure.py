from __future__ import annotations

import pytest

from labs.kit.figures.before_after import before_after


def test_the_sentence_and_the_bars_hold_both_counts_of_each_prompt() -> None:
    drawn = before_after({"clock": [(16, 209), (176, 211)], "tools": [(48, 250), (224, 250)]})
    assert drawn.sentence == (
        "Cached tokens of the second request before and after the repair: "
        "clock 16 of 209, then 176 of 211; tools 48 of 250, then 224 of 250."
    )
    (axes,) = drawn.figure.axes
    assert [bar.get_width() for bar in axes.patches] == [16, 193, 176, 35, 48, 202, 224, 26]
    assert drawn.png().startswith(b"\x89PNG")


@pytest.mark.parametrize("counts", [(212, 211), (-1, 211)])
def test_counts_that_cannot_be_are_refused(counts: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="'clock' has"):
        before_after({"clock": [(16, 209), counts]})
