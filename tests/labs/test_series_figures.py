from __future__ import annotations

import pytest

from labs.kit.figures.series import bars, lines


def test_a_line_says_where_it_starts_and_ends() -> None:
    drawn = lines(
        "Time to first token",
        "prompt (tokens)",
        "time (ms)",
        {"cold": [(200, [500.0, 510.0, 530.0]), (600, 1700.0)], "warm": [(200, 90.0), (600, 95.5)]},
        unit="ms",
        caption="n = 3, CPU",
    )
    assert drawn.sentence == (
        "Time to first token: cold goes from 510 to 1,700 ms between 200 and 600; "
        "warm goes from 90 to 95.5 ms between 200 and 600."
    )
    assert drawn.png().startswith(b"\x89PNG")


def test_bars_say_every_height() -> None:
    drawn = bars("Restored tokens", "tokens", {"lru": 0, "scan": [76, 76]}, unit="tokens", caption="n = 1")
    assert drawn.sentence == "Restored tokens: lru 0 tokens, scan 76 tokens."


def test_a_series_without_values_is_refused() -> None:
    with pytest.raises(ValueError, match="a series without values"):
        bars("x", "y", {"empty": []}, unit="s", caption="")
