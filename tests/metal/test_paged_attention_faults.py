"""Each barrier and each bounds guard of the paged kernels, taken out one at a time: the runner's check mode tells.

The states are as tight as they can be: arrays end behind the last slot that may be read, contexts end inside a page,
heads of 80 elements leave lanes idle, and a prefill has two tiles of keys and a short tile of queries.
"""

from __future__ import annotations

from typing import Any

import pytest

from minivllm.attention import paged_kernels
from minivllm.attention.paged_kernels import PagedKernels
from minivllm.attention.pages import PageTables, PlainPages
from minivllm.backend import mx
from minivllm.metal.errors import KernelFault
from minivllm.metal.runner import metal_kernel
from minivllm.metal.source import sections
from tests.metal.paged_case import largest_error, make_case, slots_of

pytestmark = pytest.mark.usefixtures("compiler")

BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup);"
GUARD = "// guard"
WITHOUT_GUARD = {
    "if (IN_HEAD(ELEMENT(i))) {": "if (true) {",
    "if (lane < tokens) {": "if (true) {",
    "if (query < queries_of_head) {": "if (true) {",
    "page < pages;": "page < pages + SIMD_GROUPS;",
    "d < HEAD_SIZE;": "d <= HEAD_SIZE;",
    "split < splits;": "split <= splits;",
    "min(PAGE_SIZE, context - page * PAGE_SIZE)": "PAGE_SIZE",
    "min(TILE_KEYS, longest - first)": "TILE_KEYS",
    "min(first_query + n / HEAD_SIZE, queries_of_head - 1)": "first_query + n / HEAD_SIZE",
    "min(first_query + TILE_QUERIES - 1, queries_of_head - 1)": "(first_query + TILE_QUERIES - 1)",
}
BODIES = ("decode", "merge", "prefill")
CONTEXTS = (20, 40)  # tokens: less than a tile of keys, and more; both end inside a page


def broken_sources() -> dict[str, tuple[str, str]]:
    """By a name that tells the line: the kernel's body and its text without one barrier or one guard."""
    broken = {}
    for body in BODIES:
        lines = sections("paged_attention.metal")[f"body: {body}"].splitlines(keepends=True)
        for number, line in enumerate(lines):
            if (without := without_its_guard(line)) is not None:
                text = "".join([*lines[:number], without, *lines[number + 1 :]])
                broken[f"{body} line {number + 1}: {line.split('//')[0].strip()}"] = (body, text)
    return broken


def without_its_guard(line: str) -> str | None:
    """None when the line has neither a barrier nor a guard."""
    if BARRIER in line:
        return line.replace(BARRIER, "")
    if GUARD not in line:
        return None
    ((guard, nothing),) = [(guard, nothing) for guard, nothing in WITHOUT_GUARD.items() if guard in line]
    return line.replace(guard, nothing)


BROKEN = broken_sources()


def largest_error_of(body: str, num_tokens: int, make_kernel: Any) -> float:
    """Of a launch that uses the kernel `body`: pages in order, and arrays that end with the last token."""
    case = make_case((num_tokens,), rows=7 if body == "prefill" else None, heads=3, head_dim=80)
    used = slots_of(case.tables[0], num_tokens, case.page_size)
    pages = PlainPages(mx.array(case.keys[used]), mx.array(case.values[used]))
    num_pages = len(case.tables[0])
    tables = PageTables([range(num_pages)], [num_tokens], num_pages, case.page_size)
    kernels = PagedKernels(make_kernel)
    if body == "prefill":
        return largest_error(kernels.prefill(case.query_array, pages, tables), case)
    return largest_error(kernels.decode(case.query_array, pages, tables, splits=2 if body == "merge" else 1), case)


@pytest.fixture(autouse=True)
def half_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays that end inside a page are refused outside this file."""
    monkeypatch.setattr(paged_kernels, "_check", lambda queries, pages, tables: queries.shape)


def test_every_kernel_has_barriers_and_guards_to_take_out() -> None:
    counts = {body: sum(broken_body == body for broken_body, _ in BROKEN.values()) for body in BODIES}
    assert counts == {"decode": 8, "merge": 4, "prefill": 11}
    assert sum(BARRIER in name for name in BROKEN) == 5


@pytest.mark.parametrize("body", BODIES)
def test_the_kernels_as_they_are_have_nothing_to_report(body: str) -> None:
    for num_tokens in CONTEXTS:
        assert largest_error_of(body, num_tokens, metal_kernel) < 1e-5


@pytest.mark.parametrize("broken", list(BROKEN))
def test_a_kernel_without_one_barrier_or_guard_is_reported(broken: str) -> None:
    body, text = BROKEN[broken]

    def make_kernel(*, name: str, source: str, **arguments: Any) -> Any:
        if not name.startswith(f"paged_{body}"):
            return metal_kernel(name=name, source=source, **arguments)
        number = list(BROKEN).index(broken)
        return metal_kernel(name=f"broken_{number}_{name}", source=text, **arguments)

    with pytest.raises(KernelFault) as told:
        for num_tokens in CONTEXTS:
            largest_error_of(body, num_tokens, make_kernel)
    assert "thread" in str(told.value)
