from __future__ import annotations

from pathlib import Path

import pytest

from labbook.errors import UsageError
from labbook.figures import token_bars


def test_the_sentence_holds_every_count_and_is_saved_beside_the_picture(tmp_path: Path) -> None:
    drawn = token_bars({"plain": (32, 40), "time in front": (0, 42)}, tmp_path / "tokens.png")
    assert drawn.sentence == "Cached tokens of the prompt: 32 of 40 (plain), 0 of 42 (time in front)."
    assert (tmp_path / "tokens.png").read_bytes().startswith(b"\x89PNG")
    assert drawn.sentence in (tmp_path / "tokens.txt").read_text(encoding="utf-8")


def test_the_bars_are_as_high_as_the_counts() -> None:
    (axes,) = token_bars({"plain": (32, 40), "clock": (0, 42)}).figure.axes
    assert [bar.get_height() for bar in axes.patches] == [32, 0, 8, 42]
    assert axes.get_ylabel() == "tokens"


@pytest.mark.parametrize("counts", [(41, 40), (-1, 40)])
def test_counts_that_cannot_be_are_refused(counts: tuple[int, int]) -> None:
    with pytest.raises(UsageError, match="'plain' has"):
        token_bars({"plain": counts})
