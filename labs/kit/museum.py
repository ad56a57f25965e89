"""Six faults that real engines had, each in a branch of our engine, selected by name: `museum_engine("exact_hit")`.

The branches differ from the engine in one small function each, a hook. The scheduler, the books and the index are the
real ones; the "model" is the one of the engine without arrays, with one difference: it does not complain about what it
reads. As in a real model, wrong keys and values only make another answer, and nothing else tells.
"""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from labs.kit.toy_engine import FIRST_TOKEN, NUM_SAMPLED_TOKENS, ToyEngine
from minivllm.cache.page_pool import RefCountedPagePool
from minivllm.cache.prefix_index import ChainedPrefixIndex
from minivllm.flights import PageFlights
from minivllm.request import Request, Status
from minivllm.scheduler import Work
from minivllm.stats import Counters

Slot = tuple[str | None, int, tuple[int, ...]]
NEVER_WRITTEN: Slot = (None, -1, ())


@dataclass(frozen=True)
class Hooks:
    """The six places. The defaults are right; a branch replaces one of them by what some engine had there."""

    page_key: Callable[[bytes, Sequence[int]], bytes]
    """The key of a page: `(parent_key, token_ids)`."""
    max_restored_pages: Callable[[int, int], int]
    """How many pages of a prompt may be restored at most: `(num_prompt_tokens, page_size)`."""
    pages_to_withdraw: Callable[[Sequence[int]], Sequence[int]]
    """Of the pages that a failed step had published ahead, parents first: those that leave the index, in order."""
    adopt: Callable[[list[int], int, int, Callable[[int], None], Callable[[int], None]], None]
    """Somebody published an equal page first: `(page_table, position, found, retain, release)`."""
    first_position: Callable[[int], int]
    """The position of the first computed token of a request: `(num_restored_tokens)`."""
    may_compute: Callable[[str | None, str], bool]
    """Whether a request may compute a page that `owner` computes in this step: `(owner, request_id)`."""


def _page_key(parent_key: bytes, token_ids: Sequence[int]) -> bytes:
    return ChainedPrefixIndex(len(token_ids)).page_key(parent_key, token_ids)


def _unchained_key(parent_key: bytes, token_ids: Sequence[int]) -> bytes:
    return ChainedPrefixIndex(len(token_ids)).page_key(b"", token_ids)


def _leave_one_token(num_prompt_tokens: int, page_size: int) -> int:
    return (num_prompt_tokens - 1) // page_size


def _restore_everything(num_prompt_tokens: int, page_size: int) -> int:
    return num_prompt_tokens // page_size


def _withdraw_all(published_ahead: Sequence[int]) -> Sequence[int]:
    return published_ahead[::-1]


def _withdraw_nothing(published_ahead: Sequence[int]) -> Sequence[int]:
    return ()


def _use_theirs(
    page_table: list[int], position: int, found: int, retain: Callable[[int], None], release: Callable[[int], None]
) -> None:
    own = page_table[position]
    retain(found)
    page_table[position] = found
    release(own)


def _free_ours(
    page_table: list[int], position: int, found: int, retain: Callable[[int], None], release: Callable[[int], None]
) -> None:
    release(page_table[position])


RIGHT = Hooks(
    page_key=_page_key,
    max_restored_pages=_leave_one_token,
    pages_to_withdraw=_withdraw_all,
    adopt=_use_theirs,
    first_position=lambda num_restored_tokens: num_restored_tokens,
    may_compute=lambda owner, request_id: owner in (None, request_id),
)


@dataclass(frozen=True)
class Exhibit:
    """One fault: what went wrong, the hook that makes it so, and the settings under which it can happen."""

    about: str
    hook: str
    wrong: Callable[..., Any]
    settings: Mapping[str, Any] = field(default_factory=dict)


