"""A learner's class is checked against its protocol before any token is computed."""

from __future__ import annotations

from typing import Any

import pytest

from labs.kit.toy_engine import T, ToyEngine, oracle
from minivllm.cache.eviction import TailFirstLRU
from minivllm.cache.page_pool import RefCountedPagePool
from minivllm.cache.prefix_index import ChainedPrefixIndex
from minivllm.cache.publication import Incremental, OnFinish
from minivllm.config import ConfigError
from minivllm.flights import PageFlights
from minivllm.protocols import COMPONENTS, PageUse, check_components, protocol_members
from minivllm.stats import Counters

MEMBERS: dict[str, list[str]] = {
    "page_pool": ["allocate", "free_page_ids", "num_free", "num_pages", "reclaim", "references", "release", "retain"],
    "prefix_index": ["__contains__", "__len__", "insert", "lookup", "page_ids", "parent_of", "remove"],
    "eviction": ["__len__", "add", "pop_victim", "remove"],
    "publication": ["findable_tokens"],
    "flights": ["arrive", "begin_step", "claim", "ended", "goes_page_by_page", "must_publish", "prompt_computed"],
}

OURS: dict[str, Any] = {
    "page_pool": RefCountedPagePool(8),
    "prefix_index": ChainedPrefixIndex(4),
    "eviction": TailFirstLRU(),
    "publication": Incremental(),
    "flights": PageFlights(Counters(), 4),
}


def test_each_protocol_has_exactly_the_members_that_are_listed_here() -> None:
    assert {name: protocol_members(protocol) for name, protocol in COMPONENTS.items()} == MEMBERS


@pytest.mark.parametrize("name", OURS)
def test_our_own_component_passes(name: str) -> None:
    assert check_components({name: OURS[name]}) == {name: OURS[name]}


@pytest.mark.parametrize(("name", "missing"), [(name, member) for name in MEMBERS for member in MEMBERS[name]])
def test_a_missing_member_is_named(name: str, missing: str) -> None:
    members = {member: lambda *arguments: 0 for member in MEMBERS[name] if member != missing}
    learners = type("Learners", (), members)()
    with pytest.raises(ConfigError) as error:
        check_components({name: learners})
    assert str(error.value) == f"components['{name}'] (Learners) lacks {missing}"


def test_all_missing_members_are_named_at_once() -> None:
    with pytest.raises(ConfigError, match=r"\['eviction'\] \(object\) lacks __len__, add, pop_victim, remove"):
        check_components({"eviction": object()})


def test_a_member_that_cannot_be_called_is_missing() -> None:
    broken = type("Broken", (), {"findable_tokens": 5})()
    with pytest.raises(ConfigError, match="lacks findable_tokens"):
        check_components({"publication": broken})


def test_a_method_that_cannot_take_what_the_engine_gives_is_named_before_a_token_is_computed() -> None:
    class Narrow(TailFirstLRU):
        def add(self, page_id: int) -> None:  # type: ignore[override]
            return None

    with pytest.raises(ConfigError, match=r"\(Narrow\)\.add takes \(page_id\), the engine gives page_id, use"):
        check_components({"eviction": Narrow()})


def test_a_component_of_no_known_name_is_refused_with_the_names_there_are() -> None:
    names = "page_pool, prefix_index, eviction, publication"
    with pytest.raises(ConfigError, match=f"'evictoin', which is not one of {names}"):
        check_components({"evictoin": TailFirstLRU()})


@pytest.mark.parametrize(("name", "component"), [("eviction", TailFirstLRU), ("publication", OnFinish)])
def test_a_class_in_place_of_an_object_is_refused(name: str, component: type) -> None:
    with pytest.raises(ConfigError, match=f"is the class {component.__name__}"):
        check_components({name: component})


def test_no_components_are_no_components() -> None:
    assert check_components(None) == check_components({}) == {}


def test_a_learners_eviction_decides_and_the_answers_stay_right() -> None:
    class MostRecentLeaf:
        """Evicts the newest page that no other candidate is chained to."""

        def __init__(self, index: ChainedPrefixIndex) -> None:
            self._index, self._pages = index, list[int]()
            self.num_evicted = 0

        def __len__(self) -> int:
            return len(self._pages)

        def add(self, page_id: int, use: PageUse) -> None:
            self._pages.append(page_id)

        def remove(self, page_id: int) -> None:
            self._pages.remove(page_id)

        def pop_victim(self) -> int:
            parents = {self._index.parent_of(page) for page in self._pages}
            victim = next(page for page in reversed(self._pages) if page not in parents)
            self._pages.remove(victim)
            self.num_evicted += 1
            return victim

    index = ChainedPrefixIndex(4)
    eviction = MostRecentLeaf(index)
    engine = ToyEngine(num_pages=5, page_size=4, components={"prefix_index": index, "eviction": eviction})
    for prompt in (T(8), [50] * 9, T(12), [60] * 13, T(9)):
        request = engine.ask(prompt, 3)
        assert request.output_token_ids == oracle(prompt, 3)
    assert eviction.num_evicted * 4 == engine.counters.evicted_tokens > 0
