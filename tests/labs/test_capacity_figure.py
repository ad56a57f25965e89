from __future__ import annotations

import pytest

from labs.kit.figures.capacity import capacity_curves

CURVES = {"lru": [(0.5, 32), (1.0, 64), (1.25, 0), (2.0, 0)], "scan": [(0.5, 32), (1.0, 64), (1.25, 48), (2.0, 32)]}


def test_the_sentence_says_where_the_curves_part() -> None:
    figure = capacity_curves(CURVES, 64, caption="n = 1")
    assert figure.sentence == (
        "Tokens restored when a working set comes round again: lru 64 at capacity, 0 at 1.25 times it and 0 at 2 "
        "times; scan 64 at capacity, 48 at 1.25 times it and 32 at 2 times."
    )
    assert figure.png().startswith(b"\x89PNG")


@pytest.mark.parametrize("points", [[(0.5, 32)], [(0.5, 32), (1.0, 64)], [(0.5, 32), (1.5, 0)]])
def test_a_curve_that_does_not_cross_the_capacity_is_refused(points: list[tuple[float, int]]) -> None:
    with pytest.raises(ValueError, match="'lru' needs a point at capacity and one beyond it"):
        capacity_curves({"lru": points}, 64, caption="n = 1")
