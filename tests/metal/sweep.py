"""Every combination of the paged kernels' variants, in one process: `python -m tests.metal.sweep`. Takes minutes.

On the GPU of the machine, else in the runner. Prints the largest error of each group against the formula in float64,
and fails when one is above its tolerance. Quantized pages take 3 query heads for each KV head.
"""

from __future__ import annotations

import itertools
import sys

from tqdm import tqdm

from minivllm.attention.paged_kernels import HEAD_SIZES, PagedKernels
from minivllm.backend import mx
from tests.metal.paged_case import KERNEL_MAKERS, Case, largest_error, make_case, quantized

LENGTHS = (1, 15, 16, 17, 255, 256, 257, 1000)
DTYPES = {"float32": (mx.float32, 1e-5), "float16": (mx.float16, 2e-3), "bfloat16": (mx.bfloat16, 2e-2)}
QUERIES_PER_KV, ROWS, PREFIXES = (1, 3, 8), (1, 7, 64), (16, 255)
LAYOUTS = ("plain", *((bits, group) for bits in (8, 4) for group in (32, 64, 128)))


def main() -> int:
    maker = list(KERNEL_MAKERS)[-1]
    print(f"the kernels run on: {maker}", flush=True)
    kernels = PagedKernels(KERNEL_MAKERS[maker])
    names = list(itertools.product(LAYOUTS, DTYPES, HEAD_SIZES))
    lines = []
    for layout, dtype, head_dim in tqdm(names, disable=not sys.stderr.isatty()):
        if layout != "plain" and head_dim % layout[1]:
            continue
        _, tolerance = DTYPES[dtype]
        queries_per_kv = QUERIES_PER_KV if layout == "plain" else (3,)
        decode = max(decode_error(kernels, head_dim, dtype, layout, queries) for queries in queries_per_kv)
        chunks = itertools.product(queries_per_kv, ROWS, PREFIXES)
        prefill = max(prefill_error(kernels, head_dim, dtype, layout, *chunk) for chunk in chunks)
        is_right = decode < tolerance and prefill < tolerance
        told = layout if layout == "plain" else f"{layout[0]} bits in groups of {layout[1]}"
        lines.append((is_right, f"{head_dim:4} {dtype:9} {told:25} decode {decode:.1e}  prefill {prefill:.1e}"))
        print(lines[-1][1], "" if is_right else f"ABOVE {tolerance}", flush=True)
    return 0 if all(is_right for is_right, _ in lines) else 1


def decode_error(kernels: PagedKernels, head_dim: int, dtype: str, layout: object, queries_per_kv: int) -> float:
    case = make_case(LENGTHS, heads=queries_per_kv, head_dim=head_dim, dtype=DTYPES[dtype][0])
    case, pages = laid_out(case, layout)
    return largest_error(kernels.decode(case.query_array, pages, case.page_tables), case)


def prefill_error(
    kernels: PagedKernels, head_dim: int, dtype: str, layout: object, queries_per_kv: int, rows: int, prefix: int
) -> float:
    case = make_case((prefix + rows,), rows=rows, heads=queries_per_kv, head_dim=head_dim, dtype=DTYPES[dtype][0])
    case, pages = laid_out(case, layout)
    return largest_error(kernels.prefill(case.query_array, pages, case.page_tables), case)


def laid_out(case: Case, layout: object) -> tuple[Case, object]:
    return (case, case.pages) if layout == "plain" else quantized(case, *layout)


if __name__ == "__main__":
    sys.exit(main())
