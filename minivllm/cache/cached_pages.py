"""Pages that can be found and that nobody holds: since when, of which precision, and which goes next. No tensors."""

from __future__ import annotations

from collections.abc import Callable

from minivllm.cache.room import Room
from minivllm.protocols import Eviction, PageUse


class CachedPages:
    """Each is a candidate of the eviction policy for as long as it is here."""

    def __init__(self, eviction: Eviction, is_head: Callable[[int], bool]) -> None:
        self._eviction = eviction
        self._is_head = is_head
        self._num_heads = 0
        self._since_s: dict[int, float] = {}

    def __len__(self) -> int:
        return len(self._since_s)

    @property
    def page_ids(self) -> list[int]:
        """The one that came first in front."""
        return list(self._since_s)

    @property
    def room(self) -> Room:
        return Room(self._num_heads, len(self) - self._num_heads)

    def add(self, page_id: int, use: PageUse, now_s: float) -> None:
        self._since_s[page_id] = now_s
        self._num_heads += self._is_head(page_id)
        self._eviction.add(page_id, use)

    def remove(self, page_id: int) -> None:
        self._eviction.remove(page_id)
        self._forget(page_id)

    def pop_victim(self) -> int:
        page_id = self._eviction.pop_victim()
        self._forget(page_id)
        return page_id

    def unused_since(self, oldest_allowed_s: float) -> list[int]:
        """Pages that came no later than that."""
        return [page_id for page_id, since_s in self._since_s.items() if since_s <= oldest_allowed_s]

    def _forget(self, page_id: int) -> None:
        del self._since_s[page_id]
        self._num_heads -= self._is_head(page_id)
