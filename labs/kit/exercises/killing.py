"""A process that is killed in the middle of its work, at any call that one chooses. POSIX: it forks."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any


def killed_while(work: Callable[[], None], number: int) -> bool:
    """Fork, do the work, and kill the child at its `number`-th call; False when it finished before that."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        return os.WIFSIGNALED(status)
    left = number

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal left
        left -= event in ("call", "c_call")
        if left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)

    try:
        sys.setprofile(count)
        work()
    finally:
        os._exit(0)
