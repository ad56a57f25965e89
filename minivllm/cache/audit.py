"""The invariants of the cache, checkable at any moment, and the state they speak about, readable as plain values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from minivllm.cache.manager import CacheManager
from minivllm.cache.slots import Slot, Slots
from minivllm.request import Request, Status

if TYPE_CHECKING:
    from minivllm.engine import Engine


class AuditError(AssertionError):
    """The books do not add up. The message lists everything that is wrong."""


@dataclass(frozen=True, slots=True)
class PageView:
    """One page as the books have it. `state` is "free", "cached" or "active"; `owners` are request ids and slots."""

    page_id: int
    state: str
    references: int
    owners: tuple[str, ...]
    indexed: bool
    parent_page_id: int | None


def view_pages(manager: CacheManager, requests: Iterable[Request]) -> list[PageView]:
    """Every page of the pool, as free list, page tables and index tell it (not as the manager's counts claim)."""
    free = set(manager.pool.free_page_ids())
    owners: dict[int, list[str]] = {}
    for request in requests:
        for page_id in request.page_table:
            owners.setdefault(page_id, []).append(request.request_id)
    for slot_id, partial in manager.partials:
        owners.setdefault(partial.page_id, []).append(f"slot {slot_id}")
    return [
        _view(manager, page_id, page_id in free, owners.get(page_id, [])) for page_id in range(manager.pool.num_pages)
    ]


def _view(manager: CacheManager, page_id: int, is_free: bool, owners: list[str]) -> PageView:
    indexed = page_id in manager.index
    return PageView(
        page_id=page_id,
        state="active" if owners else "free" if is_free else "cached",
        references=manager.pool.references(page_id),
        owners=tuple(owners),
        indexed=indexed,
        parent_page_id=manager.index.parent_of(page_id) if indexed else None,
    )


def page_contents(manager: CacheManager, requests: Iterable[Request]) -> dict[int, tuple[int, ...]]:
    """The tokens whose keys and values each page holds, as index, slots and page tables tell it. Others are left out.

    Of an active page only what is computed: it may have no tokens yet.
    """
    size, of_index = manager.page_size, getattr(manager.index, "page", None)
    contents = {} if of_index is None else {page: of_index(page).token_ids for page in manager.index.page_ids()}
    contents |= {partial.page_id: partial.token_ids for _, partial in manager.partials}
    for request in requests:
        computed = tuple(request.token_ids[: request.num_computed_tokens])
        contents |= {page: computed[at * size : (at + 1) * size] for at, page in enumerate(request.page_table)}
    return contents


def eviction_order(manager: CacheManager) -> list[int] | None:
    """The cached pages, the next victim first, as the eviction policy has them. None: this policy does not tell."""
    order = getattr(manager.eviction, "order", None)
    return None if order is None else list(order())


def check(engine: Engine) -> None:
    """Raise `AuditError` unless every invariant holds for this engine."""
    check_books(engine.manager, engine.requests)
    check_slots(engine.slot_memory)


def check_books(manager: CacheManager, requests: Iterable[Request], *, within_step: bool = False) -> None:
    """The same for books without an engine. `within_step`: scheduled, not computed yet."""
    requests = list(requests)
    pages = view_pages(manager, requests)
    problems = [
        *_page_problems(pages, manager),
        *_count_problems(pages, manager),
        *_candidate_problems(pages, manager),
        *_promise_problems(manager, requests),
        *_index_problems(manager),
        *_partial_problems(manager),
        *(problem for request in requests for problem in _request_problems(manager, request)),
    ]
    if manager.publisher.num_unproven_pages and not within_step:
        problems.append(f"{manager.publisher.num_unproven_pages} pages can be found and were never computed")
    if problems:
        raise AuditError("; ".join(problems))


def check_slots(slots: Slots) -> None:
    """Raise `AuditError` unless what each slot remembers fits the partial page that it owns."""
    problems = [problem for slot in slots.slots for problem in _slot_problems(slots, slot)]
    if problems:
        raise AuditError("; ".join(problems))


def _page_problems(pages: list[PageView], manager: CacheManager) -> Iterable[str]:
    free = set(manager.pool.free_page_ids())
    for page in pages:
        if page.references != len(page.owners):
            yield f"page {page.page_id} has {page.references} references, and the owners {list(page.owners)}"
        if page.page_id in free and page.owners:
            yield f"page {page.page_id} is free and in the page tables of {list(page.owners)}"
        if page.page_id in free and page.indexed:
            yield f"page {page.page_id} is free and can still be found"
        if page.state == "cached" and not page.indexed:
            yield f"page {page.page_id} is held by nobody and cannot be found: it is lost"
        if len(page.owners) > 1 and not page.indexed:
            yield f"page {page.page_id} is shared by {list(page.owners)} and was never published"


def _count_problems(pages: list[PageView], manager: CacheManager) -> Iterable[str]:
    states = Counter(page.state for page in pages)
    free_ids = manager.pool.free_page_ids()
    if len(set(free_ids)) != len(free_ids):
        yield "a page is in the free list twice"
    claimed = {
        "free": manager.pool.num_free,
        "cached": manager.num_cached_pages,
        "active": manager.num_active_pages,
    }
    for state, count in claimed.items():
        if states[state] != count:
            yield f"{count} pages are counted as {state}, {states[state]} are"
    available = states["free"] + states["cached"] + len(manager.partials)
    if manager.num_promised_pages > available:
        yield f"{manager.num_promised_pages} pages are promised, {available} could be given"


def _candidate_problems(pages: list[PageView], manager: CacheManager) -> Iterable[str]:
    cached = [page.page_id for page in pages if page.state == "cached"]
    if sorted(manager.cached_page_ids) != cached:
        yield f"pages {sorted(manager.cached_page_ids)} are counted as cached, {cached} are"
    if len(manager.eviction) != len(cached):
        yield f"{len(manager.eviction)} pages are candidates for eviction, {len(cached)} are cached"
    order = eviction_order(manager)
    if order is not None and sorted(order) != cached:
        yield f"pages {sorted(order)} are candidates for eviction, {cached} are cached"


def _promise_problems(manager: CacheManager, requests: list[Request]) -> Iterable[str]:
    """An admitted request may ask for what it was admitted with, and for nothing more."""
    running = {request.request_id: request for request in requests if request.status is Status.RUNNING}
    for name, num_pages in manager.promised_pages.items():
        if name not in running:
            yield f"{num_pages} pages are promised to {name}, which does not run"
    for name, request in running.items():
        promised, needed = manager.promised_pages.get(name, 0), manager.num_pages_at_admission(request)
        if promised != max(0, needed - len(request.page_table)):
            yield f"{name} has {len(request.page_table)} pages and a promise of {promised}, and may need {needed}"


def _index_problems(manager: CacheManager) -> Iterable[str]:
    page = getattr(manager.index, "page", None)
    for page_id in manager.index.page_ids():
        parent = manager.index.parent_of(page_id)
        if parent is not None and parent not in manager.index:
            yield f"page {page_id} is indexed and its parent {parent} is not"
        elif page is not None and not _key_can_be_derived(manager, page_id):
            yield f"the key of page {page_id} does not follow from the tokens it stores"
        elif page is not None and not _is_found(manager, page_id):
            yield f"page {page_id} is indexed, and a lookup of its prefix does not find it"


def _key_can_be_derived(manager: CacheManager, page_id: int) -> bool:
    index = manager.index
    page = index.page(page_id)  # type: ignore[attr-defined]
    if page.parent_page_id is None:
        parent_key = index.root_key(page.salt)  # type: ignore[attr-defined]
    else:
        parent_key = index.page(page.parent_page_id).key  # type: ignore[attr-defined]
    return bool(index.page_key(parent_key, page.token_ids) == page.key)  # type: ignore[attr-defined]


def _is_found(manager: CacheManager, page_id: int) -> bool:
    """Whether the way from the tokens leads to the page, as the way from the page leads to the tokens."""
    index, token_ids = manager.index, []
    chain = [page_id]
    while (parent := index.parent_of(chain[0])) is not None and parent in index:
        chain.insert(0, parent)
    for link in chain:
        token_ids += index.page(link).token_ids  # type: ignore[attr-defined]
    salt = index.page(page_id).salt  # type: ignore[attr-defined]
    return index.lookup(token_ids, len(chain), salt) == chain


def _partial_problems(manager: CacheManager) -> Iterable[str]:
    """A slot's partial page is the end of a chain that can be found, so that it is of use, and goes with its parent."""
    for slot_id, partial in manager.partials:
        name = f"the partial page {partial.page_id} of slot {slot_id}"
        if not 0 < len(partial.token_ids) < manager.page_size:
            yield f"{name} holds {len(partial.token_ids)} tokens of {manager.page_size}"
        if (partial.parent_page_id is None) != (partial.depth == 0):
            yield f"{name} lies behind {partial.depth} pages, the last of them {partial.parent_page_id}"
        if partial.parent_page_id is not None and partial.parent_page_id not in manager.index:
            yield f"{name} hangs on page {partial.parent_page_id}, which cannot be found"
        if partial.page_id in manager.index:
            yield f"{name} can be found"
        if manager.is_head(partial.page_id) != (partial.depth < manager.num_head_pages):
            yield f"{name} is of the wrong precision for page number {partial.depth} of a sequence"


def _slot_problems(slots: Slots, slot: Slot) -> Iterable[str]:
    partial = slots.partial_page(slot)
    if slot.is_busy and (slot.token_ids or partial is not None):
        yield f"slot {slot.slot_id} is busy and still keeps its former sequence"
    if partial is None:
        return
    num_full_tokens = len(slot.token_ids) - len(partial.token_ids)
    if tuple(slot.token_ids[num_full_tokens:]) != partial.token_ids or slot.salt != partial.salt:
        yield f"slot {slot.slot_id} owns a partial page of another sequence than it remembers"
    if slots.num_held_tokens(slot) != len(slot.token_ids):
        yield f"slot {slot.slot_id} owns the end of a sequence whose beginning is not held"


def _request_problems(manager: CacheManager, request: Request) -> Iterable[str]:
    name, size = request.request_id, manager.page_size
    if request.status is not Status.RUNNING and request.page_table:
        yield f"{name} is {request.status.value} and holds pages {request.page_table}"
    if len(set(request.page_table)) != len(request.page_table):
        yield f"{name} has a page twice in its page table {request.page_table}"
    if request.num_computed_tokens > len(request.page_table) * size and request.status is Status.RUNNING:
        yield f"{name} has {request.num_computed_tokens} computed tokens in {len(request.page_table)} pages"
    ahead = sum(manager.publisher.is_unproven(page_id) for page_id in request.page_table)
    if (request.num_published_pages - ahead) * size > request.num_computed_tokens:
        yield f"{name} published {request.num_published_pages} pages of {request.num_computed_tokens} computed tokens"
    if request.num_computed_tokens > max(len(request.token_ids) - 1, request.num_prompt_tokens):
        yield f"{name} claims KV for its last sampled token"
    yield from _content_problems(manager, request)


def _content_problems(manager: CacheManager, request: Request) -> Iterable[str]:
    name, size, computed = request.request_id, manager.page_size, request.num_computed_tokens
    for position, page_id in enumerate(request.page_table):
        if manager.is_head(page_id) != (position < manager.num_head_pages):
            yield f"page {page_id} of {name} is of the wrong precision for page number {position} of a sequence"
        if page_id not in manager.index:
            if position < request.num_published_pages:
                yield f"page {page_id} of {name} counts as published and cannot be found"
            continue
        if (position + 1) * size > computed and not manager.publisher.is_unproven(page_id):
            yield f"page {page_id} of {name} can be found, and {computed} tokens are computed"
        if not _is_indexed_as_held(manager, request, position):
            yield f"page {page_id} of {name} is indexed for other content than the request has there"


def _is_indexed_as_held(manager: CacheManager, request: Request, position: int) -> bool:
    table, size = request.page_table, manager.page_size
    if manager.index.parent_of(table[position]) != (table[position - 1] if position else None):
        return False
    page = getattr(manager.index, "page", None)
    if page is None:
        return True
    stored, tokens = page(table[position]), tuple(request.token_ids[position * size : (position + 1) * size])
    return bool(stored.token_ids == tokens and stored.salt == request.cache_salt)
