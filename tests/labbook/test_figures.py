"""Every figure carries its sentence: in the PNG, beside it, and in a notebook's output."""

import struct
from pathlib import Path

import pytest

from labbook.errors import LabbookError, UsageError
from labbook.figures import cold_warm_bars

RECORD = {
    "lab": "prefix-cache",
    "label": "",
    "model": "m1",
    "engine": "lab",
    "engine_version": None,
    "prompt_tokens": 616,
    "timed": "time to first token",
    "cold_s": 4.1,
    "control_s": 4.2,
    "warm_over_cold": 0.05,
    "verdict": "reused",
    "warm_s": {"count": 3, "p50": 0.2, "mean": 0.2, "min": 0.1, "max": 0.3},
    "requests": [{"phase": "warm", "ttft_s": 0.1}, {"phase": "warm", "ttft_s": None}],
    "environment": {"device": "Linux x86_64, 2 CPU cores"},
}
SENTENCE = (
    "time to first token is 4.10 s cold and 200 ms warm (median of 3, 100 ms to 300 ms), the control "
    "4.20 s; warm over cold 0.05, verdict reused."
)


def text_chunks(png: bytes) -> dict[str, str]:
    found, place = {}, 8
    while place < len(png):
        (length,) = struct.unpack(">I", png[place : place + 4])
        kind, body = png[place + 4 : place + 8], png[place + 8 : place + 8 + length]
        if kind == b"tEXt":
            key, _, value = body.partition(b"\0")
            found[key.decode("latin-1")] = value.decode("latin-1")
        place += 12 + length
    return found


def test_the_sentence_is_computed_from_the_data() -> None:
    assert cold_warm_bars(RECORD).sentence == SENTENCE


def test_the_sentence_is_in_the_picture_and_beside_it(tmp_path: Path) -> None:
    drawn = cold_warm_bars(RECORD, tmp_path / "bars.png")
    assert text_chunks((tmp_path / "bars.png").read_bytes())["Description"] == SENTENCE
    assert (tmp_path / "bars.txt").read_text(encoding="utf-8") == f"{SENTENCE}\n{drawn.caption}\n"


def test_a_notebook_gets_the_sentence_as_text_and_as_alt() -> None:
    data, metadata = cold_warm_bars(RECORD)._repr_mimebundle_()
    assert data["text/plain"] == SENTENCE
    assert data["image/png"].startswith(b"\x89PNG")
    assert metadata == {"image/png": {"alt": SENTENCE}}


def test_the_axes_name_their_unit_and_the_caption_names_n_and_device() -> None:
    drawn = cold_warm_bars(RECORD)
    (axes,) = drawn.figure.axes
    assert axes.get_ylabel() == "time to first token (s)"
    assert drawn.caption == (
        "n = 1 cold request, 3 warm, 1 control (changed prefix); prompt of 616 tokens; m1 on lab; "
        "measured from Linux x86_64, 2 CPU cores"
    )
    assert drawn.figure.get_facecolor()[:3] == axes.get_facecolor()[:3] == (1.0, 1.0, 1.0)


def test_bars_differ_in_hatch_and_not_in_colour_alone() -> None:
    (axes,) = cold_warm_bars(RECORD).figure.axes
    bars = [patch for patch in axes.patches if patch.get_height() > 0]
    assert [bar.get_height() for bar in bars] == [4.1, 0.2, 4.2]
    assert len({bar.get_hatch() for bar in bars}) == 3


def test_short_times_are_drawn_in_milliseconds() -> None:
    short = RECORD | {"cold_s": 0.4, "control_s": None}
    (axes,) = cold_warm_bars(short).figure.axes
    assert axes.get_ylabel() == "time to first token (ms)"
    assert [bar.get_height() for bar in axes.patches] == [400.0, 200.0]


def test_several_records_stand_side_by_side_with_their_labels() -> None:
    drawn = cold_warm_bars([RECORD | {"label": "cache on"}, RECORD | {"label": "cache off", "verdict": "not_reused"}])
    assert drawn.sentence.startswith("cache on: time") and "cache off: time" in drawn.sentence
    assert len(drawn.figure.axes[0].patches) == 6


def test_what_cannot_be_drawn_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"it lacks model, cold_s"):
        cold_warm_bars({"lab": "quiz"})
    with pytest.raises(UsageError, match="no record"):
        cold_warm_bars([])
    with pytest.raises(UsageError, match=r"ends in \.png"):
        cold_warm_bars(RECORD, tmp_path / "bars.pdf")
    with pytest.raises(LabbookError, match="cannot write the figure"):
        cold_warm_bars(RECORD, tmp_path / "missing" / "bars.png")
