"""Pages are in exactly one state, and nobody can use one in the wrong state unnoticed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minivllm.cache.page_pool import OutOfPagesError, PageStateError, RefCountedPagePool


def test_a_fresh_page_has_one_reference() -> None:
    pool = RefCountedPagePool(4)
    assert pool.references(pool.allocate()) == 1


def test_every_page_is_handed_out_once_before_the_pool_is_empty() -> None:
    pool = RefCountedPagePool(4)
    assert [pool.allocate() for _ in range(4)] == [0, 1, 2, 3]
    assert pool.num_free == 0
    with pytest.raises(OutOfPagesError, match="all 4 pages"):
        pool.allocate()


def test_a_page_returns_only_after_its_last_reference_and_a_reclaim() -> None:
    pool = RefCountedPagePool(2)
    page = pool.allocate()
    assert pool.retain(page) == 2
    assert pool.release(page) == 1
    with pytest.raises(PageStateError, match="reclaimed while referenced"):
        pool.reclaim(page)
    assert pool.release(page) == 0
    assert pool.num_free == 1, "an unreferenced page may still be cached: it is not free by itself"
    pool.reclaim(page)
    assert pool.free_page_ids() == (1, 0), "the page that became free last is handed out last"


def test_a_double_release_is_refused_and_changes_nothing() -> None:
    pool = RefCountedPagePool(2)
    page = pool.allocate()
    pool.release(page)
    with pytest.raises(PageStateError, match=f"page {page} released more often than retained"):
        pool.release(page)
    assert pool.references(page) == 0


def test_a_double_free_is_refused_and_changes_nothing() -> None:
    pool = RefCountedPagePool(2)
    page = pool.allocate()
    pool.release(page)
    pool.reclaim(page)
    with pytest.raises(PageStateError, match="reclaimed while free"):
        pool.reclaim(page)
    assert sorted(pool.free_page_ids()) == [0, 1]


def test_a_free_page_cannot_be_retained() -> None:
    pool = RefCountedPagePool(2)
    with pytest.raises(PageStateError, match="page 0 retained while free"):
        pool.retain(0)
    assert pool.references(0) == 0


def test_an_unreferenced_page_can_be_retained_again() -> None:
    pool = RefCountedPagePool(2)
    page = pool.allocate()
    pool.release(page)
    assert pool.retain(page) == 1


def test_a_pool_without_pages_is_refused_with_its_number() -> None:
    with pytest.raises(ValueError, match="num_pages=0 must be at least 1"):
        RefCountedPagePool(0)


CALLS = st.sampled_from(["allocate", "retain", "release", "reclaim"])


@given(st.lists(st.tuples(CALLS, st.integers(0, 3)), max_size=60))
def test_whatever_is_called_a_page_is_free_or_counted_as_a_model_says(calls: list[tuple[str, int]]) -> None:
    pool = RefCountedPagePool(4)
    references: dict[int, int] = {}  # of the pages that are not free
    for call, page in calls:
        try:
            if call == "allocate":
                references[pool.allocate()] = 1
            elif call == "retain":
                assert pool.retain(page) == references[page] + 1
                references[page] += 1
            elif call == "release":
                assert pool.release(page) == references[page] - 1
                references[page] -= 1
            else:
                pool.reclaim(page)
                assert references.pop(page) == 0
        except OutOfPagesError:
            assert len(references) == 4
        except PageStateError:
            wrong = {
                "retain": page not in references,
                "release": references.get(page, 0) == 0,
                "reclaim": references.get(page, 1) > 0,
            }
            assert wrong[call]
        assert set(pool.free_page_ids()) == set(range(4)) - set(references)
        assert pool.num_free == 4 - len(references)
        assert [pool.references(page) for page in range(4)] == [references.get(page, 0) for page in range(4)]
