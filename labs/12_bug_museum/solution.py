"""Lab 12, a solution: a small story for each fault, and one line that repairs it."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Sequence
from typing import Any

MakeEngine = Callable[..., Any]


def slow_right_answer(make_engine: MakeEngine, prompt: list[int], max_tokens: int) -> list[int]:
    """What right means, slowly: the answer of an engine that has never seen anything and keeps nothing."""
    engine = make_engine(prefix_cache=False)
    return list(engine.answer(engine.ask(prompt, max_tokens)))


def require_right(make_engine: MakeEngine, engine: Any, prompt: list[int]) -> None:
    assert engine.answer(engine.ask(prompt, 2)) == slow_right_answer(make_engine, prompt, 2)


def test_unchained_key(make_engine: MakeEngine) -> None:
    """Two prompts whose second pages hold the same tokens."""
    engine = make_engine()
    engine.ask([1, 2, 3, 4, 5], 2)
    require_right(make_engine, engine, [9, 9, 3, 4, 5])


def fix_unchained_key(parent_key: bytes, token_ids: Sequence[int]) -> bytes:
    """The key of a page: at least 16 bytes."""
    return hashlib.sha256(parent_key + struct.pack(f"<{len(token_ids)}q", *token_ids)).digest()


def test_exact_hit(make_engine: MakeEngine) -> None:
    """A prompt of exactly two pages, twice, with somebody else in between."""
    engine = make_engine()
    engine.ask([1, 2, 3, 4], 2)
    engine.ask([7, 7, 7], 1)
    require_right(make_engine, engine, [1, 2, 3, 4])


def fix_exact_hit(num_prompt_tokens: int, page_size: int) -> int:
    """How many pages of a prompt may be restored at most."""
    return (num_prompt_tokens - 1) // page_size


def test_published_early(make_engine: MakeEngine) -> None:
    """The leader fails in its first step; whoever comes then must compute everything."""
    engine = make_engine()
    leader = engine.submit([1, 2, 3, 4, 5], 2)
    engine.step(failing=[leader])
    require_right(make_engine, engine, [1, 2, 3, 4, 5])


def fix_published_early(published_ahead: Sequence[int]) -> Sequence[int]:
    """Of the pages that a failed step had published ahead, parents first: those to remove, in the order of removal."""
    return published_ahead[::-1]


def test_freed_duplicate(make_engine: MakeEngine) -> None:
    """Twins compute the same pages; a third request takes what was freed while they still run."""
    engine = make_engine(num_pages=14)
    twins = [engine.submit([1, 2, 3, 4, 5], 6) for _ in range(2)]
    engine.step()
    engine.submit([8] * 9, 2)
    engine.run()
    right = make_engine(prefix_cache=False)
    expected = right.answer(right.ask([1, 2, 3, 4, 5], 6))
    assert [engine.answer(twin) for twin in twins] == [expected, expected]


def fix_freed_duplicate(
    page_table: list[int], position: int, found: int, retain: Callable[[int], object], release: Callable[[int], object]
) -> None:
    """The same content is found as page `found`: the page table must hold that one from now on."""
    own = page_table[position]
    retain(found)
    page_table[position] = found
    release(own)


def test_lost_position(make_engine: MakeEngine) -> None:
    """A warm request whose last token is another one than before."""
    engine = make_engine()
    engine.ask([1, 2, 3, 4, 5], 2)
    require_right(make_engine, engine, [1, 2, 3, 4, 6])


def fix_lost_position(num_restored_tokens: int) -> int:
    """The position of the first token that is computed; the first token of a prompt has position 0."""
    return num_restored_tokens


def test_lost_sharing(make_engine: MakeEngine) -> None:
    """Twins in one batch: texts say nothing, the computed tokens do."""
    engine = make_engine()
    for _ in range(2):
        engine.submit([1, 2, 3, 4, 5], 2)
    engine.run()
    assert engine.counters.computed_prefill_tokens == 6


def fix_lost_sharing(owner: str | None, request_id: str) -> bool:
    """Whether a request may compute a page now; `owner` is who computes it in this step, None when nobody does."""
    return owner in (None, request_id)
