"""Slots over pages of four tokens: which one a request gets, what it remembers, and how it gives up its page."""

from __future__ import annotations

import pytest

from labs.kit.toy_engine import T, ToyEngine
from minivllm.cache.audit import AuditError, check_slots
from minivllm.request import RequestError


def toy(**settings: int | str | float) -> ToyEngine:
    return ToyEngine(**{"num_slots": 2, "num_pages": 16, **settings})  # type: ignore[arg-type]


def remembered(engine: ToyEngine) -> list[int]:
    return [len(slot.token_ids) for slot in engine.slots.slots]


def test_a_slot_remembers_the_tokens_that_have_kv_and_owns_the_page_they_end_in() -> None:
    engine = toy()
    request = engine.ask(T(9), max_tokens=2)
    assert engine.slots.slots[0].token_ids == tuple(request.token_ids[:10]), "the last sampled token has no KV"
    assert engine.pages == (16 - 3, 2, 1), "two full pages are cached, one partial page is the slot's"
    assert engine.slots.num_held_tokens(engine.slots.slots[0]) == 10


def test_a_sequence_that_ends_with_a_page_needs_no_page_of_its_slot() -> None:
    engine = toy()
    engine.ask(T(8))
    assert (engine.pages, remembered(engine)) == ((14, 2, 0), [8, 0])


@pytest.mark.parametrize("num_tokens", [1, 3, 4, 5, 8, 11])
def test_the_next_turn_computes_only_what_is_new(num_tokens: int) -> None:
    engine = toy()
    engine.ask(T(num_tokens))
    following = engine.ask([*T(num_tokens), 90, 91])
    assert following.metrics.cached_tokens == num_tokens
    assert following.metrics.computed_tokens == 2


@pytest.mark.parametrize("num_tokens", [1, 2, 3, 4, 5, 7, 8, 9])
def test_the_same_prompt_again_restores_whole_pages_and_leaves_at_least_one_token(num_tokens: int) -> None:
    """PC-01: keys and values alone give no logits. Only who goes on behind a sequence restores its partial page."""
    engine = toy()
    engine.ask(T(num_tokens))
    assert engine.ask(T(num_tokens)).metrics.cached_tokens == (num_tokens - 1) // 4 * 4


@pytest.mark.parametrize(("shared", "hit"), [(3, 0), (4, 4), (7, 4), (8, 8), (11, 8)])
def test_a_prompt_that_leaves_the_sequence_before_its_end_restores_whole_pages(shared: int, hit: int) -> None:
    """PC-09: what is shared counts in pages."""
    engine = toy()
    engine.ask([*T(shared), 80, 81])
    assert engine.ask([*T(shared), 90, 91]).metrics.cached_tokens == hit


def test_without_a_slot_only_whole_pages_are_restored() -> None:
    engine = toy(num_slots=0)
    engine.ask(T(7))
    assert engine.ask([*T(7), 90]).metrics.cached_tokens == 4


def test_a_partial_page_is_never_found_under_another_salt_or_by_one_who_may_not_read() -> None:
    engine = toy(num_slots=1)
    engine.ask(T(3), salt="a")
    assert engine.ask([*T(3), 90], salt="b").metrics.cached_tokens == 0
    engine.ask(T(3), salt="a")
    assert engine.ask([*T(3), 90], salt="a", reads_cache=False).metrics.cached_tokens == 0


def test_a_conversation_returns_to_its_slot_and_a_new_one_takes_the_least_recently_used() -> None:
    engine = toy()
    engine.ask(T(10))
    engine.ask([80] * 6)
    assert remembered(engine) == [10, 6]
    engine.ask([*T(10), 90])
    assert remembered(engine) == [11, 6]
    engine.ask([70] * 5)
    assert remembered(engine) == [11, 5]


def test_the_longest_common_prefix_wins_over_a_shorter_one() -> None:
    engine = toy()
    engine.ask(T(6), id_slot=0)
    engine.ask([*T(6), 80, 81, 82], id_slot=1)
    engine.ask([*T(6), 80, 81, 82, 83])
    assert remembered(engine) == [6, 10]


def test_a_common_preamble_alone_is_no_reason_to_forget_another_conversation() -> None:
    """SV-04: two chats that begin alike keep a slot each, and each goes on where it was."""
    engine = toy()
    preamble = T(4)
    chats = [[*preamble, *[80 + number] * 7] for number in range(2)]
    for chat in chats:
        engine.ask(chat)
    assert remembered(engine) == [11, 11]
    for _ in range(3):
        for number, chat in enumerate(chats):
            chats[number] = [*chat, 60]
            assert engine.ask(chats[number]).metrics.cached_tokens == len(chat)


def test_a_request_for_a_busy_slot_waits_and_holds_up_nobody() -> None:
    engine = toy()
    first = engine.submit(T(5), max_tokens=3, id_slot=1)
    engine.step()
    waiting = engine.submit([80] * 5, id_slot=1)
    other = engine.submit([70] * 5, id_slot=0)
    engine.step()
    assert (waiting.finish_reason, other.finish_reason) == (None, "length")
    engine.run()
    assert first.finish_reason == waiting.finish_reason == "length"
    assert engine.slots.slots[1].token_ids == tuple([80] * 5)


