"""Whole characters only, and nothing of a stop string ever shown."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from minivllm.stop_text import AnswerText


class Pieces:
    """A stream decoder whose tokens are numbers of given bytes; it keeps an incomplete character to itself."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces = pieces
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def add(self, token_id: int) -> str:
        return self._decoder.decode(self._pieces[token_id])

    def flush(self) -> str:
        return self._decoder.decode(b"", final=True)


def show(pieces: Sequence[str | bytes], stop: Sequence[str] = ()) -> tuple[list[str], AnswerText]:
    """What is shown after each piece, until a stop string ends the answer, and after its end."""
    encoded = [piece.encode() if isinstance(piece, str) else piece for piece in pieces]
    answer = AnswerText(Pieces(encoded), stop)
    shown = []
    for number in range(len(encoded)):
        answer.add(number)
        shown.append(answer.shown)
        if answer.stopped_by is not None:
            break
    answer.finish()
    return [*shown, answer.shown], answer


def test_without_stop_strings_text_is_shown_at_once() -> None:
    assert show(["He", "llo"])[0] == ["He", "Hello", "Hello"]


def test_a_stop_string_within_one_token_ends_the_text_before_it() -> None:
    shown, answer = show(["one STOP two"], ["STOP"])
    assert shown == ["one ", "one "]
    assert answer.stopped_by == "STOP"


def test_a_stop_string_split_across_tokens_is_never_shown_in_part() -> None:
    shown, answer = show(["one S", "T", "OP two"], ["STOP"])
    assert shown == ["one ", "one ", "one ", "one "]
    assert answer.stopped_by == "STOP"


def test_text_that_only_began_like_a_stop_string_is_shown_after_all() -> None:
    assert show(["a ST", "AR", "S"], ["STOP"])[0] == ["a ", "a STAR", "a STAR", "a STARS"]


def test_what_was_held_back_is_shown_when_the_answer_ends_otherwise() -> None:
    shown, answer = show(["a STO"], ["STOP"])
    assert shown == ["a ", "a STO"]
    assert answer.stopped_by is None


def test_a_repeated_beginning_does_not_hide_the_stop_string() -> None:
    assert show(["a", "a", "a", "b", "x"], ["aab"])[0] == ["", "", "a", "a", "a"]


def test_of_several_stop_strings_the_one_that_begins_first_counts() -> None:
    shown, answer = show(["x END y STOP"], ["STOP", "END"])
    assert (shown[-1], answer.stopped_by) == ("x ", "END")


def test_a_stop_string_of_one_character_holds_nothing_back() -> None:
    shown, answer = show(["ab", "c\nd"], ["\n"])
    assert (shown, answer.stopped_by) == (["ab", "abc", "abc"], "\n")


def test_a_character_is_shown_when_its_last_byte_has_come() -> None:
    assert show(["☃a".encode()[:1], "☃a".encode()[1:3], b"a"])[0] == ["", "☃", "☃a", "☃a"]


def test_a_stop_string_of_several_bytes_is_found_across_tokens() -> None:
    data = "x☃!".encode()
    shown, answer = show([data[:2], data[2:4], data[4:]], ["☃!"])
    assert (shown, answer.stopped_by) == (["x", "x", "x", "x"], "☃!")


def test_bytes_that_never_became_a_character_show_as_a_replacement_at_the_end() -> None:
    assert show(["a", b"\xe2\x98"])[0] == ["a", "a", "a\ufffd"]


def test_the_rest_of_a_character_may_complete_a_stop_string() -> None:
    shown, answer = show(["a", b"\xe2\x98"], ["a\ufffd"])
    assert (shown[-1], answer.stopped_by) == ("", "a\ufffd")


def test_the_end_may_be_told_twice() -> None:
    _, answer = show(["a ST", b"\xe2"], ["STOP"])
    before = answer.shown
    answer.finish()
    assert answer.shown == before == "a ST\ufffd"


@given(
    text=st.text(alphabet="ab☃é", max_size=14),
    stop=st.lists(st.text(alphabet="ab☃", min_size=1, max_size=4), max_size=3),
    cuts=st.lists(st.integers(0, 40), max_size=10),
)
@example(text="aab", stop=["ab"], cuts=[1, 2])
def test_whatever_the_tokens_the_text_ends_before_the_first_stop_string(
    text: str, stop: list[str], cuts: list[int]
) -> None:
    data = text.encode()
    bounds = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    pieces = [data[start:end] for start, end in pairwise(bounds)]
    shown, answer = show(pieces, stop)
    so_far = right = ""
    for piece_end in bounds[1:]:
        so_far = data[:piece_end].decode(errors="ignore")
        starts = [so_far.find(string) for string in stop if string in so_far]
        right = so_far[: min(starts)] if starts else so_far
        if starts:
            break
    assert shown[-1] == (right if pieces else "")
    assert (answer.stopped_by is not None) == any(string in so_far for string in stop)
    assert all(shown[-1].startswith(earlier) for earlier in shown), "nothing shown is ever taken back"
