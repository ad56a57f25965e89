"""The paged kernels, run by the runner, against the formula in float64: all variants in one process.

Every head size, dtype and layout is here once or twice; `python -m tests.metal.sweep` goes through all combinations.
"""

from __future__ import annotations

import pytest

from minivllm.attention.paged_kernels import HEAD_SIZES, PagedKernels
from minivllm.attention.pages import PlainPages
from minivllm.backend import mx
from minivllm.metal.compiler import Compiler
from tests.metal.paged_case import KERNEL_MAKERS, Case, largest_error, make_case, quantized

LENGTHS = (1, 15, 16, 17, 255, 256, 257, 1000)
TOLERANCE = {mx.float32: 1e-5, mx.float16: 2e-3, mx.bfloat16: 2e-2}


@pytest.fixture(scope="module", params=list(KERNEL_MAKERS))
def kernels(request: pytest.FixtureRequest, compiler: Compiler) -> PagedKernels:
    """One for the whole module: all variants in one process, each under its own name."""
    return PagedKernels(KERNEL_MAKERS[request.param])


def decode_error(kernels: PagedKernels, case: Case, splits: int | None = None) -> float:
    return largest_error(kernels.decode(case.query_array, case.pages, case.page_tables, splits), case)


@pytest.mark.parametrize("queries_per_kv", [1, 3, 8])
def test_decode_of_a_batch_of_unequal_lengths_on_shuffled_pages(kernels: PagedKernels, queries_per_kv: int) -> None:
    assert decode_error(kernels, make_case(LENGTHS, heads=queries_per_kv)) < 1e-5


@pytest.mark.parametrize("dtype", list(TOLERANCE), ids=str)
@pytest.mark.parametrize("head_dim", HEAD_SIZES)
def test_decode_in_every_head_size_and_dtype(kernels: PagedKernels, head_dim: int, dtype: mx.Dtype) -> None:
    case = make_case((1, 17, 40), heads=6, kv_heads=2, head_dim=head_dim, dtype=dtype)
    assert decode_error(kernels, case) < TOLERANCE[dtype]


@pytest.mark.parametrize("page_size", [1, 4, 16, 32])
def test_pages_of_any_size_hold_the_same_answer(kernels: PagedKernels, page_size: int) -> None:
    assert decode_error(kernels, make_case((1, 5, 33), page_size=page_size)) < 1e-5
    case = make_case((33,), rows=7, page_size=page_size)
    assert largest_error(kernels.prefill(case.query_array, case.pages, case.page_tables), case) < 1e-5


@pytest.mark.parametrize("splits", [2, 3, 8])
def test_a_context_shared_out_to_splits_gives_the_same_answer_even_when_some_get_nothing(
    kernels: PagedKernels, splits: int
) -> None:
    assert decode_error(kernels, make_case((1, 100, 257), heads=6, kv_heads=2), splits) < 1e-5
    case = make_case((1, 100), head_dim=80, dtype=mx.float16)
    assert decode_error(kernels, case, splits) < 2e-3


def test_a_page_that_many_sequences_share_is_read_for_each(kernels: PagedKernels) -> None:
    case = make_case((40, 60, 33), shared_pages=2)
    assert {tuple(table[:2]) for table in case.tables} == {tuple(case.tables[0][:2])}
    assert decode_error(kernels, case) < 1e-5


@pytest.mark.parametrize(
    ("prefix", "rows", "queries_per_kv"),
    [(0, 7, 1), (0, 64, 3), (16, 1, 3), (16, 7, 8), (255, 1, 1), (255, 7, 3), (33, 64, 1)],
)
def test_a_chunk_behind_a_prefix_sees_the_prefix_and_itself_up_to_each_row(
    kernels: PagedKernels, prefix: int, rows: int, queries_per_kv: int
) -> None:
    case = make_case((prefix + rows,), rows=rows, heads=2 * queries_per_kv, kv_heads=2)
    assert largest_error(kernels.prefill(case.query_array, case.pages, case.page_tables), case) < 1e-5


@pytest.mark.parametrize("dtype", list(TOLERANCE), ids=str)
@pytest.mark.parametrize("head_dim", HEAD_SIZES)
def test_a_chunk_in_every_head_size_and_dtype(kernels: PagedKernels, head_dim: int, dtype: mx.Dtype) -> None:
    case = make_case((40,), rows=7, heads=3, head_dim=head_dim, dtype=dtype)
    assert largest_error(kernels.prefill(case.query_array, case.pages, case.page_tables), case) < TOLERANCE[dtype]


@pytest.mark.parametrize(
    ("bits", "group_size", "head_dim", "dtype"),
    [(8, 32, 96, mx.float32), (4, 32, 64, mx.float16), (8, 64, 64, mx.float16), (4, 128, 128, mx.float32)],
)
def test_quantized_pages_are_read_in_place(
    kernels: PagedKernels, bits: int, group_size: int, head_dim: int, dtype: mx.Dtype
) -> None:
    case, pages = quantized(make_case((1, 17, 40), heads=3, head_dim=head_dim, dtype=dtype), bits, group_size)
    assert largest_error(kernels.decode(case.query_array, pages, case.page_tables), case) < TOLERANCE[dtype]
    case, pages = quantized(make_case((40,), rows=7, heads=3, head_dim=head_dim, dtype=dtype), bits, group_size)
    assert largest_error(kernels.prefill(case.query_array, pages, case.page_tables), case) < TOLERANCE[dtype]


def test_keys_and_values_that_are_views_are_read_as_their_copies(kernels: PagedKernels) -> None:
    case = make_case((1, 17, 40), kv_heads=3)
    keys, values = case.pages.keys, case.pages.values
    views = PlainPages(mx.contiguous(keys.transpose(1, 0, 2)).transpose(1, 0, 2), mx.repeat(values, 2, axis=0)[::2])
    queries = mx.contiguous(case.query_array.transpose(1, 0, 2)).transpose(1, 0, 2)
    assert largest_error(kernels.decode(queries, views, case.page_tables), case) < 1e-5


def test_sixteen_bit_pages_serve_float32_queries(kernels: PagedKernels) -> None:
    case = make_case((1, 17, 40), dtype=mx.float16)
    got = kernels.decode(mx.array(case.queries), case.pages, case.page_tables)
    assert got.dtype == mx.float32
    assert largest_error(got, case) < 1e-5


def test_a_nan_that_a_row_may_see_shows_in_its_answer_and_in_no_other(kernels: PagedKernels) -> None:
    case = make_case((5, 20))
    case.values[case.tables[0][0] * case.page_size + 3] = float("nan")
    got = kernels.decode(case.query_array, case.pages, case.page_tables)
    assert mx.isnan(got[0]).all().item() and not mx.isnan(got[1]).any().item()


def test_rows_of_a_chunk_do_not_see_a_nan_that_comes_behind_them(kernels: PagedKernels) -> None:
    case = make_case((40,), rows=7)
    last = case.tables[0][39 // case.page_size] * case.page_size + 39 % case.page_size
    case.keys[last], case.values[last] = float("nan"), float("nan")
    got = kernels.prefill(case.query_array, case.pages, case.page_tables)
    assert mx.isnan(got[6]).all().item() and not mx.isnan(got[:6]).any().item()
