from __future__ import annotations

from collections.abc import Sequence

from labs.kit.prefix_tree import prefix_tree
from minivllm.cache.prefix_index import ChainedPrefixIndex


def letters(token_ids: Sequence[int]) -> str:
    return "".join(chr(ord("a") + token) for token in token_ids)


def index_of(*pages: tuple[str, int | None, int]) -> ChainedPrefixIndex:
    """Pages of two letters: (letters, parent page, page)."""
    index = ChainedPrefixIndex(page_size=2)
    for text, parent, page_id in pages:
        assert index.insert([ord(letter) - ord("a") for letter in text], parent, page_id, None) == page_id
    return index


def test_pages_hang_on_the_page_before_them() -> None:
    index = index_of(("ab", None, 0), ("cd", 0, 1), ("ef", 1, 4), ("xy", 0, 2), ("kl", None, 3))
    assert prefix_tree(index, letters).splitlines() == [
        "start",
        "├─ page 0: ab",
        "│  ├─ page 1: cd",
        "│  │  └─ page 4: ef",
        "│  └─ page 2: xy",
        "└─ page 3: kl",
    ]


def test_what_a_lookup_found_is_marked() -> None:
    index = index_of(("ab", None, 0), ("cd", 0, 1), ("kl", None, 3))
    found = index.lookup([0, 1, 2, 3, 25, 25], 3, None)
    assert [line.endswith("<- found") for line in prefix_tree(index, letters, found).splitlines()] == [
        False, True, True, False,
    ]  # fmt: skip


def test_a_page_whose_beginning_is_gone_is_stranded_with_all_behind_it() -> None:
    index = index_of(("ab", None, 0), ("cd", 0, 1), ("ef", 1, 2))
    index.remove(0)
    lines = prefix_tree(index, letters).splitlines()
    assert lines == ["start", "page 1: cd   (stranded: no lookup gets here)", "└─ page 2: ef"]


def test_a_page_is_stranded_even_when_its_parents_place_has_other_content() -> None:
    index = index_of(("ab", None, 0), ("cd", 0, 1))
    index.remove(0)
    index.insert([10, 11], None, 0, None)
    assert prefix_tree(index, letters).splitlines() == [
        "start",
        "└─ page 0: kl",
        "page 1: cd   (stranded: no lookup gets here)",
    ]


def test_an_empty_index_is_a_start_and_nothing_behind() -> None:
    assert prefix_tree(ChainedPrefixIndex(2), letters) == "start"
