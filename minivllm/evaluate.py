"""What quantized keys and values cost: one function per measurement, always against full precision on the same tokens.

A smaller cache changes what the model says. How much, is a matter of the model and the text, so nothing here gives a
verdict: each function gives a number with its unit, and the memory it buys is never shown without them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from minivllm.backend import mx
from minivllm.cache.kv_format import KVFormat
from minivllm.cache.rows import QuantizedRows
from minivllm.config import SamplingParams
from minivllm.llm import LLM

FACT = "The number of the {thing} box is {number}."
ASK = " As was said before, the number of the {thing} box is"
THINGS = ("green", "iron", "round", "heavy", "paper")
BLOCK_ROWS = 64


@dataclass(frozen=True, slots=True)
class Divergence:
    """Of next-token distributions, over all positions. KL(full || quantized) in nats; shares between 0 and 1."""

    mean_kl_nats: float
    p99_kl_nats: float
    same_top_share: float
    num_positions: int


@dataclass(frozen=True, slots=True)
class Perplexity:
    full: float
    quantized: float
    num_tokens: int

    @property
    def relative_difference(self) -> float:
        return self.quantized / self.full - 1


@dataclass(frozen=True, slots=True)
class LayerError:
    """Root mean square of the rounding error over that of the values themselves; 0.01 is one percent."""

    layer: int
    keys: float
    values: float


@dataclass(frozen=True, slots=True)
class Speed:
    """Tokens per second: median of the repeats, with the slowest and the fastest."""

    prefill: tuple[float, float, float]
    decode: tuple[float, float, float]
    num_prompt_tokens: int
    num_output_tokens: int


@dataclass(frozen=True, slots=True)
class Quality:
    divergence: Divergence
    perplexity: Perplexity


def quality(
    full: LLM, others: Mapping[str, LLM], windows: Sequence[Sequence[int]], progress: Callable[[], None] = lambda: None
) -> dict[str, Quality]:
    """Divergence and perplexity of several engines on the same text; full precision is computed once.

    `progress` is called after each window.
    """
    seen: dict[str, list[tuple[np.ndarray, np.ndarray, np.ndarray]]] = {name: [] for name in others}
    exact_losses = []
    for window in windows:
        exact = full.logits(window, use_cache=False)
        exact_losses.append(losses(exact, window))
        for name, llm in others.items():
            rounded = llm.logits(window, use_cache=False)
            same = exact.argmax(axis=-1) == rounded.argmax(axis=-1)
            seen[name].append((kl_divergence(exact, rounded), same, losses(rounded, window)))
        progress()
    return {name: _quality_from(exact_losses, rows) for name, rows in seen.items()}


def kl_divergence(full: np.ndarray, quantized: np.ndarray) -> np.ndarray:
    """KL(full || quantized) in nats of each position, from logits [positions, vocabulary]; float64 [positions]."""
    blocks = []
    for first in range(0, len(full), BLOCK_ROWS):  # a vocabulary of float64 is large
        log_p = _log_softmax(full[first : first + BLOCK_ROWS])
        log_q = _log_softmax(quantized[first : first + BLOCK_ROWS])
        blocks.append((np.exp(log_p) * (log_p - log_q)).sum(axis=-1))
    return np.concatenate(blocks)


def losses(logits: np.ndarray, token_ids: Sequence[int]) -> np.ndarray:
    """Negative log likelihood in nats of each token behind the first; exp of their mean is the perplexity."""
    blocks = []
    for first in range(0, len(token_ids) - 1, BLOCK_ROWS):
        targets = np.asarray(token_ids[first + 1 : first + 1 + BLOCK_ROWS])
        log_p = _log_softmax(logits[first : first + len(targets)])
        blocks.append(-log_p[np.arange(len(targets)), targets])
    return np.concatenate(blocks)


def _quality_from(exact_losses: list[np.ndarray], rows: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> Quality:
    kl, same, rounded_losses = (np.concatenate(parts) for parts in zip(*rows, strict=True))
    full = np.concatenate(exact_losses)
    return Quality(
        Divergence(float(kl.mean()), float(np.percentile(kl, 99)), float(same.mean()), len(kl)),
        Perplexity(float(np.exp(full.mean())), float(np.exp(rounded_losses.mean())), len(full)),
    )


def greedy_agreement(full: LLM, quantized: LLM, prompts: Sequence[Sequence[int]], max_tokens: int = 32) -> float:
    """Share of generated tokens before the first one that differs: 1.0 when all answers are equal throughout."""
    params = SamplingParams(max_tokens=max_tokens, temperature=0.0, ignore_eos=True)
    answers = [[output.token_ids for output in llm.generate(list(prompts), params)] for llm in (full, quantized)]
    equal = [_equal_length(one, other) for one, other in zip(*answers, strict=True)]
    return sum(equal) / (max_tokens * len(prompts))


def planted_facts(
    llm: LLM, filler: Sequence[int], depths: Sequence[float], context_tokens: int
) -> dict[float, tuple[int, int]]:
    """For each depth (0 is the beginning): of how many planted numbers the model finds how many, greedily.

    A number stands once in `context_tokens` tokens of filler, and the text ends by asking for it.
    """
    params = SamplingParams(max_tokens=8, temperature=0.0, ignore_eos=True)
    found = {}
    for place, depth in enumerate(depths):
        asked = [_question(llm, filler, depth, context_tokens, thing, place) for thing in range(len(THINGS))]
        outputs = llm.generate([prompt for prompt, _ in asked], params)
        hits = [output.text.strip().startswith(number) for output, (_, number) in zip(outputs, asked, strict=True)]
        found[depth] = (sum(hits), len(hits))
    return found


def layer_errors(full: LLM, token_ids: Sequence[int], kv_format: KVFormat) -> list[LayerError]:
    """What rounding does to each layer's keys and values of these tokens, as full precision computed them."""
    page_arrays = _pages_of(full, token_ids)
    errors = []
    for layer in range(full.engine.spec.num_layers):
        keys = np.concatenate([page[layer][0] for page in page_arrays])
        values = np.concatenate([page[layer][1] for page in page_arrays])
        errors.append(LayerError(layer, _rounding_error(keys, kv_format), _rounding_error(values, kv_format)))
    return errors


