"""Lab 12: the bug museum. The exhibits are in README.md; `labs check 12` says how far you are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

MakeEngine = Callable[..., Any]


def slow_right_answer(make_engine: MakeEngine, prompt: list[int], max_tokens: int) -> list[int]:
    """What right means, slowly: the answer of an engine that has never seen anything and keeps nothing."""
    engine = make_engine(prefix_cache=False)
    return list(engine.answer(engine.ask(prompt, max_tokens)))


def test_unchained_key(make_engine: MakeEngine) -> None:
    """Ends quietly on the right engine, and raises on the branch `unchained_key`."""
    raise NotImplementedError("test_unchained_key is not written yet")


def fix_unchained_key(parent_key: bytes, token_ids: Sequence[int]) -> bytes:
    """The key of a page: at least 16 bytes."""
    raise NotImplementedError("fix_unchained_key is not written yet")


def test_exact_hit(make_engine: MakeEngine) -> None:
    """Ends quietly on the right engine, and raises on the branch `exact_hit`."""
    raise NotImplementedError("test_exact_hit is not written yet")


def fix_exact_hit(num_prompt_tokens: int, page_size: int) -> int:
    """How many pages of a prompt may be restored at most."""
    raise NotImplementedError("fix_exact_hit is not written yet")


def test_published_early(make_engine: MakeEngine) -> None:
    """Ends quietly on the right engine, and raises on the branch `published_early`."""
    raise NotImplementedError("test_published_early is not written yet")


def fix_published_early(published_ahead: Sequence[int]) -> Sequence[int]:
    """Of the pages that a failed step had published ahead, parents first: those to remove, in the order of removal."""
    raise NotImplementedError("fix_published_early is not written yet")


def test_freed_duplicate(make_engine: MakeEngine) -> None:
    """Ends quietly on the right engine, and raises on the branch `freed_duplicate`."""
    raise NotImplementedError("test_freed_duplicate is not written yet")


def fix_freed_duplicate(
    page_table: list[int], position: int, found: int, retain: Callable[[int], object], release: Callable[[int], object]
) -> None:
    """The same content is found as page `found`: the page table must hold that one from now on."""
    raise NotImplementedError("fix_freed_duplicate is not written yet")


def test_lost_position(make_engine: MakeEngine) -> None:
    """Ends quietly on the right engine, and raises on the branch `lost_position`."""
    raise NotImplementedError("test_lost_position is not written yet")


def fix_lost_position(num_restored_tokens: int) -> int:
    """The position of the first token that is computed; the first token of a prompt has position 0."""
    raise NotImplementedError("fix_lost_position is not written yet")


def test_lost_sharing(make_engine: MakeEngine) -> None:
    """Ends quietly on the right engine, and raises on the branch `lost_sharing`."""
    raise NotImplementedError("test_lost_sharing is not written yet")


def fix_lost_sharing(owner: str | None, request_id: str) -> bool:
    """Whether a request may compute a page now; `owner` is who computes it in this step, None when nobody does."""
    raise NotImplementedError("fix_lost_sharing is not written yet")
