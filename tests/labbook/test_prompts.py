"""Prompts are the same for the same seed, and cold by their nonce."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labbook import prompts


@given(words=st.integers(1, 300), seed=st.integers(0, 50))
def test_a_synthetic_text_has_exactly_its_words_and_depends_on_its_seed_only(words: int, seed: int) -> None:
    text = prompts.synthetic_text(words, seed)
    assert len(text.split()) == words
    assert text == prompts.synthetic_text(words, seed)


def test_a_synthetic_text_is_the_same_on_every_machine() -> None:
    assert prompts.synthetic_text(12, 0) == "The second shelf counts one copy of the register for the next"


def test_texts_of_other_seeds_differ_early() -> None:
    first, second = (prompts.synthetic_text(100, seed).split() for seed in (1, 2))
    assert first[:30] != second[:30]


def test_a_text_needs_a_word() -> None:
    with pytest.raises(ValueError, match="words is 0"):
        prompts.synthetic_text(0, 0)


def test_nonces_are_fresh_and_differ_from_their_first_letter_on() -> None:
    seen = [nonce for _ in range(50) for nonce in prompts.fresh_nonces(3)]
    assert len(set(seen)) == 150
    for _ in range(50):
        assert len({nonce[0] for nonce in prompts.fresh_nonces(3)}) == 3


def test_questions_differ_for_many_requests() -> None:
    assert len({prompts.question(number, seed=4) for number in range(40)}) == 40


@pytest.mark.parametrize(
    ("first", "second", "place"),
    [
        (b"abc", b"abc", None),
        (b"abc", b"abd", 2),
        (b"", b"", None),
        (b"ab", b"abc", 2),
        (b"xbc", b"abc", 0),
    ],
)
def test_the_first_difference_of_two_bodies_is_found(first: bytes, second: bytes, place: int | None) -> None:
    assert prompts.first_difference(first, second) == place


BODY = {"model": "m", "messages": [{"role": "system", "content": "at 09:41 the archive, at 09:41, closes at 09:41"}]}


def with_content(content: str) -> dict:
    return {"model": "m", "messages": [{"role": "system", "content": content}]}


@pytest.mark.parametrize(
    ("other", "place"),
    [
        (with_content("at 09:42 the archive, at 09:41, closes at 09:41"), b"09:41 the"),
        (with_content("at 09:41 the archive, at 09:42, closes at 09:41"), b"09:41, closes"),
        (with_content("at 09:41 the archive, at 09:41, closes at 09:42"), b'09:41"'),
        (with_content("at 09:41 the archive,  at 09:41, closes at 09:41"), b"at 09:41, closes"),
        ({"messages": BODY["messages"], "model": "m"}, b'model":"m"'),
    ],
    ids=["time at the start", "in the middle", "at the end", "one blank", "order of keys"],
)
def test_two_bodies_that_differ_are_told_apart_at_their_first_byte(other: dict, place: bytes) -> None:
    """MS-11: what was meant to be the same prompt, and is not."""
    first, second = prompts.body_bytes(BODY), prompts.body_bytes(other)
    found = prompts.first_difference(first, second)
    assert found is not None and 0 <= found - first.index(place) < 5
    assert prompts.sha256(first) != prompts.sha256(second)


def test_one_letter_makes_another_nonce_and_keeps_its_length() -> None:
    for _ in range(50):
        (nonce,) = prompts.fresh_nonces(1)
        other = prompts.with_another_first_letter(nonce)
        assert other[0] != nonce[0] and other[1:] == nonce[1:]


def test_a_lone_surrogate_in_a_body_does_not_stop_the_request() -> None:
    assert prompts.body_bytes({"model": "m\ud800"}) == b'{"model":"m?"}'
