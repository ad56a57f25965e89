"""Keys and values as the engine stores them: one row for each token in every layer, read from the pages of a prompt."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from minivllm import LLM

ROUNDING = 1e-6
"""What rounding alone makes of a row of float32, as a share of its size; of 16-bit numbers a thousand times that."""

_BEYOND_ROUNDING = 10


def stored_rows(llm: LLM, token_ids: Sequence[int]) -> list[np.ndarray]:
    """One array for each layer, float32 [tokens in cached whole pages, numbers in one token's key and value].

    Raises LookupError when the prompt has no page in the cache.
    """
    storage, index = llm.engine.storage, llm.engine.manager.index
    page_ids = index.lookup(list(token_ids), len(token_ids) // storage.page_size, None)
    if not page_ids:
        raise LookupError("this prompt has no page in the cache: run it first")
    pages = [storage.page_arrays(page_id) for page_id in page_ids]
    return [np.concatenate([_of_page(*page[layer]) for page in pages]) for layer in range(len(pages[0]))]


def row_differences(one: Sequence[np.ndarray], other: Sequence[np.ndarray]) -> np.ndarray:
    """How much each row differs, as a share of its size: float32 [layers, tokens that both have]. 0 is equal."""
    num_tokens = min(len(one[0]), len(other[0]))
    first, second = (np.stack([layer[:num_tokens] for layer in rows]) for rows in (one, other))
    size = np.linalg.norm(first, axis=-1)
    return np.asarray(np.linalg.norm(first - second, axis=-1) / np.where(size > 0, size, 1))


def where_it_differs(differences: np.ndarray, rounding: float = ROUNDING) -> str:
    """One token's differences [layers] in words: "nowhere", "from layer 1 on", or the layers when there are gaps.

    `rounding` is the largest difference between rows that ought to be equal; ten times that counts as a difference.
    """
    beyond = _BEYOND_ROUNDING * max(rounding, ROUNDING)
    layers = [int(layer) for layer in np.flatnonzero(differences > beyond)]
    if not layers:
        return "nowhere"
    if layers == list(range(layers[0], len(differences))):
        return f"from layer {layers[0]} on"
    return f"in layers {', '.join(map(str, layers))}"


def _of_page(keys: np.ndarray, values: np.ndarray) -> np.ndarray:
    return np.concatenate([part.reshape(len(part), -1) for part in (keys, values)], axis=1)
