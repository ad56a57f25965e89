"""Which sequences a server still holds, in prompts of a few tokens that one can draw."""

from __future__ import annotations

import threading

from hypothesis import given
from hypothesis import strategies as st

from labs.kit.doubles.memory import Memory, Recent, Slots, longest_shared, shared

X, Y, Z = [1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]
tokens = st.lists(st.integers(0, 2), max_size=6)


def run(memory: Memory, prompt: list[int], answer: int = 0) -> int:
    """One request from start to end; returns how many tokens it was allowed to find."""
    grant = memory.begin(prompt)
    assert memory.granted(prompt) == grant.num_tokens
    memory.end(grant, [*prompt, answer])
    assert memory.granted(prompt) == 0
    return grant.num_tokens


def test_one_slot_holds_what_it_processed_last() -> None:
    slots = Slots(1)
    assert [run(slots, prompt) for prompt in (X, X, Y, X)] == [0, 4, 0, 0]


def test_a_slot_holds_the_answer_too() -> None:
    slots = Slots(1)
    run(slots, X, answer=7)
    assert run(slots, [*X, 7, 8]) == 5


def test_two_slots_hold_two_chats_and_a_third_takes_the_one_that_waited_longest() -> None:
    slots = Slots(2)
    assert [run(slots, prompt) for prompt in (X, Y, X, Z, X, Y)] == [0, 0, 4, 0, 4, 0]


def test_a_prompt_too_unlike_every_slot_takes_the_oldest_instead_of_the_nearest() -> None:
    """1 token of 8 is 12 %: similar enough at 0.1, not at 0.5."""
    alike = [1, 20, 21, 22, 23, 24, 25, 26]
    for similarity, chosen in ((0.1, 1), (0.5, 0)):
        slots = Slots(2, similarity)
        run(slots, Y), run(slots, X)
        assert slots.begin(alike).slot == chosen


def test_a_slot_that_is_named_is_taken() -> None:
    slots = Slots(3)
    assert slots.begin(X, slot=2).slot == 2


def test_a_request_that_may_reuse_nothing_is_granted_nothing_and_still_leaves_its_tokens() -> None:
    slots = Slots(1)
    run(slots, X)
    refused = slots.begin(X, may_reuse=False)
    slots.end(refused, X)
    assert refused.num_tokens == 0 and run(slots, X) == 4


def test_with_room_for_them_sequences_survive_the_loss_of_their_slot() -> None:
    slots = Slots(1, kept_tokens=5)
    assert [run(slots, prompt) for prompt in (X, Y, X)] == [0, 0, 4]


def test_the_room_for_lost_sequences_ends_and_the_oldest_goes() -> None:
    slots = Slots(1, kept_tokens=5)
    assert [run(slots, prompt) for prompt in (X, Y, Z, X)] == [0, 0, 0, 0]


def test_a_request_waits_for_the_only_slot() -> None:
    slots = Slots(1)
    first = slots.begin(X)
    seen: list[int] = []
    second = threading.Thread(target=lambda: seen.append(run(slots, X)))
    second.start()
    assert seen == []
    slots.end(first, X)
    second.join(30)
    assert seen == [4]


def test_the_last_sequences_are_held_as_many_as_there_is_room_for() -> None:
    recent = Recent(2)
    assert [run(recent, prompt) for prompt in (X, Y, X, Z, X, Y)] == [0, 0, 4, 0, 4, 0]


def test_a_longer_sequence_takes_the_place_of_the_one_it_begins_with() -> None:
    recent = Recent(2)
    run(recent, X, answer=5)
    run(recent, Y)
    assert run(recent, [*X, 5, 6]) == 5
    assert run(recent, Y) == 4


@given(tokens, tokens)
def test_shared_tokens_are_equal_and_the_next_ones_differ(first: list[int], second: list[int]) -> None:
    count = shared(first, second)
    assert first[:count] == second[:count] and count == shared(second, first)
    assert count == min(len(first), len(second)) or first[count] != second[count]


@given(st.lists(tokens, min_size=1, max_size=8), st.integers(1, 3))
def test_nothing_is_granted_that_was_not_processed_before(prompts: list[list[int]], room: int) -> None:
    for memory in (Recent(room), Slots(room), Slots(room, kept_tokens=room)):
        before: list[list[int]] = []
        for prompt in prompts:
            assert run(memory, prompt) <= longest_shared(prompt, before)
            before.append([*prompt, 0])
