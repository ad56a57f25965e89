"""`MetalAttention` beside `PortableAttention`, over the same pages and the same plan."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from minivllm import SamplingParams
from minivllm.attention import metal
from minivllm.attention.metal import MetalAttention, parts_of
from minivllm.attention.plan import Plan, make_plan
from minivllm.attention.portable import PortableAttention
from minivllm.backend import mx
from minivllm.cache.kv_format import KVFormat
from minivllm.cache.rows import DTYPES
from minivllm.cache.storage import KVStorage
from minivllm.metal.runner import metal_kernel
from minivllm.request import Request
from minivllm.scheduler import Work
from tests.metal.paged_case import SPEC

pytestmark = pytest.mark.usefixtures("compiler")

PAGE, HEADS, KV_HEADS = 4, 6, 2
# Tokens that are cached, tokens of this step. Decode rows and chunks take turns: the plan puts rows first.
WORK = [(16, 1), (0, 20), (0, 1), (8, 7), (37, 1)]
SHARED = 2  # pages that the last two have in common


def works() -> list[Work]:
    made: list[Work] = []
    free = np.random.default_rng(0).permutation(40).tolist()
    for number, (start, count) in enumerate(WORK):
        request = Request(f"r{number}", [0] * (start + count), SamplingParams(max_tokens=1), None, 0.0)
        common = made[-1].request.page_table[:SHARED] if number == len(WORK) - 1 else []
        needed = -(-(start + count) // PAGE) - len(common)
        request.page_table = [*common, *(free.pop() for _ in range(needed))]
        made.append(Work(request, start, start + count))
    return made


def filled_storage(head_dim: int, kv_dtype: str, work: list[Work]) -> KVStorage:
    """What is cached holds numbers, everything else NaN."""
    spec = dataclasses.replace(SPEC, num_heads=HEADS, num_kv_heads=KV_HEADS, head_dim=head_dim, num_layers=2)
    storage = KVStorage(spec, 40, PAGE, KVFormat(kv_dtype))
    storage.poison(range(40))
    random = np.random.default_rng(1)
    for item in work:
        rows = storage.rows_of(item.request.page_table, item.start)
        for layer in range(2):
            keys, values = (mx.array(random.standard_normal((len(rows), KV_HEADS, head_dim))) for _ in "kv")
            storage.write(layer, mx.array(rows), keys, values)
    return storage


def make_metal(storage: KVStorage) -> MetalAttention:
    return MetalAttention(storage, metal_kernel)


def make_fused(storage: KVStorage) -> PortableAttention:
    """On a CPU the portable path's own products are float32; MLX's fused kernel takes 16 bits too."""
    return PortableAttention(storage, fused=True)


@pytest.mark.parametrize(
    ("head_dim", "kv_dtype", "queries_dtype"),
    [(64, "float32", "float32"), (80, "float16", "float16"), (96, "bfloat16", "float32")],
)
def test_decode_rows_and_chunks_of_one_plan_get_the_answers_of_the_portable_path(
    head_dim: int, kv_dtype: str, queries_dtype: str
) -> None:
    work = works()
    answers = []
    for make in (make_metal, PortableAttention if queries_dtype == "float32" else make_fused):
        storage = filled_storage(head_dim, kv_dtype, work)
        plan = make_plan(work, storage)
        attend = make(storage)
        answers.append([attend(layer, *rows_of_step(plan, head_dim, queries_dtype), plan) for layer in range(2)])
        assert str(answers[-1][0].dtype).endswith(queries_dtype)
    tolerance = 1e-5 if queries_dtype == "float32" else 2e-3
    for kernel, portable in zip(*answers, strict=True):
        assert kernel.shape == portable.shape == (3 + 27, HEADS, head_dim)
        assert float(mx.abs(kernel.astype(mx.float32) - portable.astype(mx.float32)).max()) < tolerance


def rows_of_step(plan: Plan, head_dim: int, dtype: str) -> tuple[mx.array, mx.array, mx.array]:
    """Queries, keys and values of a step: views, as a model's projections are."""
    count = plan.positions.size
    together = np.random.default_rng(2).standard_normal((count, HEADS + 2 * KV_HEADS, head_dim))
    rows = mx.array(together.astype(np.float32)).astype(DTYPES[dtype])
    return rows[:, :HEADS], rows[:, HEADS : HEADS + KV_HEADS], rows[:, HEADS + KV_HEADS :]


def test_rows_and_short_chunks_are_attended_row_by_row_and_a_long_chunk_in_tiles() -> None:
    work = works()
    plan = make_plan(work, filled_storage(64, "float32", work))
    parts = parts_of(plan, filled_storage(64, "float32", work))
    assert [(part.rows.start, part.rows.stop, part.is_chunk) for part in parts] == [
        (0, 3, False), (3, 23, True), (23, 30, False),
    ]  # fmt: skip
    assert [list(part.tables.num_tokens) for part in parts] == [[17, 1, 38], [20], list(range(9, 16))]


def test_the_tables_of_a_plan_are_made_once_and_used_by_every_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    work = works()
    storage = filled_storage(64, "float32", work)
    attend = MetalAttention(storage, metal_kernel)
    made: list[Plan] = []
    monkeypatch.setattr(metal, "parts_of", lambda plan, storage: made.append(plan) or parts_of(plan, storage))
    plans = [make_plan(work, storage) for _ in range(2)]
    for plan in plans:
        for layer in range(2):
            attend(layer, *rows_of_step(plan, 64, "float32"), plan)
    assert made == plans