EXHIBITS = {
    "unchained_key": Exhibit("a page is found by its own tokens, under any parent", "page_key", _unchained_key),
    "exact_hit": Exhibit(
        "a prompt that is cached as a whole leaves nothing to compute", "max_restored_pages", _restore_everything
    ),
    "published_early": Exhibit(
        "pages can be found before their KV exists, and stay when the step fails",
        "pages_to_withdraw",
        _withdraw_nothing,
        {"publication": "on_schedule"},
    ),
    "freed_duplicate": Exhibit(
        "a duplicate page is freed while its owner's page table points to it",
        "adopt",
        _free_ours,
        {"single_flight": "off"},
    ),
    "lost_position": Exhibit("a restored prefix goes on at position 0", "first_position", lambda num_restored: 0),
    "lost_sharing": Exhibit(
        "twins in one batch compute the same pages again, and all texts stay right",
        "may_compute",
        lambda owner, request_id: True,
    ),
}


def museum_engine(
    name: str, *, is_faulty: bool = True, repair: Callable[..., Any] | None = None, **settings: Any
) -> MuseumEngine:
    """The branch of this name, or with `is_faulty=False` the right engine with the same settings.

    `repair` takes the place of the faulty hook. `settings`: page_size=2, num_pages=8, max_batched_tokens=64,
    prefix_cache=True and others of the engine without arrays. Raises ValueError for a name that is not in the museum.
    """
    if name not in EXHIBITS:
        raise ValueError(f"the museum has no {name!r}: choose from {', '.join(EXHIBITS)}")
    exhibit = EXHIBITS[name]
    hook = repair or (exhibit.wrong if is_faulty else getattr(RIGHT, exhibit.hook))
    return MuseumEngine(dataclasses.replace(RIGHT, **{exhibit.hook: hook}), **{**exhibit.settings, **settings})


def _next_token(read: Sequence[Slot]) -> int:
    """What the model says: it depends on everything that attention has read."""
    return FIRST_TOKEN + zlib.crc32(repr(list(read)).encode()) % NUM_SAMPLED_TOKENS


