from __future__ import annotations

import pytest

from labs.kit.table import text_table


def test_numbers_stand_to_the_right_and_words_to_the_left() -> None:
    shown = text_table(["policy", "computed tokens"], [["off", 4256], ["page", 588], ["unknown", None]])
    assert shown.splitlines() == [
        "policy   computed tokens",
        "off                4,256",
        "page                 588",
        "unknown                -",
    ]


def test_a_table_without_rows_is_its_headings() -> None:
    assert text_table(["a", "b"], []) == "a  b"


def test_a_row_that_does_not_fit_the_headings_is_refused() -> None:
    with pytest.raises(ValueError, match="1 cells for 2 columns"):
        text_table(["a", "b"], [["x"]])
