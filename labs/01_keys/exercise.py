"""Lab 01: keys that chain. The question is in README.md; `labs check 01` says how far you are."""

from __future__ import annotations

from collections.abc import Callable, Sequence

PageKey = Callable[[bytes, Sequence[int]], bytes]


def root_key(identity: bytes, salt: str | None) -> bytes:
    """The key that first pages chain to: different for every pair of identity and salt, None and "" included."""
    raise NotImplementedError("root_key is not written yet")


def page_key(parent_key: bytes, token_ids: Sequence[int]) -> bytes:
    """The key of a page that holds `token_ids` behind the page with `parent_key`: at least 16 bytes.

    Token ids are whole numbers from 0 to 2**31.
    """
    raise NotImplementedError("page_key is not written yet")


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
        raise NotImplementedError("lookup is not written yet")

    def insert(
        self, token_ids: Sequence[int], parent_page_id: int | None, page_id: int, salt: str | None
    ) -> int | None:
        """Make `page_id`, which holds `token_ids` behind its parent (None: it is the first page), findable.

        Returns the page that is found under this key from now on: `page_id`, or the one that was there before with the
        same content. Returns None, and stores nothing, when the key belongs to other content.
        """
        raise NotImplementedError("insert is not written yet")

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
