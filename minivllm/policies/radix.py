"""Prefixes as the branches of a tree: SGLang's RadixAttention."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from minivllm.policies.access import Access
from minivllm.policies.eviction import POLICIES
from minivllm.policies.prefixes import common_length
from minivllm.policies.protocol import Counts, Stats, check_positive

Ids = tuple[int, ...]


@dataclass(slots=True, eq=False)
class Node:
    """A stretch of whole pages that nothing has parted yet. `parent` is None for what hangs on a root."""

    node_id: int
    ids: Ids
    parent: Node | None
    siblings: dict[Ids, Node]  # where the node itself is found, by its first page
    children: dict[Ids, Node] = field(default_factory=dict)


class RadixCache:
    """A tree of sequences: a node is split where two of them part, and leaves are evicted whole.

    Models SGLang (python/sglang/srt/mem_cache/radix_cache.py and evict_policy.py of 2026: --page-size 1 and up,
    --radix-eviction-policy; the prompt and the answer of every request are kept, without the last sampled token):

        page size 1         a b c d         [a b c d]
                            a b x           [a b]─┬─[c d]           2 found, the node is split
                                                  └─[x]
        room for 5          k               [a b]─┬─[x]   [k]       the least recent leaf goes, both its tokens

    What it loses: with pages of 1 nothing but what is evicted, and that by whole leaves. With larger pages nodes part
    at page boundaries only.

    Splitting makes a new node of the upper half; the lower one keeps its count of uses, and becomes recent although
    nobody asked for it, as in SGLang.
    """

    def __init__(self, capacity_units: int | None, page_units: int = 1, eviction: str = "lru") -> None:
        check_positive(capacity_units=capacity_units, page_units=page_units)
        if eviction not in POLICIES:
            raise ValueError(f"eviction is {eviction!r}: choose one of {', '.join(POLICIES)}")
        if eviction == "lru-head-first":
            raise ValueError("a radix tree cannot evict head-first: a node that goes takes its branches along")
        self.capacity_units, self.page_units, self.eviction = capacity_units, page_units, eviction
        self._counts = Counts()
        self._node_ids = itertools.count()
        self.restart()

    def restart(self) -> None:
        self.roots: dict[str | None, dict[Ids, Node]] = {}  # a tree for each salt, SGLang's extra_key
        self._node_by_id: dict[int, Node] = {}
        self._candidates = POLICIES[self.eviction](self._parent_id_of)
        self._held_units = 0

    def lookup(self, access: Access) -> int:
        children, found, ids = self.roots.get(access.salt, {}), 0, access.unit_ids
        while node := children.get(ids[found : found + self.page_units]):
            shared = common_length(node.ids, ids[found : found + len(node.ids)], self.page_units)
            found += shared
            if shared < len(node.ids):
                break
            children = node.children
        return self._counts.looked_up(access, found)

    def insert(self, access: Access) -> None:
        ids = access.kept_ids
        ids = ids[: len(ids) - len(ids) % self.page_units]
        children = self.roots.setdefault(access.salt, {})
        path: list[Node] = []
        while ids and (node := children.get(ids[: self.page_units])):
            shared = common_length(node.ids, ids, self.page_units)
            self._candidates.remove(node.node_id)
            if shared < len(node.ids):
                node = self._split(node, shared)
            self._candidates.touch(node.node_id)
            path.append(node)
            children, ids = node.children, ids[shared:]
        self._grow(path, children, ids[: self._make_room(len(ids))])
        for node in reversed(path):
            self._candidates.add(node.node_id)

    def stats(self) -> Stats:
        return Stats.of(self._counts, self.capacity_units, self._held_units)

    def nodes(self) -> list[Node]:
        """Every node, in the order in which they were made."""
        return list(self._node_by_id.values())

    def _split(self, node: Node, at: int) -> Node:
        """Cut a held node in two and return the new upper half; the lower half is a candidate at once."""
        upper = Node(next(self._node_ids), node.ids[:at], node.parent, node.siblings)
        self._put(upper, node.siblings)
        node.ids, node.parent = node.ids[at:], upper
        self._put(node, upper.children)
        self._candidates.add(node.node_id)
        return upper

    def _grow(self, path: list[Node], children: dict[Ids, Node], ids: Ids) -> None:
        """Hang the rest of a sequence on the end of its path."""
        if not ids:
            return
        leaf = Node(next(self._node_ids), ids, path[-1] if path else None, {})
        self._put(leaf, children)
        path.append(leaf)
        self._held_units += len(ids)
        self._counts.inserted_units += len(ids)

    def _put(self, node: Node, siblings: dict[Ids, Node]) -> None:
        node.siblings = siblings
        siblings[node.ids[: self.page_units]] = node
        self._node_by_id[node.node_id] = node

    def _make_room(self, wanted_units: int) -> int:
        """Evict leaves until `wanted_units` fit or nothing is left to evict; returns how many fit, in whole pages."""
        if self.capacity_units is None:
            return wanted_units
        while self._held_units + wanted_units > self.capacity_units and len(self._candidates):
            leaf = self._node_by_id[self._candidates.pop_victim()]
            del leaf.siblings[leaf.ids[: self.page_units]], self._node_by_id[leaf.node_id]
            self._held_units -= len(leaf.ids)
            self._counts.evicted_units += len(leaf.ids)
        room = min(wanted_units, self.capacity_units - self._held_units)
        return room - room % self.page_units

    def _parent_id_of(self, node_id: int) -> int | None:
        parent = self._node_by_id[node_id].parent
        return None if parent is None else parent.node_id