def speed(llm: LLM, token_ids: Sequence[int], max_tokens: int = 16, repeats: int = 3) -> Speed:
    """Cold prefill and decode of one request; the cache is emptied between the repeats."""
    params = SamplingParams(max_tokens=max_tokens, temperature=0.0, ignore_eos=True)
    prefill, decode = [], []
    for _ in range(repeats):
        llm.reset_prefix_cache()
        started = time.perf_counter()
        (output,) = llm.generate([token_ids], params)
        whole_s = time.perf_counter() - started
        assert output.metrics.ttft_s is not None
        prefill.append(len(token_ids) / output.metrics.ttft_s)
        decode.append((max_tokens - 1) / max(whole_s - output.metrics.ttft_s, 1e-9))
    return Speed(_spread(prefill), _spread(decode), len(token_ids), max_tokens)


def bytes_of(llm: LLM) -> dict[str, int]:
    """Bytes of a token and of a page behind the head, and how many pages the pool has."""
    layout = llm.engine.layout
    return {
        "bytes_per_token": layout.bytes_per_page // layout.page_size,
        "bytes_per_page": layout.bytes_per_page,
        "num_pages": layout.num_pages,
    }


def windows_of(token_ids: Sequence[int], window_tokens: int) -> list[list[int]]:
    """The text in consecutive windows; a rest of fewer than two tokens is left out."""
    windows = [list(token_ids[first : first + window_tokens]) for first in range(0, len(token_ids), window_tokens)]
    return [window for window in windows if len(window) > 1]


def _question(
    llm: LLM, filler: Sequence[int], depth: float, context_tokens: int, thing: int, place: int
) -> tuple[list[int], str]:
    """The tokens of a text that plants a number and asks for it, and the number."""
    number = str(1009 + 977 * thing + 101 * place)
    fact = llm.tokenizer.encode(" " + FACT.format(thing=THINGS[thing], number=number))
    ask = llm.tokenizer.encode(ASK.format(thing=THINGS[thing]))
    around = list(filler[: context_tokens - len(fact) - len(ask)])
    cut = round(len(around) * depth)
    return [*around[:cut], *fact, *around[cut:], *ask], number


def _pages_of(llm: LLM, token_ids: Sequence[int]) -> list[list[tuple[np.ndarray, np.ndarray]]]:
    llm.generate([list(token_ids)], SamplingParams(max_tokens=1, temperature=0.0, ignore_eos=True))
    index = llm.engine.manager.index
    pages = index.lookup(token_ids, len(token_ids) // llm.engine.page_size, None)
    return [llm.engine.storage.page_arrays(page_id) for page_id in pages]


def _rounding_error(exact: np.ndarray, kv_format: KVFormat) -> float:
    rows = QuantizedRows(len(exact), exact.shape[1], exact.shape[2], kv_format)
    places = mx.arange(len(exact))
    rows.write(places, mx.array(exact))
    rounded = np.array(rows.read(places).astype(mx.float32))
    return float(np.sqrt(((rounded - exact) ** 2).mean() / (exact**2).mean()))


def _log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits.astype(np.float64) - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def _equal_length(one: Sequence[int], other: Sequence[int]) -> int:
    return next((place for place, (a, b) in enumerate(zip(one, other, strict=True)) if a != b), len(one))


def _spread(values: Sequence[float]) -> tuple[float, float, float]:
    return median(values), min(values), max(values)
