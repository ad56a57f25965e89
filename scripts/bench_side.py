"""One side of `make bench`, in a process of its own: times one engine and prints its numbers as one JSON line.

Sides: `minivllm`; `mlx_lm` as installed; `mlx_lm-blas`, which is mlx_lm with the same BLAS and dequantized weights.
All three read the same model folder and get the same random token ids.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

SIDES = ("minivllm", "mlx_lm", "mlx_lm-blas")


class Side(Protocol):
    """Seconds of one cold prefill, of decoding, and of a first token behind a known prefix."""

    def prefill_s(self, prompt: list[int]) -> float: ...

    def decode_s(self, prompts: list[list[int]], num_tokens: int) -> float:
        """Seconds for `num_tokens` tokens of each sequence, the prompts not counted."""
        ...

    def remember(self, prompt: list[int]) -> None:
        """Compute the prompt once, so that it is in the cache."""
        ...

    def warm_ttft_s(self, prompt: list[int]) -> float: ...


class MiniVllm:
    def __init__(self, model: str) -> None:
        from minivllm import LLM, EngineConfig, SamplingParams

        self._sampling = SamplingParams
        self._llm = LLM(model, EngineConfig(num_pages=256))

    def prefill_s(self, prompt: list[int]) -> float:
        self._llm.reset_prefix_cache()
        return self.warm_ttft_s(prompt)

    def remember(self, prompt: list[int]) -> None:
        self.warm_ttft_s(prompt)

    def decode_s(self, prompts: list[list[int]], num_tokens: int) -> float:
        params = self._sampling(max_tokens=num_tokens + 1, temperature=0.0, ignore_eos=True)
        ids = [self._llm.engine.add_request(prompt, params) for prompt in prompts]
        while any(request.is_prefilling for request in self._llm.engine.requests):
            self._llm.engine.step()
        num_left = sum(request.params.max_tokens - request.num_output_tokens for request in self._llm.engine.requests)
        start_s = time.perf_counter()
        while self._llm.engine.has_unfinished_requests:
            self._llm.engine.step()
        return (time.perf_counter() - start_s) * num_tokens * len(ids) / num_left

    def warm_ttft_s(self, prompt: list[int]) -> float:
        output = self._llm.generate([prompt], self._sampling(max_tokens=1, temperature=0.0, ignore_eos=True))[0]
        return float(output.metrics.ttft_s or 0.0)


class MlxLm:
    def __init__(self, model: str, same_blas: bool) -> None:
        folder = _folder(model)
        if same_blas:
            from minivllm.blas import load_blas

            load_blas()
        import mlx.core as mx
        from mlx_lm.utils import dequantize_model, load_model

        self._mx = mx
        self._cache: Any = None
        self._cached_prompt: list[int] = []
        self._model: Any = load_model(folder)[0]
        if same_blas:
            self._model = dequantize_model(self._model)
            self._model.set_dtype(mx.float32)
            mx.eval(self._model.parameters())

    def prefill_s(self, prompt: list[int]) -> float:
        self._cache, self._cached_prompt = self._new_cache(), prompt
        return self._first_token_s(prompt, self._cache)

    def decode_s(self, prompts: list[list[int]], num_tokens: int) -> float:
        if len(prompts) == 1:
            return self._decode_one_s(prompts[0], num_tokens)
        from mlx_lm.generate import BatchGenerator

        generator = BatchGenerator(self._model, max_tokens=num_tokens + 8, completion_batch_size=len(prompts))
        generator.insert(prompts)
        steps = (len(responses) for responses in iter(lambda: generator.next_generated(), []))
        next(steps)
        start_s = time.perf_counter()
        num_generated = sum(count for count, _ in zip(steps, range(num_tokens), strict=False))
        return (time.perf_counter() - start_s) * num_tokens * len(prompts) / num_generated

    def remember(self, prompt: list[int]) -> None:
        if self._cached_prompt != prompt:
            self.prefill_s(prompt)

    def warm_ttft_s(self, prompt: list[int]) -> float:
        """The last token behind a cache of all others, as mlx_lm's server keeps them."""
        from mlx_lm.models.cache import trim_prompt_cache

        trim_prompt_cache(self._cache, self._cache[0].offset - (len(prompt) - 1))
        return self._first_token_s(prompt[-1:], self._cache)

    def _decode_one_s(self, prompt: list[int], num_tokens: int) -> float:
        tokens = self._tokens(prompt, num_tokens + 1, self._new_cache())
        next(tokens)
        start_s = time.perf_counter()
        for _ in tokens:
            pass
        return time.perf_counter() - start_s

    def _first_token_s(self, prompt: list[int], cache: Any) -> float:
        start_s = time.perf_counter()
        next(self._tokens(prompt, 1, cache))
        return time.perf_counter() - start_s

    def _tokens(self, prompt: list[int], max_tokens: int, cache: Any) -> Iterator[int]:
        from mlx_lm.generate import generate_step

        for token, _ in generate_step(self._mx.array(prompt), self._model, max_tokens=max_tokens, prompt_cache=cache):
            yield int(token)

    def _new_cache(self) -> Any:
        from mlx_lm.models.cache import make_prompt_cache

        return make_prompt_cache(self._model)


