"""The runtime library as Python sees it: the C structures of cpp/runtime.h, windows for buffers, and a launch."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from minivllm.metal.compiler import find_compiler, runtime_library
from minivllm.metal.errors import MetalRunnerError

ARENA, NOWHERE = -1, -2
_TRIPLE = ctypes.c_uint32 * 3


class Attributes(ctypes.Structure):
    """Only what a message needs of mr_attributes; the rest is there for the size."""

    _fields_ = (
        ("dispatch_threads_per_threadgroup", _TRIPLE),
        ("grid_origin", _TRIPLE),
        ("grid_size", _TRIPLE),
        ("thread_position_in_grid", _TRIPLE),
        ("thread_position_in_threadgroup", _TRIPLE),
        ("threadgroup_position_in_grid", _TRIPLE),
        ("threadgroups_per_grid", _TRIPLE),
        ("threads_per_grid", _TRIPLE),
        ("threads_per_threadgroup", _TRIPLE),
        ("dispatch_quadgroups_per_threadgroup", ctypes.c_uint32),
        ("dispatch_simdgroups_per_threadgroup", ctypes.c_uint32),
        ("quadgroup_index_in_threadgroup", ctypes.c_uint32),
        ("quadgroups_per_threadgroup", ctypes.c_uint32),
        ("simdgroup_index_in_threadgroup", ctypes.c_uint32),
        ("simdgroups_per_threadgroup", ctypes.c_uint32),
        ("thread_execution_width", ctypes.c_uint32),
        ("thread_index_in_quadgroup", ctypes.c_uint32),
        ("thread_index_in_simdgroup", ctypes.c_uint32),
        ("thread_index_in_threadgroup", ctypes.c_uint32),
        ("threads_per_simdgroup", ctypes.c_uint32),
    )


class PlaceInfo(ctypes.Structure):
    _fields_ = (
        ("instruction", ctypes.c_uint64),
        ("file", ctypes.c_char_p),
        ("operation", ctypes.c_char_p),
        ("line", ctypes.c_int),
        ("is_write", ctypes.c_int),
        ("thread", Attributes),
    )


class Report(ctypes.Structure):
    _fields_ = (
        ("kind", ctypes.c_int),
        ("buffer", ctypes.c_int),
        ("offset", ctypes.c_longlong),
        ("num_bytes", ctypes.c_int),
        ("has_other", ctypes.c_int),
        ("first", ctypes.c_longlong),
        ("second", ctypes.c_longlong),
        ("here", PlaceInfo),
        ("other", PlaceInfo),
        ("name", ctypes.c_char * 128),
    )


class Launch(ctypes.Structure):
    _fields_ = (
        ("entry", ctypes.c_void_p),
        ("buffers", ctypes.POINTER(ctypes.c_void_p)),
        ("grid", _TRIPLE),
        ("threadgroup", _TRIPLE),
        ("order", ctypes.c_int),
        ("is_checked", ctypes.c_int),
        ("allows_stray_reads", ctypes.c_int),
        ("num_arena_bytes", ctypes.c_int),
        ("seed", ctypes.c_uint64),
        ("timeout_s", ctypes.c_double),
    )


@dataclass(frozen=True, slots=True)
class Buffer:
    """What a kernel gets a pointer to. `data` is one-dimensional; `start` is where the pointer points, in items.

    `is_initialised` says whether an output may be read before it is written.
    """

    name: str
    data: np.ndarray
    start: int = 0
    is_output: bool = False
    is_initialised: bool = True


# The runtime has one launch, and the process one set of signal handlers.
launch_lock = threading.Lock()


class Runtime:
    """Hold `launch_lock` from `place` to `close`."""

    def __init__(self, library: ctypes.CDLL) -> None:
        library.mr_open.argtypes = (ctypes.c_int, ctypes.c_uint64, ctypes.c_int)
        library.mr_place.argtypes = (
            *(ctypes.c_int, ctypes.c_uint64, ctypes.c_uint32),
            *(ctypes.c_int, ctypes.c_int, ctypes.c_int),
        )
        library.mr_place.restype = ctypes.c_void_p
        library.mr_run.argtypes = (ctypes.POINTER(Launch), ctypes.POINTER(Report))
        library.mr_unwritten.argtypes = (ctypes.c_int, ctypes.POINTER(ctypes.c_uint64))
        library.mr_unwritten.restype = ctypes.c_uint64
        self._library = library
        self._addresses: list[int] = []

    def place(self, buffers: Sequence[Buffer], *, is_checked: bool, allows_stray_reads: bool) -> None:
        """Copy the buffers to where a kernel can reach them, and nothing beside them."""
        largest = max((buffer.data.nbytes for buffer in buffers), default=0)
        if not self._library.mr_open(len(buffers), largest, allows_stray_reads):
            raise MetalRunnerError(
                f"no room for {len(buffers)} buffers of up to {largest} bytes; use smaller arrays or raise `ulimit -v`"
            )
        self._addresses = [self._place(i, buffer, is_checked) for i, buffer in enumerate(buffers)]
        if not self._library.mr_seal():
            raise MetalRunnerError("the system refuses to make inputs read-only")

    def run(self, launch: Launch, buffers: Sequence[Buffer]) -> Report:
        pointers = (ctypes.c_void_p * len(buffers))(
            *(
                address + buffer.start * buffer.data.itemsize
                for address, buffer in zip(self._addresses, buffers, strict=True)
            )
        )
        launch.buffers = ctypes.cast(pointers, ctypes.POINTER(ctypes.c_void_p))
        report = Report()
        self._library.mr_run(ctypes.byref(launch), ctypes.byref(report))
        return report

    def fetch(self, index: int, buffer: Buffer) -> np.ndarray:
        """A copy of what is in a buffer now."""
        result = np.empty_like(buffer.data)
        ctypes.memmove(result.ctypes.data, self._addresses[index], result.nbytes)
        return result

    def unwritten(self, index: int) -> tuple[int, int]:
        """How many items of an output no thread wrote, in the check mode, and the first of them."""
        first = ctypes.c_uint64()
        return int(self._library.mr_unwritten(index, ctypes.byref(first))), first.value

    def close(self) -> None:
        self._library.mr_close()

    def _place(self, index: int, buffer: Buffer, is_checked: bool) -> int:
        data = buffer.data
        address = self._library.mr_place(
            index, data.nbytes, data.itemsize, buffer.is_output, buffer.is_initialised, is_checked
        )
        if address is None:
            raise MetalRunnerError(f"no memory for the {data.nbytes} bytes of `{buffer.name}`")
        ctypes.memmove(address, data.ctypes.data, data.nbytes)
        return int(address)


@cache
def runtime() -> Runtime:
    """Built at the first call. Kernels find its functions because they are loaded globally."""
    return Runtime(ctypes.CDLL(str(runtime_library(find_compiler())), mode=ctypes.RTLD_GLOBAL))


@cache
def entry_of(library: Path) -> int:
    """The address of a kernel's entry. A library stays loaded: places in messages point into it."""
    address = ctypes.cast(ctypes.CDLL(str(library)).mr_entry, ctypes.c_void_p).value
    if address is None:
        raise MetalRunnerError(f"{library} has no entry")
    return address
