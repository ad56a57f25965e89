"""A progress bar for what takes longer than two seconds, on a terminal and nowhere else."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")

_SHOWN_AFTER_S = 2.0


@contextmanager
def progress(steps: int, unit: str) -> Iterator[Callable[..., None]]:
    """Yields a function to call after each step, with a word for what is under way. `steps` is what was foreseen."""
    if not sys.stderr.isatty() or importlib.util.find_spec("tqdm") is None:
        yield lambda doing="": None
        return
    from tqdm import tqdm

    with tqdm(total=steps, unit=unit, leave=False, delay=_SHOWN_AFTER_S, file=sys.stderr) as bar:

        def step(doing: str = "") -> None:
            bar.set_description(doing)
            bar.total = max(bar.total, bar.n + 1)
            bar.update()

        yield step


def each(items: Sequence[T], unit: str) -> Iterator[T]:
    """The items, with a bar that counts them."""
    with progress(len(items), unit) as step:
        for item in items:
            yield item
            step()
