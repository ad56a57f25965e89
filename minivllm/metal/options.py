"""How the runner executes kernels, and for which of them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal

CHECK_VARIABLE = "MINIVLLM_METAL_CHECK"
ORDERS = ("forward", "reverse", "random")


@dataclass(frozen=True, slots=True)
class Options:
    """How the runner executes kernels.

    `check` finds races, exact bounds, uninitialised reads and unwritten outputs, at a few times the cost. `order` is
    the one in which threads take their turns, "random" by `seed`. `stray_reads="zero"` lets reads beside a buffer
    give zeros. `threadgroup_bytes` is what a threadgroup may reserve (Apple's GPUs have 32 KiB).
    """

    check: bool = True
    order: Literal["forward", "reverse", "random"] = "forward"
    seed: int = 0
    stray_reads: Literal["error", "zero"] = "error"
    timeout_s: float = 60.0
    threadgroup_bytes: int = 32 * 1024

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            raise ValueError(f"order is one of {', '.join(ORDERS)}, not {self.order!r}")
        if self.stray_reads not in ("error", "zero"):
            raise ValueError(f'stray_reads is "error" or "zero", not {self.stray_reads!r}')
        if self.timeout_s <= 0 or self.threadgroup_bytes <= 0:
            raise ValueError("timeout_s and threadgroup_bytes are larger than 0")


_chosen: ContextVar[Options | None] = ContextVar("options", default=None)


@contextlib.contextmanager
def options(chosen: Options) -> Iterator[None]:
    """Every kernel called within takes these options, whatever it was made with."""
    token = _chosen.set(chosen)
    try:
        yield
    finally:
        _chosen.reset(token)


def options_now(made_with: Options | None) -> Options:
    """Those of the `with options(...)` around, else the kernel's own, else checks unless MINIVLLM_METAL_CHECK=0."""
    return _chosen.get() or made_with or Options(check=os.environ.get(CHECK_VARIABLE, "1") != "0")
