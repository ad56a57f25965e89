"""Launches the kernels of minivllm/metal/paged_attention.metal: their names, constants, grids and splits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from minivllm.attention.pages import Pages, PageTables
from minivllm.backend import mx
from minivllm.metal.source import sections

MakeKernel = Callable[..., Any]
"""`mx.fast.metal_kernel`, or the runner that takes its place where there is no GPU."""

HEAD_SIZES = (32, 64, 80, 96, 128)
LANES = 32  # threads of a SIMD group, on every Apple GPU
SIMD_GROUPS = 4
QUERIES_PER_GROUP = 4  # queries of a prefill tile that one SIMD group keeps in registers
ENOUGH_THREADGROUPS = 256
"""Splits are added up to here: several threadgroups for each of an Apple GPU's 8 to 80 cores. Not measured yet."""
LEAST_TOKENS_PER_GROUP = 64  # a SIMD group with less to do than this is not worth a split


class PagedKernels:
    """Attention of queries [rows, heads, head_dim] over pages; answers have the shape and dtype of the queries.

    A kernel is looked up by its name, in MLX and in the runner, so a name holds everything its text depends on. That
    includes whether an array is small: MLX puts arrays below 8 elements into another address space.
    """

    def __init__(self, make_kernel: MakeKernel) -> None:
        self._make_kernel = make_kernel
        self._kernels: dict[str, Callable[..., list[mx.array]]] = {}

    def decode(self, queries: mx.array, pages: Pages, tables: PageTables, splits: int | None = None) -> mx.array:
        """Row i sees the first `tables.num_tokens[i]` tokens of table i. `splits` is chosen when it is not given."""
        rows, heads, head_dim = _check(queries, pages, tables)
        if rows != len(tables.tables):
            raise IndexError(f"{rows} query rows for {len(tables.tables)} page tables: give one for each row")
        splits = splits or choose_splits(rows * heads, tables.longest * tables.page_size)
        dtype = queries.dtype if splits == 1 else mx.float32
        out, log_totals = self._launch(
            "decode",
            {"queries": queries, **pages.arrays, "page_tables": tables.ids, "context_lengths": tables.lengths},
            {**_constants(queries, pages, tables), "SIMD_GROUPS": SIMD_GROUPS},
            {"out": ((splits, rows, heads, head_dim), dtype), "log_totals": ((splits, rows, heads), mx.float32)},
            threadgroups=(heads, rows, splits),
            simd_groups=SIMD_GROUPS,
        )
        if splits == 1:
            return out[0]
        return self._launch(
            "merge",
            {"partial": out, "log_totals": log_totals},
            {"HEADS": heads, "HEAD_SIZE": head_dim},
            {"out": (queries.shape, queries.dtype)},
            threadgroups=(heads, rows, 1),
            simd_groups=1,
        )[0]

    def prefill(self, queries: mx.array, pages: Pages, table: PageTables) -> mx.array:
        """The last rows of one sequence: the last row sees all its tokens, each row before it one less."""
        rows, heads, _ = _check(queries, pages, table)
        if len(table.tables) != 1 or rows > table.num_tokens[0]:
            raise IndexError(f"{rows} query rows cannot be the last of sequences of {list(table.num_tokens)} tokens")
        queries_of_head = rows * heads // pages.num_kv_heads
        return self._launch(
            "prefill",
            {"queries": queries, **pages.arrays, "page_tables": table.ids, "context_lengths": table.lengths},
            {
                **_constants(queries, pages, table),
                "SIMD_GROUPS": SIMD_GROUPS,
                "QUERIES_PER_GROUP": QUERIES_PER_GROUP,
            },
            {"out": (queries.shape, queries.dtype)},
            threadgroups=(pages.num_kv_heads, -(-queries_of_head // (SIMD_GROUPS * QUERIES_PER_GROUP)), 1),
            simd_groups=SIMD_GROUPS,
        )[0]

    def _launch(
        self,
        body: str,
        inputs: Mapping[str, mx.array],
        constants: Mapping[str, int],
        outputs: Mapping[str, tuple[tuple[int, ...], mx.Dtype]],
        *,
        threadgroups: tuple[int, int, int],
        simd_groups: int,
    ) -> list[mx.array]:
        dtypes = [dtype for _, dtype in outputs.values()]
        name = kernel_name(body, inputs, constants, dtypes)
        if name not in self._kernels:
            self._kernels[name] = self._make_kernel(
                name=name, input_names=list(inputs), output_names=list(outputs), **kernel_text(body, constants)
            )
        threads = simd_groups * LANES
        across, *rest = threadgroups
        return self._kernels[name](
            inputs=list(inputs.values()),
            template=[("T", dtypes[0]), *constants.items()],
            grid=(across * threads, *rest),
            threadgroup=(threads, 1, 1),
            output_shapes=[shape for shape, _ in outputs.values()],
            output_dtypes=dtypes,
        )


def kernel_text(body: str, constants: Mapping[str, int]) -> dict[str, str]:
    """`source` and `header` of a kernel: "decode", "merge" or "prefill"."""
    parts = sections("paged_attention.metal")
    layout = "quantized" if "BITS" in constants else "plain"
    return {"source": parts[f"body: {body}"], "header": parts["header"] + parts[f"header: {layout}"]}


def kernel_name(body: str, inputs: Mapping[str, mx.array], constants: Mapping[str, int], dtypes: list[mx.Dtype]) -> str:
    """Everything a kernel's text depends on, in letters, digits and underscores."""
    words = [f"paged_{body}"]
    words += [f"{constant.lower()}{value}" for constant, value in constants.items()]
    words += [_plain(array.dtype) + ("_small" if array.size < 8 else "") for array in inputs.values()]
    words += ["to", *(_plain(dtype) for dtype in dtypes)]
    return "_".join(words)


def choose_splits(threadgroups: int, longest_context: int) -> int:
    """How many threadgroups share the context of one row and head, so that there are enough of them for the GPU."""
    most = longest_context // (SIMD_GROUPS * LEAST_TOKENS_PER_GROUP)
    return max(1, min(most, ENOUGH_THREADGROUPS // threadgroups))


def _constants(queries: mx.array, pages: Pages, tables: PageTables) -> dict[str, int]:
    return {
        "HEADS": queries.shape[1],
        "KV_HEADS": pages.num_kv_heads,
        "HEAD_SIZE": pages.head_dim,
        "PAGE_SIZE": tables.page_size,
        **pages.constants,
    }


def _check(queries: mx.array, pages: Pages, tables: PageTables) -> tuple[int, int, int]:
    """Rows, heads and head size of the queries, which must fit the pages; the tables must fit them too."""
    if queries.ndim != 3 or queries.shape[2] != pages.head_dim or queries.shape[1] % pages.num_kv_heads:
        raise ValueError(
            f"queries {queries.shape} do not fit {pages.num_kv_heads} KV heads of size {pages.head_dim}: "
            "they are [rows, heads, head_dim], heads a multiple of the KV heads"
        )
    if pages.head_dim not in HEAD_SIZES:
        raise ValueError(f"head size {pages.head_dim} is not one of {', '.join(map(str, HEAD_SIZES))}")
    if tables.num_pages * tables.page_size > pages.num_slots:
        raise IndexError(
            f"page tables of a pool of {tables.num_pages} pages of {tables.page_size} tokens do not fit "
            f"{pages.num_slots} slots"
        )
    rows, heads, head_dim = queries.shape
    return rows, heads, head_dim


def _plain(dtype: mx.Dtype) -> str:
    return str(dtype).rpartition(".")[2]
