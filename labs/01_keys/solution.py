"""Lab 01, a solution: sha256 over the parent's key and the tokens; a hit compares what is stored."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Sequence

PageKey = Callable[[bytes, Sequence[int]], bytes]


def root_key(identity: bytes, salt: str | None) -> bytes:
    """The key that first pages chain to: different for every pair of identity and salt, None and "" included."""
    tenant = b"\x00" if salt is None else b"\x01" + salt.encode("utf-8", "surrogatepass")
    return hashlib.sha256(struct.pack("<q", len(identity)) + identity + tenant).digest()


def page_key(parent_key: bytes, token_ids: Sequence[int]) -> bytes:
    """The key of a page that holds `token_ids` behind the page with `parent_key`: at least 16 bytes.

    Token ids are whole numbers from 0 to 2**31.
    """
    return hashlib.sha256(parent_key + struct.pack(f"<{len(token_ids)}q", *token_ids)).digest()


def slow_lookup(prompts: Sequence[Sequence[int]], token_ids: Sequence[int], page_size: int) -> int:
    """What a lookup means, slowly: how many leading pages of `token_ids` some stored prompt begins with."""
    num_pages = 0
    while (num_pages + 1) * page_size <= len(token_ids):
        prefix = list(token_ids[: (num_pages + 1) * page_size])
        if not any(list(prompt[: len(prefix)]) == prefix for prompt in prompts):
            break
        num_pages += 1
    return num_pages


class MyPrefixIndex:
    """From tokens to the page that holds their keys and values.

    `make_key` is `page_key`; the checks also give one that collides on purpose, and the answers must stay right.
    """

    def __init__(self, page_size: int, identity: bytes = b"", make_key: PageKey = page_key) -> None:
        self.page_size = page_size
        self.identity = identity
        self.make_key = make_key
        self.page_id_of_key: dict[bytes, int] = {}
        self.key_of_page: dict[int, bytes] = {}
        self.parent_of_page: dict[int, int | None] = {}
        self.tokens_of_page: dict[int, tuple[int, ...]] = {}
        self.salt_of_page: dict[int, str | None] = {}

    def lookup(self, token_ids: Sequence[int], max_pages: int, salt: str | None) -> list[int]:
        """Page ids of the longest prefix that can be found, whole pages only, at most `max_pages`. Changes nothing.

        A key that is found proves nothing: compare the tokens, the parent and the salt that are stored with the page.
        """
        found: list[int] = []
        key, parent = root_key(self.identity, salt), None
        whole_pages = min(max_pages, len(token_ids) // self.page_size)
        for number in range(whole_pages):
            tokens = tuple(token_ids[number * self.page_size : (number + 1) * self.page_size])
            key = self.make_key(key, tokens)
            page_id = self.page_id_of_key.get(key)
            if page_id is None or not self.holds(page_id, parent, tokens, salt):
                break
            found.append(page_id)
            parent = page_id
        return found

    def holds(self, page_id: int, parent: int | None, tokens: tuple[int, ...], salt: str | None) -> bool:
        stored = self.parent_of_page[page_id], self.tokens_of_page[page_id], self.salt_of_page[page_id]
        return stored == (parent, tokens, salt)

    def insert(
        self, token_ids: Sequence[int], parent_page_id: int | None, page_id: int, salt: str | None
    ) -> int | None:
        """Make `page_id`, which holds `token_ids` behind its parent (None: it is the first page), findable.

        Returns the page that is found under this key from now on: `page_id`, or the one that was there before with the
        same content. Returns None, and stores nothing, when the key belongs to other content.
        """
        parent_key = root_key(self.identity, salt) if parent_page_id is None else self.key_of_page[parent_page_id]
        key, tokens = self.make_key(parent_key, token_ids), tuple(token_ids)
        present = self.page_id_of_key.get(key)
        if present is not None:
            return present if self.holds(present, parent_page_id, tokens, salt) else None
        self.page_id_of_key[key] = page_id
        self.key_of_page[page_id] = key
        self.parent_of_page[page_id] = parent_page_id
        self.tokens_of_page[page_id] = tokens
        self.salt_of_page[page_id] = salt
        return page_id

    def remove(self, page_id: int) -> None:
        del self.page_id_of_key[self.key_of_page.pop(page_id)]
        for stored in (self.parent_of_page, self.tokens_of_page, self.salt_of_page):
            del stored[page_id]

    def parent_of(self, page_id: int) -> int | None:
        return self.parent_of_page[page_id]

    def page_ids(self, *salt: str | None) -> list[int]:
        return [page_id for page_id in self.key_of_page if not salt or self.salt_of_page[page_id] == salt[0]]

    def __contains__(self, page_id: object) -> bool:
        return page_id in self.key_of_page

    def __len__(self) -> int:
        return len(self.key_of_page)
