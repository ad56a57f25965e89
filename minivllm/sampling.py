"""From logits to the next token. Greedy ties go to the lowest id, as in `argmax`; everything else is drawn."""

from __future__ import annotations

import numpy as np

from minivllm.config import SamplingParams
from minivllm.request import TokenLogprobs

NUCLEUS_FIRST_LOOK = 1024
"""Tokens that are looked at first for `top_p`; nearly always they hold it."""


class Sampler:
    """Draws the tokens of one request. With a seed the draws depend on nothing but the logits and the seed."""

    def __init__(self, params: SamplingParams) -> None:
        self._params = params
        seed = None if params.seed is None else params.seed % 2**64
        self._generator = np.random.default_rng(seed)

    def sample(self, logits: np.ndarray) -> int:
        """The next token id for float32 logits [vocabulary], which are finite."""
        if self._params.temperature == 0:
            return int(np.argmax(logits))
        with np.errstate(over="ignore"):  # a tiny temperature sends all but the best to minus infinity
            scaled = (logits.astype(np.float64) - logits.max()) / self._params.temperature
        probabilities = _nucleus(_softmax(scaled), self._params.top_p)
        cumulative = np.cumsum(probabilities)
        drawn = np.searchsorted(cumulative, self._generator.random() * cumulative[-1], side="right")
        return int(min(drawn, np.flatnonzero(probabilities)[-1]))


def token_logprobs(logits: np.ndarray, token_id: int, num_alternatives: int) -> TokenLogprobs:
    """The natural log probability of one token and of the `num_alternatives` most probable ones, best first."""
    shifted = logits - logits.max()
    log_total = np.log(np.exp(shifted).sum(dtype=np.float64))
    best = _best_first(shifted, num_alternatives)
    return TokenLogprobs(
        token_id,
        float(shifted[token_id] - log_total),
        tuple((int(i), float(shifted[i] - log_total)) for i in best),
    )


def _best_first(values: np.ndarray, count: int) -> np.ndarray:
    """Indexes of the `count` largest values, the largest first, of equal ones the lowest index first.

    Only what may be among them is sorted: a vocabulary is long, and this runs for every token.
    """
    if count <= 0:
        return np.empty(0, np.int64)
    if count >= len(values):
        return np.argsort(-values, kind="stable")
    smallest_wanted = np.partition(values, len(values) - count)[len(values) - count]
    candidates = np.flatnonzero(values >= smallest_wanted)
    return candidates[np.argsort(-values[candidates], kind="stable")][:count]


def _softmax(scaled: np.ndarray) -> np.ndarray:
    weights = np.exp(scaled)
    result: np.ndarray = weights / weights.sum()
    return result


def _nucleus(probabilities: np.ndarray, top_p: float) -> np.ndarray:
    """Keep the smallest set of most probable tokens whose probability reaches `top_p`; the first is always kept."""
    if top_p >= 1:
        return probabilities
    order = _best_first(probabilities, NUCLEUS_FIRST_LOOK)
    if probabilities[order].sum() < top_p:
        order = _best_first(probabilities, len(probabilities))
    before = np.cumsum(probabilities[order]) - probabilities[order]
    kept = np.zeros_like(probabilities)
    kept[order[before < top_p]] = probabilities[order[before < top_p]]
    return kept
