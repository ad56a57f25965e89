"""A thread for an engine of a notebook that widgets move, too.

Arrays of MLX belong to the thread that made them (known fault SV-12), and JupyterLab runs what a button does in another
thread than a cell: comm messages go to a subshell of the kernel.
"""

from __future__ import annotations

import atexit
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from minivllm.backend import mx

T = TypeVar("T")


class OwnThread:
    """Runs what it is given, in order, until `end` or until Python ends."""

    def __init__(self, name: str) -> None:
        self._work: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()
        atexit.register(self.end)

    def call(self, work: Callable[[], T]) -> T:
        """What `work` returns or raises, run in the thread."""
        if not self._thread.is_alive():
            raise RuntimeError(f"the thread {self._thread.name!r} has ended: run the cell that made it again")
        result: Future[T] = Future()
        self._work.put((work, result))
        return result.result()

    def end(self) -> None:
        """Wait until what was given is done, and end. Twice is as good as once."""
        self._work.put(None)
        self._thread.join()
        atexit.unregister(self.end)

    def _run(self) -> None:
        while (given := self._work.get()) is not None:
            work, result = given
            try:
                result.set_result(work())
            except BaseException as error:
                result.set_exception(error)
        mx.clear_streams()  # one that outlives its thread aborts a program that ends just then