def _folder(model: str) -> Path:
    from minivllm.models.registry import resolve

    return resolve(model)


def measure(side: Side, sizes: argparse.Namespace) -> dict[str, Any]:
    """Every figure as a list, one value per repeat, after one discarded pass of the same kind, if there is time."""
    prompts = _Prompts(vocab_size=json.loads((_folder(sizes.model) / "config.json").read_text())["vocab_size"])

    def repeated(run: Callable[[], float]) -> list[float]:
        if not sizes.no_warm_up:
            run()
        return [run() for _ in range(sizes.repeats)]

    figures: dict[str, list[float]] = {}
    for length in sizes.prefill:
        figures[f"prefill_{length}"] = [
            length / s
            for s in repeated(lambda length=length: side.prefill_s(prompts.one(length)))  # type: ignore[misc]
        ]
    for count in (1, 8):
        seconds = repeated(lambda count=count: side.decode_s(prompts.many(count, 32), sizes.decode))  # type: ignore[misc]
        figures[f"decode_{count}"] = [count * sizes.decode / s for s in seconds]
    long_prompts = prompts.many(sizes.repeats, sizes.ttft)
    figures["cold_ttft_s"] = [side.prefill_s(prompt) for prompt in long_prompts]
    side.remember(long_prompts[-1])
    figures["warm_ttft_s"] = repeated(lambda: side.warm_ttft_s(long_prompts[-1]))
    return {"figures": figures, "peak_memory_mb": _peak_memory_mb()}


class _Prompts:
    """Random token ids, the same on every side."""

    def __init__(self, vocab_size: int) -> None:
        self._random = random.Random(7)
        self._vocab_size = vocab_size

    def one(self, length: int) -> list[int]:
        return [self._random.randrange(100, self._vocab_size) for _ in range(length)]

    def many(self, count: int, length: int) -> list[list[int]]:
        return [self.one(length) for _ in range(count)]


def _peak_memory_mb() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", choices=SIDES, required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--prefill", type=int, nargs="+", required=True, help="prompt lengths in tokens")
    parser.add_argument("--decode", type=int, required=True, help="tokens to decode per sequence")
    parser.add_argument("--ttft", type=int, required=True, help="prompt length in tokens for cold and warm")
    parser.add_argument("--repeats", type=int, required=True)
    parser.add_argument("--no-warm-up", action="store_true", help="no discarded pass before the repeats")
    options = parser.parse_args()
    if options.side == "minivllm":
        side: Side = MiniVllm(options.model)
    else:
        side = MlxLm(options.model, same_blas=options.side == "mlx_lm-blas")
    print(json.dumps(measure(side, options)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
