"""What the runtime found, as a sentence that someone learning Metal can act on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from minivllm.metal.errors import KernelFault
from minivllm.metal.library import ARENA, Attributes, Buffer, PlaceInfo, Report
from minivllm.metal.rewriter import HEADER, SOURCE
from minivllm.metal.signature import KernelTexts
from minivllm.metal.symbols import UNKNOWN, Place, place_of

# As mr_kind in cpp/runtime.h.
KINDS = (
    "",
    "out of range",
    "write to an input",
    "wild address",
    "stack overflow",
    "barrier under divergent flow",
    "two barriers at once",
    "SIMD operation under divergent flow",
    "absent lane",
    "threadgroup memory",
    "race",
    "uninitialised memory",
    "index of a fixed array",
    "division by zero",
    "illegal instruction",
    "interrupted",
    "timeout",
    "no memory",
)


@dataclass(frozen=True, slots=True)
class Reporter:
    """Turns reports of one kernel into errors."""

    texts: KernelTexts
    library: Path
    buffers: Sequence[Buffer]

    def fault(self, report: Report) -> KernelFault:
        kind = KINDS[report.kind]
        sentence = getattr(self, f"_{kind.replace(' ', '_').lower()}")(report)
        here = self._where(report.here)
        place = f", {here}{self._line_text(here)}" if here.line else ""
        return KernelFault(kind, f"kernel `{self.texts.name}`{place}: {sentence}")

    def unwritten(self, buffer: Buffer, num_unwritten: int, first: int) -> KernelFault:
        return KernelFault(
            "unwritten output",
            f"kernel `{self.texts.name}`: {num_unwritten} of {buffer.data.size} elements of output `{buffer.name}` "
            f"were never written, the first is {buffer.name}[{first}]; on a GPU they hold whatever was there before. "
            "Start more threads, write them all, or give an init_value",
        )

    def _out_of_range(self, report: Report) -> str:
        buffer = self.buffers[report.buffer]
        num_items = buffer.data.size
        index = report.offset // buffer.data.itemsize - buffer.start
        end = num_items - buffer.start - 1
        valid = f"valid are {-buffer.start} to {end}" if num_items else "it has no elements"
        return (
            f"{_thread(report.here)} {_verb(report.here)}s {buffer.name}[{index}], and {valid}. "
            "Guard the index, or start no more threads than there are elements"
        )

    def _write_to_an_input(self, report: Report) -> str:
        buffer = self.buffers[report.buffer]
        index = report.offset // buffer.data.itemsize - buffer.start
        return (
            f"{_thread(report.here)} writes to input {buffer.name}[{index}]; inputs are read-only, and another array "
            "may share their memory. Write to an output"
        )

    def _wild_address(self, report: Report) -> str:
        return (
            f"{_thread(report.here)} {_verb(report.here)}s an address that belongs to no buffer. "
            "Look at how the pointer or its index is computed"
        )

    def _stack_overflow(self, report: Report) -> str:
        return (
            f"{_thread(report.here)} needs more than 256 KiB for its own variables; a GPU would spill them to slow "
            "memory. Use smaller arrays, or share them in threadgroup memory"
        )

    def _barrier_under_divergent_flow(self, report: Report) -> str:
        return (
            f"{report.first} of {report.second} threads wait at this barrier and the others have returned without "
            f"reaching it: {_thread(report.here)} waits, {_thread(report.other)} has returned. Every thread of a "
            "threadgroup must reach the barrier: put it outside of the `if`, and guard the work, not the barrier"
        )

    def _two_barriers_at_once(self, report: Report) -> str:
        other = self._where(report.other)
        return (
            f"{_thread(report.here)} waits at this barrier, {_thread(report.other)} at the one in {other}. "
            "All threads of a threadgroup must meet at the same one: take it out of the `if`, or out of a loop that "
            "they leave at different times"
        )

    def _simd_operation_under_divergent_flow(self, report: Report) -> str:
        other = self._where(report.other)
        here = _text(report.here.operation)
        return (
            f"lane {report.here.thread.thread_index_in_simdgroup} waits here at {here}, and lane "
            f"{report.other.thread.thread_index_in_simdgroup} of the same SIMD group at "
            f"{_text(report.other.operation)} in {other}{self._line_text(other)}. Lanes that took another branch do "
            "not take part, and what the others get is not defined: call it where all lanes pass"
        )

    def _absent_lane(self, report: Report) -> str:
        why = "has returned already" if report.second else "does not exist in this SIMD group"
        return (
            f"{_text(report.here.operation)} in lane {report.here.thread.thread_index_in_simdgroup} asks for the value "
            f"of lane {report.first}, which {why}. Start whole SIMD groups of 32 threads and let none return before"
        )

    def _threadgroup_memory(self, report: Report) -> str:
        return (
            f"threadgroup variable `{_text(report.name)}` brings the threadgroup to {report.first} bytes, and it has "
            f"{report.second}. Use smaller tiles or half precision"
        )

    def _race(self, report: Report) -> str:
        other = self._where(report.other)
        is_arena = report.buffer == ARENA
        flag = "mem_threadgroup" if is_arena else "mem_device"
        same_group = list(report.here.thread.threadgroup_position_in_grid) == list(
            report.other.thread.threadgroup_position_in_grid
        )
        advice = (
            f"no threadgroup_barrier(mem_flags::{flag}) lies between the two, so a GPU may do them in either order"
            if same_group
            else "threadgroups run in any order, none waits for another: give each its own elements or use atomics"
        )
        return (
            f"race: {_thread(report.here)} {_verb(report.here)}s {self._item(report)}, which {_thread(report.other)} "
            f"{'wrote' if report.other.is_write else 'read'} in {other}{self._line_text(other)}; {advice}"
        )

    def _uninitialised_memory(self, report: Report) -> str:
        memory = (
            "threadgroup memory begins with whatever was there. Write it first, and put a "
            "threadgroup_barrier(mem_flags::mem_threadgroup) between the write and the read of another thread"
        )
        if report.buffer != ARENA:
            memory = "an output begins with whatever was there, unless the call gives an init_value"
        return f"{_thread(report.here)} reads {self._item(report)} before any thread has written it; {memory}"

    def _index_of_a_fixed_array(self, report: Report) -> str:
        array = _text(report.name).strip("'").replace(" [", "[")  # GCC and Clang differ in the space
        return f"{_thread(report.here)} takes index {report.first} of an array of type `{array}`, beyond its end"

    def _division_by_zero(self, report: Report) -> str:
        return f"{_thread(report.here)} divides an integer by zero; on a GPU the result is not defined"

    def _illegal_instruction(self, report: Report) -> str:
        return f"{_thread(report.here)} reached code that the compiler took for unreachable: a missing return value?"

    def _interrupted(self, report: Report) -> str:
        return f"interrupted in {_thread(report.here)}"

    def _timeout(self, report: Report) -> str:
        return (
            f"{_thread(report.here)} still runs at the end of the time allowed: an endless loop, or a wait for another "
            "thread, which a GPU does not promise to run. A launch that needs longer takes Options(timeout_s=...)"
        )

    def _no_memory(self, report: Report) -> str:
        return "no memory for the stacks of 1,024 threads; raise `ulimit -v`"

    def _item(self, report: Report) -> str:
        if report.buffer == ARENA:
            name, num_bytes = _text(report.name), max(1, report.num_bytes)
            if report.offset % num_bytes:
                return f"byte {report.offset} of threadgroup variable `{name}`"
            return f"element {report.offset // num_bytes} ({num_bytes} bytes each) of threadgroup variable `{name}`"
        buffer = self.buffers[report.buffer]
        return f"{buffer.name}[{report.offset // buffer.data.itemsize - buffer.start}]"

    def _where(self, info: PlaceInfo) -> Place:
        if info.line and _text(info.file) in (SOURCE, HEADER):
            return Place(_text(info.file), info.line)
        place = place_of(self.library, info.instruction)
        return place if place.text in (SOURCE, HEADER) else UNKNOWN

    def _line_text(self, place: Place) -> str:
        text = self.texts.header if place.text == HEADER else self.texts.source
        lines = text.split("\n")
        return f" `{lines[place.line - 1].strip()}`" if 0 < place.line <= len(lines) else ""


def _text(value: bytes | None) -> str:
    return (value or b"").decode("utf-8", "replace")


def _verb(info: PlaceInfo) -> str:
    return "write" if info.is_write else "read"


def _thread(info: PlaceInfo) -> str:
    return f"thread {_triple(info.thread, 'thread_position_in_threadgroup')} of threadgroup " + _triple(
        info.thread, "threadgroup_position_in_grid"
    )


def _triple(attributes: Attributes, name: str) -> str:
    return f"({', '.join(str(value) for value in getattr(attributes, name))})"
