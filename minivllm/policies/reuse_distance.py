"""How much other traffic lies between two uses of a block: what decides whether LRU still holds it."""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass

from minivllm.policies.access import Access

_EXACT_BITS = 4


class ReuseDistance:
    """The LRU stack distance of every block looked up: how many distinct other blocks are more recent when it is used.

    A tail-first LRU cache of N blocks finds exactly the blocks whose distance is below N (Mattson and others, 1970), so
    one pass tells the hit ratio of every capacity. Blocks of one request were used at the same time, the first counts
    as the most recent:

        requests    a b c    d    a b x         distances of a, b, x: 1 (d), 2 (d, a), first use

    A binary indexed tree counts the blocks last used by each request, so a request costs O(log n) for each group of its
    blocks that were last used together. At most `max_blocks` blocks are remembered, the most recent ones; a use that
    lies further back counts as a first use. Distances of 16 and more are kept to within an eighth, rounded down.
    """

    def __init__(self, block_units: int = 1, max_blocks: int = 1_000_000) -> None:
        self.block_units, self.max_blocks = block_units, max_blocks
        self.num_first_uses = 0
        self.num_uses: Counter[int] = Counter()  # by rounded distance
        self._last_use: OrderedDict[int, _Use] = OrderedDict()  # by block, least recent first
        self._uses = _UsesInOrder()
        self._salts: dict[str | None, int] = {}

    def used(self, access: Access) -> None:
        """A request looks up its prompt, and then counts as the last user of all its blocks."""
        names = self._names(access)
        self._measure(names)
        for before, num_blocks in Counter(map(self._last_use.pop, filter(self._last_use.__contains__, names))).items():
            self._uses.change(before, -num_blocks)
        use = self._uses.append(len(names))
        for name in reversed(names):
            self._last_use[name] = use
        while len(self._last_use) > self.max_blocks:
            self._uses.change(self._last_use.popitem(last=False)[1], -1)

    def percentile(self, percent: float) -> int | None:
        """The smallest distance, in blocks, that at least `percent` of the reuses do not exceed. None without any."""
        wanted, so_far = self.num_uses.total() * percent / 100, 0
        for distance, count in sorted(self.num_uses.items()):
            so_far += count
            if so_far >= wanted:
                return distance
        return None

    def histogram(self) -> list[tuple[int, int]]:
        """Pairs (lowest distance, reuses) by powers of two: 0, 1, 2 to 3, 4 to 7, ..."""
        buckets: Counter[int] = Counter()
        for distance, count in self.num_uses.items():
            buckets[1 << (distance.bit_length() - 1) if distance else 0] += count
        return sorted(buckets.items())

    def _names(self, access: Access) -> list[int]:
        """A number for each whole block and everything before it. 64-bit hashes: this is a statistic."""
        size, ids = self.block_units, access.unit_ids
        name = self._salts.setdefault(access.salt, len(self._salts))
        names = []
        for start in range(0, len(ids) - size + 1, size):
            name = hash((name, ids[start] if size == 1 else ids[start : start + size]))
            names.append(name)
        return names

    def _measure(self, names: list[int]) -> None:
        last_use, num_more_recent, num_shared = None, 0, 0
        for position, name in enumerate(names):
            use = self._last_use.get(name)
            if use is None:  # nor was anything behind it used
                self.num_first_uses += len(names) - position
                return
            if use is not last_use:
                last_use, num_more_recent, num_shared = use, self._uses.total_after(use), 0
            self.num_uses[_rounded(num_more_recent + num_shared)] += 1
            num_shared += 1


def _rounded(distance: int) -> int:
    shift = max(0, distance.bit_length() - _EXACT_BITS)
    return distance >> shift << shift


@dataclass(slots=True, eq=False)
class _Use:
    """A request, and how many blocks nobody has used since."""

    place: int
    num_blocks: int


class _UsesInOrder:
    """Requests in order, with sums of their blocks in O(log n): a binary indexed tree (Fenwick, 1994).

    When its places are full it is made anew for the requests that still have blocks.
    """

    def __init__(self) -> None:
        self._uses: list[_Use] = []
        self._make_tree()

    def append(self, num_blocks: int) -> _Use:
        if len(self._uses) == len(self._tree) - 1:
            self._uses = [use for use in self._uses if use.num_blocks]
            self._make_tree()
        use = _Use(len(self._uses) + 1, 0)
        self._uses.append(use)
        self.change(use, num_blocks)
        return use

    def change(self, use: _Use, difference: int) -> None:
        use.num_blocks += difference
        self._total += difference
        self._add(use.place, difference)

    def total_after(self, use: _Use) -> int:
        place, up_to = use.place, 0
        while place:
            up_to += self._tree[place]
            place &= place - 1
        return self._total - up_to

    def _make_tree(self) -> None:
        self._tree = [0] * (2 * len(self._uses) + 1025)
        self._total = sum(use.num_blocks for use in self._uses)
        for place, use in enumerate(self._uses, start=1):
            use.place = place
            self._add(place, use.num_blocks)

    def _add(self, place: int, difference: int) -> None:
        while place < len(self._tree):
            self._tree[place] += difference
            place += place & -place
