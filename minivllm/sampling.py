"""From logits to the next token. Greedy ties go to the lowest id, as in `argmax`; everything else is drawn."""

from __future__ import annotations

import numpy as np

from minivllm.config import SamplingParams
from minivllm.request import TokenLogprobs


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


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Natural log probabilities, float64 [..., vocabulary]."""
    shifted = logits.astype(np.float64) - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def token_logprobs(logits: np.ndarray, token_id: int, num_alternatives: int) -> TokenLogprobs:
    """The log probability of one token and of the `num_alternatives` most probable ones, best first."""
    logprobs = log_softmax(logits)
    best = np.argsort(-logprobs, kind="stable")[:num_alternatives]
    return TokenLogprobs(token_id, float(logprobs[token_id]), tuple((int(i), float(logprobs[i])) for i in best))


def _softmax(scaled: np.ndarray) -> np.ndarray:
    weights = np.exp(scaled)
    result: np.ndarray = weights / weights.sum()
    return result


def _nucleus(probabilities: np.ndarray, top_p: float) -> np.ndarray:
    """Keep the smallest set of most probable tokens whose probability reaches `top_p`; the first is always kept."""
    if top_p >= 1:
        return probabilities
    order = np.argsort(-probabilities, kind="stable")
    before = np.cumsum(probabilities[order]) - probabilities[order]
    kept = np.zeros_like(probabilities)
    kept[order[before < top_p]] = probabilities[order[before < top_p]]
    return kept
