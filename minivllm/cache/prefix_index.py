"""The prefix index: from tokens to the page that holds their keys and values. No tensors.

The key of a page is sha256 over its parent's key and its own token ids, so equal keys mean equal prefixes:

    root(identity, salt) -> key(page 0) = H(root, tokens 0..15) -> key(page 1) = H(key(page 0), tokens 16..31) -> ...

A hash only finds the candidate. A hit also compares the stored token ids and the page it is chained to, so that even a
hash that collides on purpose costs speed and never a wrong answer.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class IndexedPage:
    """What the index knows of one page: enough to derive its key again, and to compare it exactly."""

    key: bytes
    parent_page_id: int | None
    salt: str | None
    token_ids: tuple[int, ...]


_ANY = object()


class ChainedPrefixIndex:
    """Chained, exact keys over whole pages.

    `identity` is everything that a stored page depends on besides its tokens (cache/identity.py). `salt` separates
    tenants: pages of one salt are never found under another.
    """

    def __init__(self, page_size: int, identity: bytes = b"") -> None:
        self.page_size = page_size
        self.identity = identity
        self._page_id_by_key: dict[bytes, int] = {}
        self._page_by_id: dict[int, IndexedPage] = {}
        self._token_format = struct.Struct(f"<{page_size}q")

    def __len__(self) -> int:
        return len(self._page_by_id)

    def __contains__(self, page_id: object) -> bool:
        return page_id in self._page_by_id

    def root_key(self, salt: str | None) -> bytes:
        """The key that first pages chain to. An absent salt and an empty one are different salts."""
        return self._hash(
            self.identity + (b"\x00" if salt is None else b"\x01" + salt.encode("utf-8", "surrogatepass"))
        )

    def page_key(self, parent_key: bytes, token_ids: Sequence[int]) -> bytes:
        """sha256 over the parent's key and the ids as little-endian 64-bit integers."""
        return self._hash(parent_key + self._token_format.pack(*token_ids))

    def lookup(self, token_ids: Sequence[int], max_pages: int, salt: str | None) -> list[int]:
        """Page ids of the longest indexed prefix, whole pages only, at most `max_pages`. Changes nothing."""
        found: list[int] = []
        parent_key, parent_page_id = self.root_key(salt), None
        for start in range(0, min(max_pages * self.page_size, len(token_ids) - self.page_size + 1), self.page_size):
            page_tokens = tuple(token_ids[start : start + self.page_size])
            key = self.page_key(parent_key, page_tokens)
            page_id = self._page_id_by_key.get(key)
            if page_id is None or not self._holds(page_id, parent_page_id, salt, page_tokens):
                break
            found.append(page_id)
            parent_key, parent_page_id = key, page_id
        return found

    def insert(
        self, token_ids: Sequence[int], parent_page_id: int | None, page_id: int, salt: str | None
    ) -> int | None:
        """Make `page_id`, which holds `token_ids` behind an indexed parent, findable.

        Returns the page id found under this key from now on: `page_id`, or the page that was there with equal content.
        Returns None, and stores nothing, when the key belongs to other content.
        """
        assert len(token_ids) == self.page_size, f"{len(token_ids)} tokens do not fill a page of {self.page_size}"
        assert page_id not in self._page_by_id, f"page {page_id} is indexed already"
        parent_key = self.root_key(salt) if parent_page_id is None else self._page_by_id[parent_page_id].key
        page = IndexedPage(self.page_key(parent_key, token_ids), parent_page_id, salt, tuple(token_ids))
        present = self._page_id_by_key.get(page.key)
        if present is None:
            self._page_id_by_key[page.key] = page_id
            self._page_by_id[page_id] = page
            return page_id
        return present if self._holds(present, parent_page_id, salt, page.token_ids) else None

    def remove(self, page_id: int) -> None:
        """Forget a page; the caller has removed its children before."""
        page = self._page_by_id.pop(page_id)
        del self._page_id_by_key[page.key]

    def parent_of(self, page_id: int) -> int | None:
        return self._page_by_id[page_id].parent_page_id

    def page(self, page_id: int) -> IndexedPage:
        return self._page_by_id[page_id]

    def page_ids(self, salt: object = _ANY) -> list[int]:
        """Indexed pages, parents before children; of one salt when given (None is the salt of requests without one)."""
        return [page_id for page_id, page in self._page_by_id.items() if salt is _ANY or page.salt == salt]

    def _holds(self, page_id: int, parent_page_id: int | None, salt: str | None, token_ids: tuple[int, ...]) -> bool:
        page = self._page_by_id[page_id]
        return page.token_ids == token_ids and page.parent_page_id == parent_page_id and page.salt == salt

    def _hash(self, data: bytes) -> bytes:
        return hashlib.sha256(data).digest()
