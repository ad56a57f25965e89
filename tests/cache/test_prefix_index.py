"""Equal keys mean equal prefixes: exact, chained, one tenant at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labs.kit.toy_engine import ConstantHashIndex, T
from minivllm.cache.prefix_index import ChainedPrefixIndex


def store(index: ChainedPrefixIndex, token_ids: Sequence[int], first_page_id: int, salt: str | None = None) -> None:
    """Index all full pages of a sequence under consecutive page ids."""
    parent: int | None = None
    for number in range(len(token_ids) // index.page_size):
        tokens = token_ids[number * index.page_size : (number + 1) * index.page_size]
        parent = index.insert(tokens, parent, first_page_id + number, salt)


def hits(index: ChainedPrefixIndex, token_ids: Sequence[int], salt: str | None = None) -> list[int]:
    return index.lookup(token_ids, len(token_ids), salt)


def test_a_stored_prefix_is_found_in_order() -> None:
    index = ChainedPrefixIndex(2)
    store(index, [1, 2, 3, 4, 5, 6], first_page_id=7)
    assert hits(index, [1, 2, 3, 4, 5, 6, 9]) == [7, 8, 9]
    assert hits(index, [1, 2, 3, 4, 9, 9]) == [7, 8]
    assert hits(index, [9, 9, 3, 4, 5, 6]) == []


def test_an_incomplete_last_page_is_ignored() -> None:
    index = ChainedPrefixIndex(4)
    store(index, T(8), first_page_id=0)
    assert [len(hits(index, T(n))) for n in (0, 1, 3, 4, 5, 7, 8, 9)] == [0, 0, 0, 1, 1, 1, 2, 2]


def test_a_lookup_stops_at_the_pages_it_was_allowed() -> None:
    index = ChainedPrefixIndex(2)
    store(index, [1, 2, 3, 4, 5, 6], first_page_id=0)
    assert [index.lookup([1, 2, 3, 4, 5, 6], allowed, None) for allowed in (0, 1, 2, 9)] == [[], [0], [0, 1], [0, 1, 2]]


@pytest.mark.parametrize(("shared", "right"), [(15, 0), (16, 16), (31, 16), (32, 32), (239, 224)])
def test_a_shared_prefix_counts_in_whole_pages(shared: int, right: int) -> None:
    index = ChainedPrefixIndex(16)
    store(index, T(shared) + [1] * 40, first_page_id=0)
    assert len(hits(index, T(shared) + [2] * 40)) * 16 == right


def test_the_same_page_behind_another_parent_is_another_page() -> None:
    a, b = [1] * 16 + [7] * 16, [2] * 16 + [7] * 16
    index = ChainedPrefixIndex(16)
    store(index, a, first_page_id=0)
    assert hits(index, b) == []
    store(index, b, first_page_id=2)
    assert (hits(index, a), hits(index, b)) == ([0, 1], [2, 3])
    assert index.page(1).key != index.page(3).key


def test_a_page_equal_to_its_own_parent_has_its_own_key() -> None:
    index = ChainedPrefixIndex(16)
    store(index, [7] * 32, first_page_id=0)
    assert index.page(0).key != index.page(1).key
    assert hits(index, [7] * 16) == [0]
    assert hits(index, [7] * 48) == [0, 1]


@pytest.mark.parametrize("position", range(15))
def test_a_page_that_fools_a_rolling_hash_misses(position: int) -> None:
    x = T(16)
    y = [*x[:position], x[position] + 31, x[position + 1] - 1, *x[position + 2 :]]
    index = ChainedPrefixIndex(16)
    store(index, x, first_page_id=0)
    assert hits(index, y) == []


@pytest.mark.parametrize(("one", "other"), [([-1], [-2]), ([1, 23], [12, 3]), ([0, 1], [256, 0]), ([2**32], [0])])
def test_ids_have_a_fixed_width_so_no_two_pages_share_their_bytes(one: list[int], other: list[int]) -> None:
    index = ChainedPrefixIndex(len(one))
    assert index.page_key(b"p", one) != index.page_key(b"p", other)


def test_a_key_is_sha256_of_the_parents_key_and_the_ids_as_64_bit_integers() -> None:
    index = ChainedPrefixIndex(2, identity=b"who")
    root = hashlib.sha256(b"who" + b"\x00").digest()
    first = hashlib.sha256(root + (5).to_bytes(8, "little") + (600).to_bytes(8, "little")).digest()
    second = hashlib.sha256(first + (7).to_bytes(8, "little") + (8).to_bytes(8, "little")).digest()
    store(index, [5, 600, 7, 8], first_page_id=3)
    assert [index.page(3).key, index.page(4).key] == [first, second]


def test_another_identity_has_other_keys() -> None:
    assert ChainedPrefixIndex(4, b"f32").root_key(None) != ChainedPrefixIndex(4, b"f16").root_key(None)


def test_no_salt_an_empty_salt_and_two_names_are_four_tenants() -> None:
    salts: list[str | None] = [None, "", "a", "b"]
    index = ChainedPrefixIndex(2)
    for number, salt in enumerate(salts):
        assert hits(index, [1, 2, 3, 4], salt) == []
        store(index, [1, 2, 3, 4], first_page_id=10 * number, salt=salt)
    for number, salt in enumerate(salts):
        assert hits(index, [1, 2, 3, 4], salt) == [10 * number, 10 * number + 1]
        assert index.page_ids(salt) == [10 * number, 10 * number + 1]
    assert len(index) == 8


def test_a_salt_may_hold_any_text() -> None:
    index = ChainedPrefixIndex(2)
    store(index, [1, 2], first_page_id=0, salt="naïve \udc80 \x00")
    assert hits(index, [1, 2], "naïve \udc80 \x00") == [0]
    assert hits(index, [1, 2], "naïve \udc80 ") == []


def test_a_single_token_page_is_matched_as_the_shorter_prefix() -> None:
    index = ChainedPrefixIndex(1)
    store(index, [7], first_page_id=0)
    assert hits(index, [7, 8, 9]) == [0]


def test_an_equal_page_inserted_twice_leaves_the_first_one_found() -> None:
    index = ChainedPrefixIndex(2)
    assert index.insert([1, 2], None, 0, None) == 0
    assert index.insert([1, 2], None, 5, None) == 0
    assert 5 not in index and len(index) == 1


def test_a_page_is_indexed_once() -> None:
    index = ChainedPrefixIndex(2)
    index.insert([1, 2], None, 0, None)
    with pytest.raises(AssertionError, match="page 0 is indexed already"):
        index.insert([3, 4], None, 0, None)


@pytest.mark.parametrize("tokens", [[1], [1, 2, 3]])
def test_a_page_that_is_not_full_cannot_be_indexed(tokens: list[int]) -> None:
    with pytest.raises(AssertionError, match="do not fill a page of 2"):
        ChainedPrefixIndex(2).insert(tokens, None, 0, None)


def test_a_child_cannot_be_indexed_before_its_parent() -> None:
    index = ChainedPrefixIndex(2)
    with pytest.raises(KeyError):
        index.insert([3, 4], 0, 1, None)
    assert len(index) == 0


def test_a_removed_page_is_missed_and_its_parent_is_still_found() -> None:
    index = ChainedPrefixIndex(2)
    store(index, [1, 2, 3, 4], first_page_id=0)
    index.remove(1)
    assert hits(index, [1, 2, 3, 4]) == [0]
    index.insert([3, 4], 0, 6, None)
    assert hits(index, [1, 2, 3, 4]) == [0, 6]


def test_page_ids_lists_parents_before_children_also_after_a_page_comes_back() -> None:
    index = ChainedPrefixIndex(1)
    store(index, [1, 2, 3], first_page_id=0)
    index.remove(2)
    index.remove(1)
    index.insert([2], 0, 5, None)
    index.insert([3], 5, 1, None)
    assert index.page_ids() == [0, 5, 1]


def test_when_every_key_collides_one_page_is_kept_and_nothing_else_is_ever_found() -> None:
    index = ConstantHashIndex(2)
    assert index.insert([1, 2], None, 0, None) == 0
    assert index.insert([3, 4], None, 1, None) is None, "the key belongs to other content"
    assert index.insert([3, 4], 0, 1, None) is None
    assert index.insert([1, 2], 0, 1, None) is None, "equal tokens behind another parent are other content"
    assert index.insert([1, 2], None, 1, "salt") is None
    assert index.insert([1, 2], None, 1, None) == 0
    assert hits(index, [1, 2, 1, 2]) == [0]
    assert hits(index, [3, 4]) == []
    assert hits(index, [1, 2], "salt") == []
    assert len(index) == 1


tokens = st.lists(st.integers(0, 1), min_size=0, max_size=7)
salts = st.sampled_from([None, "", "a"])


@pytest.mark.parametrize("make", [ChainedPrefixIndex, ConstantHashIndex])
@given(calls=st.lists(st.tuples(st.sampled_from(["store", "store", "remove"]), tokens, salts), max_size=30))
def test_key_to_page_and_page_to_key_are_inverse_and_every_hit_is_exact(
    make: type[ChainedPrefixIndex], calls: list[tuple[str, list[int], str | None]]
) -> None:
    index = make(2)
    content: dict[int, tuple[str | None, tuple[int, ...]]] = {}  # page id -> the whole prefix it holds
    for number, (call, token_ids, salt) in enumerate(calls):
        if call == "store":
            _store_what_is_missing(index, content, token_ids, salt, first_page_id=10 * number)
        else:
            _remove_tail(index, content, token_ids, salt)
        keys = {page: index.page(page).key for page in index.page_ids()}
        assert {key: page for page, key in keys.items()} == index._page_id_by_key
        assert set(keys) == set(content)
        found = hits(index, token_ids, salt)
        assert [content[page] for page in found] == [(salt, tuple(token_ids[: 2 * n + 2])) for n in range(len(found))]
        if make is ChainedPrefixIndex:
            stored = set(content.values())
            wanted = [(salt, tuple(token_ids[:end])) for end in range(2, len(token_ids) + 1, 2)]
            assert len(found) == next((n for n, prefix in enumerate(wanted) if prefix not in stored), len(wanted))


def _store_what_is_missing(
    index: ChainedPrefixIndex,
    content: dict[int, tuple[str | None, tuple[int, ...]]],
    token_ids: list[int],
    salt: str | None,
    first_page_id: int,
) -> None:
    parent: int | None = None
    for number, end in enumerate(range(2, len(token_ids) + 1, 2)):
        page = index.insert(token_ids[end - 2 : end], parent, first_page_id + number, salt)
        if page is None:
            return
        content.setdefault(page, (salt, tuple(token_ids[:end])))
        assert content[page] == (salt, tuple(token_ids[:end]))
        parent = page


def _remove_tail(
    index: ChainedPrefixIndex,
    content: dict[int, tuple[str | None, tuple[int, ...]]],
    token_ids: list[int],
    salt: str | None,
) -> None:
    found = hits(index, token_ids, salt)
    if found and all(index.parent_of(page) != found[-1] for page in index.page_ids()):
        index.remove(found[-1])
        del content[found[-1]]


def test_a_lookup_changes_nothing() -> None:
    index = ChainedPrefixIndex(2)
    store(index, [1, 2, 3, 4], first_page_id=0)
    before = (index.page_ids(), dict(index._page_id_by_key))
    for query in ([1, 2, 3, 4], [1, 2], [9, 9], []):
        hits(index, query)
        hits(index, query, "salt")
    assert (index.page_ids(), index._page_id_by_key) == before
