"""Whether keys and values were made of the tokens that somebody says they were made of."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from minivllm.backend import mx
from minivllm.cache.sequence_storage import put_in
from minivllm.cache.slot_errors import SlotFileError
from minivllm.request import Request
from minivllm.scheduler import Work
from minivllm.slots import StoredSequence

if TYPE_CHECKING:
    from minivllm.engine import Engine

TOLERANCES = {mx.float32: 0.01, mx.float16: 0.03, mx.bfloat16: 0.06, 8: 0.06, 4: 0.4}
"""Largest difference of one position's keys or values, relative to their length, by number format or bits. Rounding to
4 bits was measured at 0.15 at most; another token differs by 1 and more."""


@dataclass(frozen=True, slots=True)
class Claim:
    sequence: StoredSequence
    tolerance: float
    num_samples: int


def check_claim(engine: Engine, request: Request, claim: Claim) -> None:
    """Raise `SlotFileError` unless the pages of this request hold what its tokens give.

    In the first layer keys and values depend on the token and its place alone, so all positions are compared. Deeper
    layers depend on everything before: samples, drawn anew each time, are computed again over what the pages hold.
    What is between the samples, in the deeper layers, is taken on trust.
    """
    num_tokens = len(request.token_ids)
    for start in range(0, num_tokens, engine.config.max_batched_tokens):
        positions = np.arange(start, min(start + engine.config.max_batched_tokens, num_tokens))
        stored = _stored(engine, request, positions, 1)
        work = Work(request, int(positions[0]), int(positions[-1]) + 1)
        _compare(stored, engine.runner.keys_and_values([work], 1), positions, claim)
    drawn = random.SystemRandom().sample(range(num_tokens), min(claim.num_samples, num_tokens))
    samples = np.array(sorted({0, num_tokens - 1, *drawn}))
    num_layers = engine.spec.num_layers
    stored = _stored(engine, request, samples, num_layers)
    try:
        work_of_samples = [Work(request, int(at), int(at) + 1) for at in samples]
        _compare(stored, engine.runner.keys_and_values(work_of_samples, num_layers), samples, claim)
    finally:  # computing wrote what it computed; the pages shall hold what the file held
        put_in(engine.storage, request.page_table, num_tokens, claim.sequence.arrays)


Pairs = list[tuple[mx.array, mx.array]]


def _stored(engine: Engine, request: Request, positions: np.ndarray, num_layers: int) -> Pairs:
    rows = mx.array(engine.storage.rows_of(request.page_table, len(request.token_ids))[positions])
    columns = engine.layout.kv_format.head_pages * engine.page_size  # of no use behind a head in full precision
    found = [
        (engine.storage.read_keys(layer, rows, columns), engine.storage.read_values(layer, rows, columns))
        for layer in range(num_layers)
    ]
    mx.eval(found)
    return found


def _compare(stored: Pairs, computed: Pairs, positions: np.ndarray, claim: Claim) -> None:
    for layer, kind, differences in _differences(stored, computed):
        worst = int(differences.argmax())
        if not differences[worst] <= claim.tolerance:
            raise SlotFileError(
                f"the file was not made of this text by this model: the {kind} of position {positions[worst]} in layer "
                f"{layer} differ by {differences[worst]:.2f} of their length, allowed are {claim.tolerance}"
            )


def _differences(stored: Pairs, computed: Pairs) -> Iterator[tuple[int, str, np.ndarray]]:
    """float [positions] for keys and values of each layer: the length of the difference over that of the vector."""
    for layer, both in enumerate(zip(stored, computed, strict=True)):
        for kind, theirs, ours in zip(("keys", "values"), *both, strict=True):
            one, other = (np.array(part.astype(mx.float32)).reshape(len(part), -1) for part in (theirs, ours))
            lengths = np.maximum(np.linalg.norm(other, axis=1), np.finfo(np.float32).tiny)
            yield layer, kind, np.linalg.norm(one - other, axis=1) / lengths
