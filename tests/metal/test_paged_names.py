"""Names of kernels, and what is refused before a launch. Nothing here runs a kernel."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from minivllm.attention.paged_kernels import ENOUGH_THREADGROUPS, PagedKernels, choose_splits
from minivllm.attention.pages import PageTables, PlainPages, QuantizedPages
from minivllm.backend import mx
from minivllm.metal.signature import KernelTexts, make_signature
from tests.metal.paged_case import make_case, quantized


class Recorder:
    """In the place of `mx.fast.metal_kernel`: what each name was given, and zeros for an answer."""

    def __init__(self) -> None:
        self.texts: dict[str, set[object]] = {}

    def __call__(self, *, name: str, **text: Any) -> Any:
        def launch(
            inputs: list[mx.array], template: list[Any], output_dtypes: list[Any], **call: Any
        ) -> list[mx.array]:
            signature = [(array.dtype, array.size < 8) for array in inputs]
            self.texts.setdefault(name, set()).add(repr((text, signature, template, output_dtypes)))
            return [mx.zeros(shape, dtype) for shape, dtype in zip(call["output_shapes"], output_dtypes, strict=True)]

        return launch


def test_a_name_stands_for_one_text_only_and_is_made_of_letters_digits_and_underscores() -> None:
    recorder = Recorder()
    kernels = PagedKernels(recorder)
    dtypes = (mx.float32, mx.bfloat16)
    shapes = itertools.product(dtypes, dtypes, (64, 128), (8, 16), (1, 2), ((1,), (1,) * 9), (1, 2))
    for dtype, page_dtype, head_dim, page_size, kv_heads, lengths, splits in shapes:
        case = make_case(lengths, heads=4, kv_heads=kv_heads, head_dim=head_dim, page_size=page_size, dtype=page_dtype)
        queries = case.query_array.astype(dtype)
        layouts = [case.pages, *(quantized(case, bits, 64)[1] for bits in (4, 8))]
        for pages in layouts:
            kernels.decode(queries, pages, case.page_tables, splits)
            if len(lengths) == 1:
                kernels.prefill(queries, pages, case.page_tables)
    assert all(len(texts) == 1 for texts in recorder.texts.values())
    assert len({text for texts in recorder.texts.values() for text in texts}) == len(recorder.texts)
    assert all(name.replace("_", "").isalnum() and name.isascii() for name in recorder.texts)
    assert len(recorder.texts) > 200


def test_mlx_takes_every_call_and_writes_the_text_that_the_runner_runs(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """MLX writes a kernel's text while it exports a function, without a GPU too."""
    names = []

    def make_kernel(*, name: str, input_names: list[str], output_names: list[str], source: str, header: str) -> Any:
        texts = KernelTexts(name, tuple(input_names), tuple(output_names), source, header, atomic_outputs=False)
        kernel = mx.fast.metal_kernel(name, input_names, output_names, source, header)

        def launch(inputs: list[mx.array], **call: Any) -> list[mx.array]:
            def exported(*arrays: mx.array) -> list[mx.array]:
                return kernel(inputs=list(arrays), verbose=True, **call)

            capfd.readouterr()
            mx.export_function(str(tmp_path / "kernel.mlxfn"), exported, *inputs)
            kinds = [(array.dtype, array.shape) for array in inputs]
            text = make_signature(texts, kinds, call["output_dtypes"], call["template"]).text(texts)
            assert capfd.readouterr().out == f"Generated source code for `{name}`:\n```\n{text}\n```\n"
            names.append(name)
            return [mx.zeros(*kind) for kind in zip(call["output_shapes"], call["output_dtypes"], strict=True)]

        return launch

    kernels = PagedKernels(make_kernel)
    for case in (make_case((1, 40), head_dim=80, dtype=mx.bfloat16), make_case((40,), dtype=mx.float16)):
        kernels.decode(case.query_array, case.pages, case.page_tables, splits=2)
    for pages in (case.pages, quantized(case, 4, 32)[1]):
        kernels.prefill(case.query_array, pages, case.page_tables)
    assert [name.split("_")[1] for name in names] == ["decode", "merge", "decode", "merge", "prefill", "prefill"]


@pytest.mark.parametrize(
    ("table", "num_tokens", "told"),
    [
        ([0, 4], 5, "leaves the pool of 4 pages"),
        ([-1], 1, "leaves the pool of 4 pages"),
        ([0], 5, "5 tokens in a page table of 1 pages"),
        ([0], 0, "0 tokens"),
        ([], 1, "1 tokens in a page table of 0 pages"),
    ],
)
def test_a_table_that_leaves_the_pool_never_reaches_a_kernel(table: list[int], num_tokens: int, told: str) -> None:
    with pytest.raises(IndexError, match=told):
        PageTables([table], [num_tokens], num_pages=4, page_size=4)


def test_an_id_behind_the_last_token_is_not_looked_at() -> None:
    tables = PageTables([[3, 99], [2, 1]], [4, 8], num_pages=4, page_size=4)
    assert tables.ids.tolist() == [[3, 0], [2, 1]]
    assert tables.lengths.tolist() == [4, 8]


def test_what_does_not_fit_together_is_refused_before_a_launch() -> None:
    recorder = Recorder()
    kernels = PagedKernels(recorder)
    case = make_case((5, 6), heads=4, kv_heads=2)
    queries, pages, tables = case.query_array, case.pages, case.page_tables
    with pytest.raises(IndexError, match="1 query rows for 2 page tables"):
        kernels.decode(queries[:1], pages, tables)
    with pytest.raises(ValueError, match="do not fit 2 KV heads of size 64"):
        kernels.decode(queries[:, :3], pages, tables)
    with pytest.raises(IndexError, match="do not fit 16 slots"):
        kernels.decode(queries, PlainPages(pages.keys[:16], pages.values[:16]), tables)
    with pytest.raises(IndexError, match="cannot be the last of"):
        kernels.prefill(queries, pages, tables)
    with pytest.raises(ValueError, match="head size 72"):
        kernels.decode(mx.zeros((1, 1, 72)), PlainPages(*[mx.zeros((32, 1, 72))] * 2), PageTables([[0]], [1], 2, 16))
    with pytest.raises(ValueError, match="not two arrays of one dtype and one shape"):
        PlainPages(mx.zeros((4, 1, 64)), mx.zeros((4, 1, 80)))
    assert not recorder.texts


def test_arrays_that_are_not_what_quantize_gives_are_refused() -> None:
    triple = tuple(mx.quantize(mx.zeros((16, 1, 64)), group_size=32, bits=8))
    QuantizedPages(triple, triple, bits=8, group_size=32)
    for bits, group_size in [(4, 32), (8, 64), (3, 32), (8, 16)]:
        with pytest.raises(ValueError, match=f"bits={bits}"):
            QuantizedPages(triple, triple, bits=bits, group_size=group_size)
    with pytest.raises(ValueError, match="not quantized alike"):
        QuantizedPages(triple, tuple(array[:8] for array in triple), bits=8, group_size=32)


def test_splits_fill_a_gpu_and_none_is_left_without_work() -> None:
    assert choose_splits(threadgroups=9, longest_context=100) == 1
    assert choose_splits(threadgroups=9, longest_context=1024) == 4
    assert choose_splits(threadgroups=9, longest_context=100_000) == ENOUGH_THREADGROUPS // 9
    assert choose_splits(threadgroups=ENOUGH_THREADGROUPS, longest_context=100_000) == 1