class MuseumEngine(ToyEngine):
    """Silent: it has no audit, and does not know whether an answer is right. Neither does a server."""

    def __init__(self, hooks: Hooks, **settings: Any) -> None:
        self.hooks = hooks
        settings = {"page_size": 2, "single_flight": "page", **settings}
        page_size, num_pages = settings["page_size"], settings.get("num_pages", 8)
        components: dict[str, Any] = {"prefix_index": _Index(page_size, hooks), "page_pool": _Pool(num_pages)}
        if settings["single_flight"] == "page":
            components["flights"] = _Flights(Counters(), page_size, hooks)
        super().__init__(**settings, components=components)
        self.slots_of_page: list[list[Slot]] = [[NEVER_WRITTEN] * page_size for _ in range(num_pages)]
        self._read: dict[str, list[Slot]] = {}
        self._newest_read: list[Slot] = []
        self.manager.match = self._match  # type: ignore[method-assign]
        self.manager.publisher._adopt = self._adopt
        self.manager.publisher.withdraw = self._withdraw  # type: ignore[method-assign]

    def answer(self, request: Request) -> list[int]:
        """The tokens that a request has been answered with."""
        return request.token_ids[request.num_prompt_tokens :]

    def step(self, failing: Collection[Request] = ()) -> None:
        """One step. The forward pass of the requests in `failing` fails: their keys and values are not written."""
        self.work = self.scheduler.schedule()
        self._poison_reclaimed_pages()
        self._compute(self.work, failing)
        scheduled = {id(item.request) for item in self.work}
        for request in list(self.scheduler.running):
            if id(request) not in scheduled and request.num_computed_tokens >= len(request.token_ids):
                self._read[request.request_id] = list(self._newest_read)  # nothing to compute: what was there before
                self._sample(request)
        for item in self.work:
            if item.request.status is not Status.RUNNING:
                continue
            if item.request in failing:
                self.scheduler.failed(item.request)
                self._forget(item.request, "error", remember=False)
            else:
                self._advance(item)

    def audit(self, within_step: bool = False) -> None:
        """Nobody looks."""

    def _compute(self, work: Sequence[Work], failing: Collection[Request]) -> None:
        size = self.manager.page_size
        for item in work:
            if item.request not in failing:
                for place in range(item.start, item.end):
                    page_id = item.request.page_table[place // size]
                    self.slots_of_page[page_id][place % size] = self._slot(item, place)
        for item in work:
            table = item.request.page_table
            read = [self.slots_of_page[table[place // size]][place % size] for place in range(item.end)]
            self._read[item.request.request_id] = self._newest_read = read

    def _slot(self, item: Work, place: int) -> Slot:
        request = item.request
        num_restored = request.metrics.cached_tokens
        position = self.hooks.first_position(num_restored) + place - num_restored
        return request.cache_salt, position, tuple(request.token_ids[: place + 1])

    def _sample(self, request: Request) -> None:
        request.token_ids.append(_next_token(self._read[request.request_id]))
        if request.num_output_tokens == request.params.max_tokens:
            self._end(request, "length")

    def _poison_reclaimed_pages(self) -> None:
        self.manager.pages_to_poison.clear()

    def _match(self, request: Request) -> list[int]:
        if not self.manager.prefix_cache or not request.reads_prefix_cache:
            return []
        most = self.hooks.max_restored_pages(len(request.token_ids), self.manager.page_size)
        return self.manager.index.lookup(request.token_ids, most, request.cache_salt)

    def _adopt(self, request: Request, position: int, found: int) -> None:
        def release(page_id: int) -> None:
            self.manager._release_page(page_id, position)

        self.hooks.adopt(request.page_table, position, found, self.manager._retain_page, release)

    def _withdraw(self, request: Request) -> list[int]:
        unproven = self.manager.publisher._unproven
        leaving = list(self.hooks.pages_to_withdraw(unproven.withdraw(request.request_id)[::-1]))
        for page_id in leaving:
            self.manager.index.remove(page_id)
        return leaving


class _Index(ChainedPrefixIndex):
    """Trusts its keys but for the tokens of the page itself."""

    def __init__(self, page_size: int, hooks: Hooks) -> None:
        super().__init__(page_size)
        self._hooks = hooks

    def page_key(self, parent_key: bytes, token_ids: Sequence[int]) -> bytes:
        return self._hooks.page_key(parent_key, token_ids)

    def insert(
        self, token_ids: Sequence[int], parent_page_id: int | None, page_id: int, salt: str | None
    ) -> int | None:
        if parent_page_id is not None and parent_page_id not in self:
            return None
        return super().insert(token_ids, parent_page_id, page_id, salt)

    def _holds(self, page_id: int, parent_page_id: int | None, salt: str | None, token_ids: tuple[int, ...]) -> bool:
        page = self._page_by_id[page_id]
        return page.token_ids == token_ids and page.salt == salt


class _Pool(RefCountedPagePool):
    """Believes its callers: what is released or reclaimed once too often is released or free, and that is all."""

    def release(self, page_id: int) -> int:
        self._references[page_id] = max(0, self._references[page_id] - 1)
        return self._references[page_id]

    def reclaim(self, page_id: int) -> None:
        if not self._is_free[page_id]:
            super().reclaim(page_id)


class _Flights(PageFlights):
    def __init__(self, counters: Counters, page_size: int, hooks: Hooks) -> None:
        super().__init__(counters, page_size)
        self._hooks = hooks

    def claim(self, request: Request, start: int, end: int) -> int:
        keys = self._restorable_keys(request)
        for number in range(start // self._page_size, min(len(keys), -(-end // self._page_size))):
            owner = self._owner_of_page.setdefault(keys[number], request.request_id)
            if not self._hooks.may_compute(owner, request.request_id):
                return max(start, number * self._page_size)
        return self._whole_pages(request, start, end)
