"""Which earlier sequences a new prompt may find: not every server has one index over all of its pages.

llama-server   slots: each holds the sequence it processed last, and a request reuses what it shares with that one
mlx-lm         the last sequences, as many as `--prompt-cache-size` says
one slot       any server that holds a single conversation: chats that take turns never hit

The pages stay in the real engine's pool. `HeldIndex` stands in for its prefix index and lets a request find only what
the memory granted it, so that everything else is computed again.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from minivllm.cache.prefix_index import ChainedPrefixIndex

Tokens = Sequence[int]


@dataclass(frozen=True)
class Grant:
    """What one request may find: its first `num_tokens` tokens. `slot` is None where there are no slots."""

    prompt: tuple[int, ...]
    num_tokens: int
    slot: int | None = None


class Memory(Protocol):
    def begin(self, prompt: Tokens, *, may_reuse: bool = True, slot: int | None = None) -> Grant:
        """Before a request runs. Waits for a slot where all are busy, or the named one is."""
        ...

    def end(self, grant: Grant, sequence: Tokens) -> None:
        """The request is over and `sequence` has been processed, prompt first."""
        ...

    def granted(self, prompt: Tokens) -> int:
        """Leading tokens that this running prompt may find."""
        ...


class _Granting:
    """The grants of the requests that run now."""

    def __init__(self) -> None:
        self._running: dict[tuple[int, ...], int] = {}

    def granted(self, prompt: Tokens) -> int:
        return self._running.get(tuple(prompt), 0)

    def _grant(self, prompt: Tokens, num_tokens: int, slot: int | None = None) -> Grant:
        grant = Grant(tuple(prompt), num_tokens, slot)
        self._running[grant.prompt] = num_tokens
        return grant

    def _withdraw(self, grant: Grant) -> None:
        self._running.pop(grant.prompt, None)


class Recent(_Granting):
    """The last `num_sequences` sequences. One that only begins another is given up for it, as mlx-lm does."""

    def __init__(self, num_sequences: int) -> None:
        super().__init__()
        self._num_sequences = num_sequences
        self._held: list[Tokens] = []
        self._lock = threading.Lock()

    def begin(self, prompt: Tokens, *, may_reuse: bool = True, slot: int | None = None) -> Grant:
        with self._lock:
            return self._grant(prompt, longest_shared(prompt, self._held) if may_reuse else 0)

    def end(self, grant: Grant, sequence: Tokens) -> None:
        with self._lock:
            self._withdraw(grant)
            longer = [held for held in self._held if shared(held, sequence) < len(held)]
            self._held = [*longer, sequence][-self._num_sequences :]


@dataclass
class Slot:
    """A slot between requests: `tokens` is what it holds, `last_used` counts requests."""

    tokens: Tokens = ()
    is_busy: bool = False
    last_used: int = 0


@dataclass
class _Kept:
    """Sequences whose slot was given to another, the oldest first, as far as `max_tokens` go (`--cache-ram`)."""

    max_tokens: int
    sequences: list[Tokens] = field(default_factory=list)

    def add(self, sequence: Tokens) -> None:
        self.sequences.append(sequence)
        while sum(map(len, self.sequences)) > self.max_tokens:
            self.sequences.pop(0)


class Slots(_Granting):
    """`num_slots` slots. A prompt takes the free slot it shares most with, if that is more than `similarity` of it,
    else the one that was used longest ago. `kept_tokens` is the room for sequences that lost their slot."""

    def __init__(self, num_slots: int, similarity: float = 0.1, kept_tokens: int = 0) -> None:
        super().__init__()
        self.slots = [Slot() for _ in range(num_slots)]
        self._similarity = similarity
        self._kept = _Kept(kept_tokens)
        self._num_requests = 0
        self._freed = threading.Condition()

    def begin(self, prompt: Tokens, *, may_reuse: bool = True, slot: int | None = None) -> Grant:
        with self._freed:
            while (place := self._choose(prompt, slot)) is None:
                self._freed.wait()
            chosen = self.slots[place]
            num_shared = longest_shared(prompt, [chosen.tokens, *self._kept.sequences]) if may_reuse else 0
            if shared(prompt, chosen.tokens) < len(chosen.tokens):
                self._kept.add(chosen.tokens)
            self._num_requests += 1
            chosen.is_busy, chosen.last_used = True, self._num_requests
            return self._grant(prompt, num_shared, place)

    def end(self, grant: Grant, sequence: Tokens) -> None:
        assert grant.slot is not None
        with self._freed:
            self._withdraw(grant)
            slot = self.slots[grant.slot]
            slot.tokens, slot.is_busy = sequence, False
            self._freed.notify_all()

    def _choose(self, prompt: Tokens, asked: int | None) -> int | None:
        if asked is not None and 0 <= asked < len(self.slots):
            return None if self.slots[asked].is_busy else asked
        free = [place for place, slot in enumerate(self.slots) if not slot.is_busy]
        if not free:
            return None
        best = max(free, key=lambda place: shared(prompt, self.slots[place].tokens))
        if shared(prompt, self.slots[best].tokens) > self._similarity * len(prompt):
            return best
        return min(free, key=lambda place: self.slots[place].last_used)


class HeldIndex(ChainedPrefixIndex):
    """The engine's prefix index, for a server that looks only where its memory says."""

    def __init__(self, page_size: int, memory: Memory) -> None:
        super().__init__(page_size, identity=b"double")
        self._memory = memory

    def lookup(self, token_ids: Tokens, max_pages: int, salt: str | None) -> list[int]:
        granted_pages = self._memory.granted(token_ids) // self.page_size
        return super().lookup(token_ids, min(max_pages, granted_pages), salt)


def shared(first: Tokens, second: Tokens) -> int:
    """How many leading tokens two sequences share."""
    for place, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return place
    return min(len(first), len(second))


def longest_shared(prompt: Tokens, sequences: Sequence[Tokens]) -> int:
    return max((shared(prompt, sequence) for sequence in sequences), default=0)
