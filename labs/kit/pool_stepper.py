"""A real engine, one step at a time, and what its books said of every page after each step.

Whatever is shown was read from the engine through minivllm/cache/audit.py: owners, references, states, and the order
in which pages go. Nothing here knows how pages are given out, published or evicted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import TypeVar

from labs.kit.own_thread import OwnThread
from labs.kit.table import text_table
from minivllm import LLM, SamplingParams
from minivllm.cache.audit import PageView, eviction_order, page_contents, view_pages
from minivllm.request import Request

T = TypeVar("T")

COLUMNS = ("page", "state", "references", "held by", "findable", "behind page", "evicted as", "tokens", "text")


@dataclass(frozen=True)
class PageState:
    """One page after a step. `tokens` is the text of each token whose keys and values it holds.

    `turn` counts from 1: of a free page, when it is given out; of a cached one, when it is evicted. None: neither, or
    the policy does not tell.
    """

    view: PageView
    tokens: tuple[str, ...]
    turn: int | None
    is_changed: bool

    @property
    def text(self) -> str:
        return "".join(self.tokens).replace("\n", "\N{DOWNWARDS ARROW WITH CORNER LEFTWARDS}").strip()

    @property
    def row(self) -> tuple[object, ...]:
        view = self.view
        found = "yes" if view.indexed else "no"
        owners = " ".join(view.owners) or None
        behind = (view.parent_page_id, self.turn, len(self.tokens))
        return view.page_id, view.state, view.references, owners, found, *behind, self.text


@dataclass(frozen=True)
class Snapshot:
    """The pool after a step; step 0 is the pool before the first one. `said` tells what happened in it."""

    step: int
    said: str
    page_size: int
    pages: tuple[PageState, ...]
    page_tables: Mapping[str, tuple[int, ...]]

    @property
    def title(self) -> str:
        return f"Step {self.step}. {self.said}"

    def in_state(self, state: str) -> list[PageState]:
        """The pages in a state ("free", "cached", "active"): the first to go in front, where there is an order."""
        return sorted((page for page in self.pages if page.view.state == state), key=lambda page: page.turn or 0)

    def as_text(self) -> str:
        """The twin of the picture: what happened, a row for each page that is not free, then the free ones."""
        rows = [page.row for page in self.pages if page.view.state != "free"]
        lines = [self.title, *([text_table(COLUMNS, rows)] if rows else [])]
        lines += [f"page table of {name}: {_numbers(table)}" for name, table in self.page_tables.items()]
        free = _numbers(page.view.page_id for page in self.in_state("free"))
        return "\n".join([*lines, f"free, the next to be given out in front: {free or 'none'}"])


@dataclass(frozen=True)
class Progress:
    """How far a request had come before a step."""

    computed: int
    cached: int
    prefilled: int

    @classmethod
    def of(cls, request: Request) -> Progress:
        return cls(request.num_computed_tokens, request.metrics.cached_tokens, request.metrics.computed_tokens)


class PoolStepper:
    """`make` builds the engine, which then lives in a thread of its own: cells and buttons may both step it."""

    def __init__(self, make: Callable[[], LLM]) -> None:
        self._thread = OwnThread("engine of the page pool")
        self._llm = self._call(make)
        self._new_names: list[str] = []
        self._num_names = 0
        self.snapshots: list[Snapshot] = []
        self._call(lambda: self._keep("The pool is empty."))

    @property
    def last(self) -> Snapshot:
        return self.snapshots[-1]

    @property
    def is_idle(self) -> bool:
        return not self._llm.engine.has_unfinished_requests

    def encode(self, text: str) -> list[int]:
        return self._llm.tokenizer.encode(text)

    def arrive(self, token_ids: Sequence[int], max_tokens: int, name: str = "") -> str:
        """A request arrives; it does nothing before the next step. Returns its name: the next letter, if none is given.

        Its answer is greedy and always `max_tokens` long. Raises RequestError when it could never run.
        """
        name = name or self._next_name()
        params = SamplingParams(max_tokens=max_tokens, temperature=0.0, ignore_eos=True)
        self._call(lambda: self._llm.engine.add_request(token_ids, params, request_id=name))
        self._num_names += 1
        self._new_names.append(name)
        return name

    def step(self) -> Snapshot:
        """One step of the engine. Without a request nothing happens, and the last snapshot stays the last."""
        return self._call(self._step)

    def run(self) -> Snapshot:
        """Steps until no request is left; returns the last snapshot."""
        while not self.is_idle:
            self.step()
        return self.last

    def close(self) -> None:
        self._call(self._llm.close)
        self._thread.end()

    def _call(self, work: Callable[[], T]) -> T:
        return self._thread.call(work)

    def _next_name(self) -> str:
        return ascii_uppercase[self._num_names % len(ascii_uppercase)]

    def _step(self) -> Snapshot:
        if self.is_idle:
            return self.last
        requests = self._llm.engine.requests
        before = [Progress.of(request) for request in requests]
        self._llm.engine.step()
        said = [_happened(request, progress) for request, progress in zip(requests, before, strict=True)]
        arrived = [f"{name} arrives." for name in self._new_names]
        self._new_names.clear()
        return self._keep(" ".join([*arrived, *said]))

    def _keep(self, said: str) -> Snapshot:
        engine = self._llm.engine
        pages = self._pages()
        gone = [page for page in (self.last.pages if self.snapshots else ()) if _is_evicted(page, pages)]
        tables = {request.request_id: tuple(request.page_table) for request in engine.requests if request.page_table}
        said = f"{said} {_evicted([page.view.page_id for page in gone])}".strip()
        self.snapshots.append(Snapshot(len(self.snapshots), said, engine.page_size, pages, tables))
        return self.last

    def _pages(self) -> tuple[PageState, ...]:
        manager, requests = self._llm.engine.manager, self._llm.engine.requests
        contents = page_contents(manager, requests)
        turns = {
            page_id: turn
            for order in (manager.pool.free_page_ids(), eviction_order(manager) or ())
            for turn, page_id in enumerate(order, start=1)
        }
        pages = []
        for view in view_pages(manager, requests):
            tokens = tuple(self._llm.tokenizer.token_text(token) for token in contents.get(view.page_id, ()))
            was = self.last.pages[view.page_id] if self.snapshots else None
            is_changed = was is not None and (was.view, was.tokens) != (view, tokens)
            pages.append(PageState(view, tokens, turns.get(view.page_id), is_changed))
        return tuple(pages)


def _happened(request: Request, before: Progress) -> str:
    """What a step did for a request, in a sentence."""
    restored = request.metrics.cached_tokens - before.cached
    prefilled = request.metrics.computed_tokens - before.prefilled
    answered = request.num_computed_tokens - before.computed - restored - prefilled
    done = [f"restores {restored} tokens"] if restored else []
    if prefilled:
        last = min(request.num_computed_tokens, request.num_prompt_tokens)
        done.append(f"computes {_range('prompt token', last - prefilled + 1, last)}")
    if answered > 0:
        last = request.num_computed_tokens - request.num_prompt_tokens
        done.append(f"computes {_range('answer token', last - answered + 1, last)}")
    if request.finish_reason is not None:
        done.append("ends")
    return f"{request.request_id} {' and '.join(done) or 'waits'}."


def _is_evicted(before: PageState, pages: Sequence[PageState]) -> bool:
    """Whether a cached page has lost its content."""
    now = pages[before.view.page_id]
    return before.view.state == "cached" and not (now.view.indexed and now.tokens == before.tokens)


def _evicted(page_ids: Sequence[int]) -> str:
    if not page_ids:
        return ""
    return f"Page {page_ids[0]} is evicted." if len(page_ids) == 1 else f"Pages {_numbers(page_ids)} are evicted."


def _range(what: str, first: int, last: int) -> str:
    return f"{what} {first}" if first == last else f"{what}s {first} to {last}"


def _numbers(page_ids: Iterable[int]) -> str:
    return " ".join(map(str, page_ids))
