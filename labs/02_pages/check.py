"""What a page pool must do, on pools of up to four pages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

from labs.kit.exercises.drawing import pool as drawn
from labs.kit.exercises.on_engine import random_walks
from labs.kit.exercises.part import Answer, Check, Part, Wrong
from labs.kit.exercises.search import for_all
from minivllm.cache.page_pool import OutOfPagesError, PageStateError

FREE = "free"
Call = tuple[str, int]
CALLS = st.lists(
    st.tuples(st.sampled_from(["allocate", "allocate", "retain", "release", "reclaim"]), st.integers(0, 2)), max_size=12
)


class Model:
    """A pool that cannot be wrong: the number of references of each page, or None for a free one."""

    def __init__(self, num_pages: int) -> None:
        self.counts: list[int | None] = [None] * num_pages

    def expects(self, name: str, page_id: int) -> type[Exception] | None:
        count = self.counts[page_id]
        if name == "allocate":
            return None if None in self.counts else OutOfPagesError
        allowed = {"retain": count is not None, "release": bool(count), "reclaim": count == 0}[name]
        return None if allowed else PageStateError

    def do(self, name: str, page_id: int) -> int | None:
        if name == "reclaim":
            self.counts[page_id] = None
            return None
        change = {"allocate": 1, "retain": 1, "release": -1}[name]
        self.counts[page_id] = (self.counts[page_id] or 0) + change
        return self.counts[page_id]

    def draw(self) -> str:
        return drawn(
            [FREE if count is None else "unreferenced" if not count else f"{count} ref" for count in self.counts]
        )


def play(answer: Answer, num_pages: int, calls: Sequence[Call]) -> None:
    """The same calls on the learner's pool and on the model, compared after each."""
    pool, model, told = answer.MyPagePool(num_pages), Model(num_pages), []
    for name, page_id in calls:
        told.append("allocate()" if name == "allocate" else f"{name}({page_id})")
        expected_error, before = model.expects(name, page_id), model.draw()
        result, error = attempt(pool, name, page_id)
        where = f"{before}   then {told[-1]}\ncalls: {', '.join(told)}"
        if expected_error is not None:
            if error is None:
                raise Wrong(
                    f"{told[-1]} is not refused",
                    drawing=where,
                    expected=expected_error.__name__,
                    actual=f"it returns {result!r}",
                )
        elif error is not None:
            raise Wrong(
                f"{told[-1]} is refused", drawing=where, expected="no error", actual=f"{type(error).__name__}: {error}"
            )
        else:
            taken = take(model, result, where) if name == "allocate" else page_id
            count = model.do(name, taken)
            if name in ("retain", "release") and result != count:
                raise Wrong(f"{told[-1]} returns another count", drawing=where, expected=count, actual=result)
        if expected_error is not None:
            told[-1] += " (refused)"
        compare(pool, model, where, told[-1])


def attempt(pool: Any, name: str, page_id: int) -> tuple[Any, Exception | None]:
    method: Callable[..., Any] = getattr(pool, name)
    try:
        return (method() if name == "allocate" else method(page_id)), None
    except (OutOfPagesError, PageStateError) as error:
        return None, error


def take(model: Model, page_id: Any, where: str) -> int:
    if page_id not in range(len(model.counts)) or model.counts[page_id] is not None:
        raise Wrong("allocate hands out a page that is not free", drawing=where, expected="a free page", actual=page_id)
    return int(page_id)


def compare(pool: Any, model: Model, where: str, call: str) -> None:
    free = [page_id for page_id, count in enumerate(model.counts) if count is None]
    if sorted(pool.free_page_ids()) != free:
        raise Wrong(
            f"after {call} other pages are free", drawing=where, expected=free, actual=sorted(pool.free_page_ids())
        )
    if pool.num_free != len(free):
        raise Wrong(f"after {call} num_free differs", drawing=where, expected=len(free), actual=pool.num_free)
    counts = [pool.references(page_id) for page_id in range(len(model.counts))]
    if counts != [count or 0 for count in model.counts]:
        raise Wrong(
            f"after {call} pages have other counts",
            drawing=where,
            expected=[count or 0 for count in model.counts],
            actual=counts,
        )


def examples(answer: Answer) -> None:
    play(answer, 2, [("allocate", 0), ("retain", 0), ("release", 0), ("release", 0), ("reclaim", 0)])


def the_pool_can_be_empty(answer: Answer) -> None:
    play(
        answer, 1, [("allocate", 0), ("allocate", 0), ("release", 0), ("allocate", 0), ("reclaim", 0), ("allocate", 0)]
    )


def what_nobody_holds_cannot_be_released(answer: Answer) -> None:
    play(answer, 2, [("release", 0), ("allocate", 0), ("release", 0), ("release", 0), ("retain", 0)])


def what_is_free_cannot_be_retained(answer: Answer) -> None:
    play(answer, 2, [("retain", 1), ("allocate", 0), ("release", 0), ("reclaim", 0), ("retain", 0)])


def only_what_nobody_holds_is_reclaimed_and_once(answer: Answer) -> None:
    play(
        answer,
        2,
        [
            ("allocate", 0),
            ("reclaim", 0),
            ("release", 0),
            ("reclaim", 0),
            ("reclaim", 0),
            ("allocate", 0),
            ("allocate", 0),
        ],
    )


def any_calls_in_any_order(answer: Answer) -> None:
    @for_all(num_examples=300, calls=CALLS)
    def as_the_model_says(calls: list[Call]) -> None:
        play(answer, 3, calls)


def the_engine_runs_on_it(answer: Answer) -> None:
    random_walks(lambda: {"page_pool": answer.MyPagePool(6)}, seeds=range(60))


PARTS = (
    Part(
        ("MyPagePool",),
        (
            Check(
                "the README's example", examples, "Releasing the last reference makes a page unreferenced, not free."
            ),
            Check(
                "the pool can be empty",
                the_pool_can_be_empty,
                "An unreferenced page may still be found by others: it is not free before reclaim.",
            ),
            Check(
                "what nobody holds cannot be released",
                what_nobody_holds_cannot_be_released,
                "A count below zero, or a refusal that comes after the count has changed.",
            ),
            Check(
                "what is free cannot be retained",
                what_is_free_cannot_be_retained,
                "A count of 0 was taken for unreferenced; a free page has it, too.",
            ),
            Check(
                "only what nobody holds is reclaimed, and once",
                only_what_nobody_holds_is_reclaimed_and_once,
                "A page that is in the free list twice is handed to two owners.",
            ),
            Check(
                "any calls in any order",
                any_calls_in_any_order,
                "The drawing shows the pool before the call that went wrong, and the calls that led there.",
            ),
            Check(
                "the engine runs on it",
                the_engine_runs_on_it,
                "The engine's audit compares the pool with every page table; see the drawing.",
            ),
        ),
        "A page in two page tables is the whole trick of prefix sharing; this count is all that makes it safe.",
    ),
)
COMPONENTS = {"page_pool": lambda answer, config: answer.MyPagePool(config.num_pages)}
