"""The audit names every way in which the books can be wrong: each is broken here on purpose, one at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from labs.kit.toy_engine import T, ToyEngine
from minivllm.cache.audit import AuditError, PageView, check_books, eviction_order, page_contents, view_pages
from minivllm.cache.page_pool import RefCountedPagePool
from minivllm.cache.prefix_index import ChainedPrefixIndex
from minivllm.cache.room import Room
from minivllm.protocols import PageUse
from minivllm.request import Request, Status


class Books:
    """Pages of two tokens. `one` has four pages, the first two shared with `other`; an ended request left two.

    page  0 cached, head   1 cached, tail   2 one, other   3 one, other   4 one   5 one (half full)   6 other   7.. free
    """

    def __init__(self) -> None:
        self.engine = ToyEngine(num_pages=10, page_size=2)
        self.engine.ask([90, 91, 92, 93])
        self.one = self.engine.submit([1, 2, 3, 4, 5, 6], 4)
        self.engine.step()
        self.other = self.engine.submit([1, 2, 3, 4, 8], 4)
        self.engine.step()
        self.manager = self.engine.manager
        assert isinstance(self.manager.pool, RefCountedPagePool)
        assert isinstance(self.manager.index, ChainedPrefixIndex)
        self.pool: RefCountedPagePool = self.manager.pool
        self.index: ChainedPrefixIndex = self.manager.index
        self.free: int = self.pool.free_page_ids()[0]

    def audit(self) -> None:
        check_books(self.manager, self.engine.requests)

    def replace_page(self, page_id: int, **changes: object) -> None:
        self.index._page_by_id[page_id] = replace(self.index._page_by_id[page_id], **changes)  # type: ignore[arg-type]


def a_reference_too_many(books: Books) -> None:
    books.pool.retain(books.one.page_table[0])


def a_reference_too_few(books: Books) -> None:
    books.pool.release(books.one.page_table[0])


def a_leaked_reference_at_idle(books: Books) -> None:
    books.engine.run()
    books.pool.retain(0)


def an_active_page_in_the_free_list(books: Books) -> None:
    books.pool._free.append(books.one.page_table[-1])


def a_cached_page_in_the_free_list(books: Books) -> None:
    books.pool._free.append(0)


def a_free_page_twice_in_the_free_list(books: Books) -> None:
    books.pool._free.append(books.free)


def a_page_missing_from_the_free_list(books: Books) -> None:
    books.pool._free.remove(books.free)


def a_page_in_two_tables_with_one_reference(books: Books) -> None:
    books.other.page_table[-1] = books.one.page_table[-1]


def an_unpublished_page_in_two_tables(books: Books) -> None:
    books.manager._release_page(books.other.page_table.pop(), depth=0)
    books.other.page_table.append(books.one.page_table[-1])
    books.pool.retain(books.one.page_table[-1])


def a_page_twice_in_one_table(books: Books) -> None:
    books.one.page_table.append(books.one.page_table[0])
    books.pool.retain(books.one.page_table[0])


def an_indexed_page_without_its_parent(books: Books) -> None:
    ChainedPrefixIndex.remove(books.index, 0)


def a_key_of_other_tokens(books: Books) -> None:
    books.replace_page(1, token_ids=(92, 94))


def a_key_of_another_salt(books: Books) -> None:
    books.replace_page(0, salt="a")


def a_chain_through_two_salts(books: Books) -> None:
    books.replace_page(1, salt="a")


def a_key_that_leads_nowhere(books: Books) -> None:
    del books.index._page_id_by_key[books.index.page(1).key]


def a_key_that_leads_to_another_page(books: Books) -> None:
    books.index._page_id_by_key[books.index.page(1).key] = books.one.page_table[0]


def a_page_indexed_before_it_is_computed(books: Books) -> None:
    table, tokens = books.one.page_table, books.one.token_ids[6:]
    assert (len(tokens), books.one.num_computed_tokens) == (2, 7), "the last one was only sampled"
    books.index.insert(tokens, table[2], table[3], None)


def a_request_that_claims_more_published_than_computed(books: Books) -> None:
    books.one.num_published_pages = 5


def a_request_that_claims_pages_the_index_does_not_have(books: Books) -> None:
    books.other.num_published_pages = 3
    books.other.num_computed_tokens = 6
    books.other.token_ids.append(9)


def kv_for_the_last_sampled_token(books: Books) -> None:
    books.other.num_computed_tokens = len(books.other.token_ids)


def more_computed_tokens_than_pages_hold(books: Books) -> None:
    books.one.page_table.pop()


def a_waiting_request_with_pages(books: Books) -> None:
    books.one.status = Status.WAITING


def an_ended_request_with_pages(books: Books) -> None:
    books.one.status = Status.ENDED


def a_table_with_a_page_of_other_tokens(books: Books) -> None:
    table = books.one.page_table
    books.pool.release(table[1])
    books.manager._retain_page(0)
    table[1] = 0


def a_table_with_a_page_of_another_salt(books: Books) -> None:
    books.one.cache_salt = "a"


def a_table_with_equal_tokens_behind_another_parent(books: Books) -> None:
    stranger = books.engine.submit([70, 71, 3, 4, 5], 1)
    books.engine.run()
    twin = books.engine.submit([1, 2, 3, 4, 5], 3)
    books.engine.step()
    foreign = books.index.lookup(stranger.prompt_token_ids, 2, None)[1]
    books.manager._release_page(twin.page_table[1], depth=1)
    books.manager._retain_page(foreign)
    twin.page_table[1] = foreign


def a_page_nobody_holds_and_nobody_finds(books: Books) -> None:
    books.manager.eviction.remove(1)
    books.manager._cached._forget(1)
    books.index.remove(1)


def a_cached_page_that_is_no_candidate(books: Books) -> None:
    books.manager.eviction.remove(1)


def an_active_page_as_a_candidate_in_place_of_a_cached_one(books: Books) -> None:
    books.manager.eviction.remove(1)
    books.manager.eviction.add(books.one.page_table[0], PageUse(depth=0, num_restores=0))


def a_cached_page_that_is_not_counted(books: Books) -> None:
    books.manager._cached._forget(1)


def an_active_page_counted_as_cached_in_place_of_another(books: Books) -> None:
    books.manager._cached._forget(1)
    books.manager._cached._since_s[books.one.page_table[0]] = 0.0


def more_pages_promised_than_there_are(books: Books) -> None:
    books.manager._promised["R2"] = Room(body=50)


def a_promise_to_a_request_that_has_ended(books: Books) -> None:
    books.manager._promised["R1"] = Room(body=1)


def a_promise_that_is_too_small(books: Books) -> None:
    books.manager._promised["R2"] -= Room(body=1)


BREAKS: dict[Callable[[Books], None], str] = {
    a_reference_too_many: r"page 2 has 3 references, and the owners \['R2', 'R3'\]",
    a_reference_too_few: r"page 2 has 1 references, and the owners \['R2', 'R3'\]",
    a_leaked_reference_at_idle: r"page 0 has 1 references, and the owners \[\]",
    an_active_page_in_the_free_list: r"page 5 is free and in the page tables of \['R2'\]",
    a_cached_page_in_the_free_list: "page 0 is free and can still be found",
    a_free_page_twice_in_the_free_list: "a page is in the free list twice",
    a_page_missing_from_the_free_list: "page 7 is held by nobody and cannot be found: it is lost",
    a_page_in_two_tables_with_one_reference: r"page 5 has 1 references, and the owners \['R2', 'R3'\]",
    an_unpublished_page_in_two_tables: r"page 5 is shared by \['R2', 'R3'\] and was never published",
    a_page_twice_in_one_table: r"R2 has a page twice in its page table \[2, 3, 4, 5, 2\]",
    an_indexed_page_without_its_parent: "page 1 is indexed and its parent 0 is not",
    a_key_of_other_tokens: "the key of page 1 does not follow from the tokens it stores",
    a_key_of_another_salt: "the key of page 0 does not follow from the tokens it stores",
    a_chain_through_two_salts: "page 1",
    a_key_that_leads_nowhere: "page 1",
    a_key_that_leads_to_another_page: "page 1",
    a_page_indexed_before_it_is_computed: "page 5",
    a_request_that_claims_more_published_than_computed: "R2 published 5 pages of 7 computed tokens",
    a_request_that_claims_pages_the_index_does_not_have: "R3",
    kv_for_the_last_sampled_token: "R3 claims KV for its last sampled token",
    more_computed_tokens_than_pages_hold: "R2 has 7 computed tokens in 3 pages",
    a_waiting_request_with_pages: r"R2 is waiting and holds pages \[2, 3, 4, 5\]",
    an_ended_request_with_pages: r"R2 is ended and holds pages \[2, 3, 4, 5\]",
    a_table_with_a_page_of_other_tokens: "page 0 of R2 is indexed for other content than the request has there",
    a_table_with_a_page_of_another_salt: "page 2 of R2 is indexed for other content than the request has there",
    a_table_with_equal_tokens_behind_another_parent: "of R5 is indexed for other content than the request has there",
    a_page_nobody_holds_and_nobody_finds: "page 1 is held by nobody and cannot be found: it is lost",
    a_cached_page_that_is_no_candidate: "candidates for eviction",
    an_active_page_as_a_candidate_in_place_of_a_cached_one: "candidates for eviction",
    a_cached_page_that_is_not_counted: "1 pages are counted as cached, 2 are",
    an_active_page_counted_as_cached_in_place_of_another: "counted as cached",
    more_pages_promised_than_there_are: r"\d+ pages are promised, 5 could be given",
    a_promise_to_a_request_that_has_ended: "R1",
    a_promise_that_is_too_small: "R2",
}


def test_the_books_are_in_order_before_they_are_broken() -> None:
    books = Books()
    assert [page.state for page in view_pages(books.manager, books.engine.requests)] == [
        *["cached"] * 2,
        *["active"] * 5,
        *["free"] * 3,
    ]
    assert books.one.page_table[:2] == books.other.page_table[:2] == [2, 3]
    books.audit()
    books.engine.run()
    books.audit()


@pytest.mark.parametrize("break_books", BREAKS, ids=lambda function: function.__name__)
def test_the_audit_names_what_is_wrong(break_books: Callable[[Books], None]) -> None:
    books = Books()
    break_books(books)
    with pytest.raises(AuditError, match=BREAKS[break_books]):
        books.audit()


def test_the_audit_lists_everything_that_is_wrong_at_once() -> None:
    books = Books()
    a_reference_too_many(books)
    a_key_of_other_tokens(books)
    with pytest.raises(AuditError, match=r"3 references.*; .*does not follow"):
        books.audit()


def test_a_view_of_a_page_shows_its_owners_and_its_parent() -> None:
    books = Books()
    views = view_pages(books.manager, books.engine.requests)
    assert views[3] == PageView(3, "active", 2, ("R2", "R3"), True, 2)
    assert views[1] == PageView(1, "cached", 0, (), True, 0)
    assert views[7] == PageView(7, "free", 0, (), False, None)


def test_an_index_that_shows_no_pages_is_still_audited() -> None:
    """A learner's index needs only what its protocol says."""

    class Opaque:
        def __init__(self) -> None:
            self._index = ChainedPrefixIndex(2)
            for name in ("lookup", "insert", "remove", "parent_of", "page_ids"):
                setattr(self, name, getattr(self._index, name))

        def __contains__(self, page_id: object) -> bool:
            return page_id in self._index

        def __len__(self) -> int:
            return len(self._index)

    engine = ToyEngine(page_size=2, components={"prefix_index": Opaque()})
    engine.ask(T(7), 3)
    engine.manager.index.remove(0)
    with pytest.raises(AuditError, match="its parent 0 is not"):
        check_books(engine.manager, engine.requests)


def test_the_audit_of_an_engine_sees_requests_that_are_not_listed_as_lost_pages() -> None:
    books = Books()
    requests: list[Request] = [books.one]
    with pytest.raises(AuditError, match="page 6 is held by nobody"):
        check_books(books.manager, requests)


def test_the_contents_of_pages_are_those_of_index_and_page_tables() -> None:
    books = Books()
    assert page_contents(books.manager, books.engine.requests) == {
        0: (90, 91), 1: (92, 93), 2: (1, 2), 3: (3, 4), 4: (5, 6), 5: (books.one.token_ids[6],), 6: (8,),
    }  # fmt: skip


def test_the_content_of_a_slots_partial_page_is_told_too() -> None:
    engine = ToyEngine(page_size=2, num_slots=1)
    engine.ask([1, 2, 3])
    assert sorted(page_contents(engine.manager, engine.requests).values()) == [(1, 2), (3,)]


def test_the_order_of_eviction_is_the_policys_own() -> None:
    assert eviction_order(Books().manager) == [1, 0]
    engine = ToyEngine(eviction="lfu")
    engine.ask(T(4))
    assert engine.manager.num_cached_pages == 1 and eviction_order(engine.manager) is None
