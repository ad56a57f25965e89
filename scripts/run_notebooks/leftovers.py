"""Every process of one run: the kernel, the servers that it started, and what they started.

Kernels and servers have sessions of their own, and a child whose parent died belongs to nobody. What they all inherit
is the environment, so a word in it names them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Container

import psutil

MARKER = "LABS_NOTEBOOK_RUN"
_GENTLE_S = 3.0


def processes_of(run_id: str) -> list[psutil.Process]:
    return [process for process in psutil.process_iter() if _marker(process) == run_id]


def end_processes_of(run_id: str, spare: Container[int] = ()) -> int:
    """End what is left of a run, gently and then surely; `spare` are process ids. Returns how many there were."""
    found = [process for process in processes_of(run_id) if process.pid not in spare]
    for process in found:
        with contextlib.suppress(psutil.Error):
            process.terminate()
    _, alive = psutil.wait_procs(found, timeout=_GENTLE_S)
    for process in alive:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(alive, timeout=_GENTLE_S)
    return len(found)


def _marker(process: psutil.Process) -> str | None:
    with contextlib.suppress(psutil.Error, OSError):  # of another user, or gone
        return process.environ().get(MARKER)
    return None
