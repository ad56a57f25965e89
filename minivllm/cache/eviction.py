"""Which cached page goes next. No tensors, no clock: order is a matter of counting."""

from __future__ import annotations

from collections import OrderedDict

from minivllm.protocols import PageUse

# A plain dict finds its first key by walking over all that were deleted before it: 30 us in a queue of 1,000,000.
Queue = OrderedDict[int, None]

BATCHES_PER_FOOTHOLD = 8


class TailFirstLRU:
    """Least recently used first; of one request's pages, the deepest first.

    A sequence is only reachable from its head, so evicting the head strands the tail (known fault PP-01):

        page table  [ a | b | c | d ]      released in the order d, c, b, a
        evicted     d, then c, then b, then a: what is left is always a prefix

    Whoever uses a page uses all its ancestors and releases them after it, so an ancestor is never less recent than a
    descendant and a plain queue is enough.
    """

    def __init__(self) -> None:
        self._queue: Queue = OrderedDict()

    def __len__(self) -> int:
        return len(self._queue)

    def add(self, page_id: int, use: PageUse) -> None:
        assert page_id not in self._queue, f"page {page_id} is a candidate already"
        self._queue[page_id] = None

    def remove(self, page_id: int) -> None:
        del self._queue[page_id]

    def pop_victim(self) -> int:
        return self._queue.popitem(last=False)[0]

    def order(self) -> list[int]:
        """Candidates, the next victim first."""
        return list(self._queue)


class ScanResistant:
    """Pages that nobody came back for go first, the newest of them before the older; then the others, as in LRU.

    Under LRU a working set a little larger than the pool restores nothing: when a prompt comes round again it has just
    been evicted for the one before it. Here newcomers take each other's place and the rest stays:

        untried   | A | B | C |       a stack of batches, one request's pages each: C goes first, and of C the tail
        tried     [ d c b a ...       a queue, least recently used first: pages that were restored at least once

    Left alone, old pages that nobody wants would keep new traffic out for ever. So every eighth batch goes to the end
    of the queue untried. This is bimodal insertion (Qureshi et al., "Adaptive Insertion Policies for High Performance
    Caching", ISCA 2007) with every eighth in the place of one in 32 at random.

    An ancestor is restored whenever its descendant is, so the stack never holds an ancestor of a page in the queue.
    """

    def __init__(self) -> None:
        self._tried: Queue = OrderedDict()
        self._untried: OrderedDict[int, Queue] = OrderedDict()
        self._batch_of_page: dict[int, int] = {}
        self._num_batches = 0
        self._last_depth = 0

    def __len__(self) -> int:
        return len(self._tried) + len(self._batch_of_page)

    def add(self, page_id: int, use: PageUse) -> None:
        assert page_id not in self._tried, f"page {page_id} is a candidate already"
        assert page_id not in self._batch_of_page, f"page {page_id} is a candidate already"
        if use.num_restores or self._has_foothold(use.depth):
            self._tried[page_id] = None
            return
        self._batch_of_page[page_id] = self._num_batches
        self._untried.setdefault(self._num_batches, OrderedDict())[page_id] = None

    def remove(self, page_id: int) -> None:
        if page_id not in self._batch_of_page:
            del self._tried[page_id]
            return
        number = self._batch_of_page.pop(page_id)
        del self._untried[number][page_id]
        if not self._untried[number]:
            del self._untried[number]

    def pop_victim(self) -> int:
        newest = self._untried[next(reversed(self._untried))] if self._untried else self._tried
        page_id = next(iter(newest))
        self.remove(page_id)
        return page_id

    def order(self) -> list[int]:
        """Candidates, the next victim first."""
        return [page_id for queue in (*reversed(self._untried.values()), self._tried) for page_id in queue]

    def _has_foothold(self, depth: int) -> bool:
        """Whether the batch of this page is an eighth one.

        Pages of one request arrive deepest first, one after the other: one that is not shallower than the page before
        it begins the next batch.
        """
        self._num_batches += depth >= self._last_depth
        self._last_depth = depth
        return self._num_batches % BATCHES_PER_FOOTHOLD == 0