def test_requests_beyond_the_slots_run_without_one() -> None:
    engine = toy(num_slots=1)
    requests = [engine.submit([60 + number] * 5, max_tokens=2) for number in range(3)]
    engine.step()
    assert all(request.num_output_tokens == 1 for request in requests)
    engine.run()
    assert engine.slots.slots[0].last_request_id == "R1"
    assert engine.pages == (16 - 3 - 1, 3, 1)


@pytest.mark.parametrize("id_slot", [-1, 2, True, 1.0, "0"])
def test_a_slot_that_is_not_there_is_refused(id_slot: object) -> None:
    with pytest.raises(RequestError, match=r"id_slot=.* is no slot: there are 0 to 1"):
        toy().slots.check(id_slot)


@pytest.mark.parametrize("admission", ["reserve", "optimistic"])
@pytest.mark.parametrize("num_head_pages", [0, 1])
def test_an_idle_slot_never_causes_a_request_to_wait_or_to_be_refused(admission: str, num_head_pages: int) -> None:
    engine = toy(num_slots=4, num_pages=4, admission=admission, num_head_pages=num_head_pages)
    for number in range(3):
        engine.ask([60 + number] * 3, id_slot=number)
    kept = 2 if num_head_pages else 3  # half of the pool is for heads
    assert engine.pages[2] == kept
    whole_pool = engine.limits.pool_tokens
    request = engine.ask([90] * whole_pool, id_slot=3)
    assert (request.finish_reason, request.num_preemptions) == ("length", 0)
    assert [engine.slots.num_held_tokens(slot) for slot in engine.slots.slots[:2]] == [0, 0]


def test_cached_pages_go_before_partial_ones_and_a_partial_page_goes_with_its_parent() -> None:
    engine = toy(num_slots=3, num_pages=4)
    engine.ask(T(3), id_slot=0)  # a partial page alone
    engine.ask([80] * 6, id_slot=1)  # a cached page and a partial one behind it
    assert engine.pages == (1, 1, 2)
    engine.ask([90] * 8)  # needs two pages: the cached one is dropped, and the one behind it is of no use any more
    assert [engine.slots.num_held_tokens(slot) for slot in engine.slots.slots] == [3, 0, 8]
    assert engine.pages == (1, 2, 1)


def test_a_partial_page_ages_like_a_cached_one() -> None:
    engine = toy(prefix_ttl_s=10.0)
    engine.ask(T(3))
    engine.clock.now_s = 11.0
    assert engine.ask([*T(3), 90]).metrics.cached_tokens == 0


def test_a_reset_is_possible_while_slots_remember_and_takes_their_pages() -> None:
    engine = toy()
    engine.ask(T(7), salt="a", id_slot=0)
    engine.ask([80] * 7, id_slot=1)
    assert engine.reset("a") == 1
    assert (remembered(engine), engine.pages) == ([0, 7], (14, 1, 1))
    assert engine.reset() == 1
    assert (remembered(engine), engine.pages) == ([0, 0], (16, 0, 0))


def test_erase_drops_what_nobody_else_holds() -> None:
    engine = toy(num_slots=3)
    engine.ask([*T(8), 80, 81, 82, 83, 84], id_slot=0)  # pages a b c, and one token
    engine.ask([*T(8), 90], id_slot=1)  # pages a b, and one token
    assert engine.pages == (16 - 5, 3, 2)
    assert engine.erase(0) == 13
    assert engine.pages == (16 - 3, 2, 1), "a and b are what slot 1 remembers"
    assert engine.erase(0) == 0
    assert engine.erase(1) == 9
    assert engine.pages == (16, 0, 0)


def test_erase_leaves_pages_of_a_running_request_and_pages_that_others_are_chained_to() -> None:
    engine = toy(num_slots=1)
    engine.ask(T(9))
    running = engine.submit([*T(8), 90, 91], max_tokens=4, reads_cache=True)
    blocked = engine.slots.slots[0]
    engine.step()
    assert blocked.is_busy
    engine.run()
    engine.submit([*T(8), 70, 71, 72, 73, 74])  # in slot 0 again
    engine.run()
    assert engine.hits([*T(8), 90, 91, *running.output_token_ids]) == 12
    engine.erase(0)
    assert engine.hits(T(8)) == 8, "the sequence of the request before hangs on them"
    assert engine.hits([*T(8), 70, 71, 72, 73]) == 8


def test_a_failed_request_leaves_an_empty_slot_and_an_aborted_one_what_it_computed() -> None:
    engine = toy(max_batched_tokens=6)
    failing = engine.submit(T(10), id_slot=0)
    aborted = engine.submit([80] * 10, id_slot=1)
    engine.step()
    engine.step(failing=[failing])
    engine.step()
    engine.abort(aborted)
    assert remembered(engine)[0] == 0
    assert remembered(engine)[1] == aborted.num_computed_tokens > 0


def test_the_audit_names_a_slot_whose_page_is_of_another_sequence() -> None:
    engine = toy()
    engine.ask(T(7))
    engine.slots.slots[0].token_ids = (*T(6), 99)
    with pytest.raises(AuditError, match="slot 0 owns a partial page of another sequence than it remembers"):
        check_slots(engine.slots)
