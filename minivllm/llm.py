"""LLM: offline, batched generation and logits. What a notebook calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from minivllm.config import EngineConfig, SamplingParams
from minivllm.engine import Engine
from minivllm.models.loading import LoadedModel, load_model
from minivllm.request import RequestError, RequestOutput
from minivllm.slots import EngineSlot, SlotFileOptions

Prompt = str | Sequence[int]


class LLM:
    """A model, given by name or already loaded, and an engine in this thread.

    with LLM("smollm2-135m", EngineConfig(num_pages=512)) as llm:
        out = llm.generate(["The capital of France is"], SamplingParams(max_tokens=16, temperature=0.0))
        out[0].text, out[0].finish_reason, out[0].metrics.cached_tokens
    """

    def __init__(
        self,
        model: str | LoadedModel = "smollm2-135m",
        config: EngineConfig | None = None,
        components: Mapping[str, Any] | None = None,
        slot_options: SlotFileOptions | None = None,
    ) -> None:
        loaded = load_model(model) if isinstance(model, str) else model
        self.model = loaded.name
        self.tokenizer = loaded.tokenizer
        self.engine = Engine(loaded, config, components, slot_options=slot_options)
        if isinstance(model, str):  # a model that has run before is warm
            self.engine.warm_up()

    def __enter__(self) -> LLM:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def generate(
        self,
        prompts: Prompt | Sequence[Prompt],
        params: SamplingParams | Sequence[SamplingParams] | None = None,
        *,
        cache_salt: str | None = None,
        id_slot: int | None = None,
        progress: bool = False,
    ) -> list[RequestOutput]:
        """Generate for every prompt (text, or token ids), batched; outputs in the order of the prompts.

        With `id_slot` they run in that slot, one after the other.
        Raises `RequestError` before anything runs when one of them could never run.
        """
        token_ids = [self._encode(prompt) for prompt in _as_list(prompts)]
        each_params = _one_each(params, len(token_ids))
        for prompt_token_ids, request_params in zip(token_ids, each_params, strict=True):
            self.engine.limits.check(prompt_token_ids, request_params)
        self.engine.slot_memory.check(id_slot)
        request_ids = [
            self.engine.add_request(prompt_token_ids, request_params, cache_salt=cache_salt, id_slot=id_slot)
            for prompt_token_ids, request_params in zip(token_ids, each_params, strict=True)
        ]
        return self._run(request_ids, progress)

    def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        params: SamplingParams | None = None,
        *,
        cache_salt: str | None = None,
    ) -> RequestOutput:
        """Answer one conversation, rendered by the model's own chat template."""
        return self.generate([self.tokenizer.encode_chat(list(messages))], params, cache_salt=cache_salt)[0]

    @property
    def slots(self) -> tuple[EngineSlot, ...]:
        """The slots: what each remembers, and how to save, restore and erase it."""
        return self.engine.slots

    def logits(self, token_ids: Sequence[int], use_cache: bool = True) -> np.ndarray:
        """float32 [tokens computed, vocabulary], through the paged path; see `Engine.logits`."""
        return self.engine.logits(token_ids, use_cache)

    def reset_prefix_cache(self, salt: str | None = None) -> int:
        """Forget cached pages (of one salt, when given); returns how many. `CacheBusyError` while requests run."""
        return self.engine.reset_prefix_cache(salt)

    def stats(self) -> dict[str, int]:
        return self.engine.stats()

    def close(self) -> None:
        self.engine.close()

    def _encode(self, prompt: Prompt) -> list[int]:
        return self.tokenizer.encode(prompt) if isinstance(prompt, str) else list(_plain(prompt))

    def _run(self, request_ids: list[str], progress: bool) -> list[RequestOutput]:
        ended: dict[str, RequestOutput] = {}
        with tqdm(total=len(request_ids), unit="request", disable=not progress) as bar:
            try:
                while len(ended) < len(request_ids):
                    for output in self.engine.step():
                        if output.request_id in request_ids and output.finish_reason is not None:
                            ended[output.request_id] = output
                            bar.update()
            except BaseException:  # an interrupted cell must not leave requests behind
                for request_id in request_ids:
                    self.engine.abort(request_id)
                raise
        return [ended[request_id] for request_id in request_ids]


def _plain(values: Any) -> Any:
    """Arrays of NumPy or MLX as lists of whole numbers; everything else as it is."""
    return values.tolist() if hasattr(values, "tolist") else values


def _as_list(prompts: Prompt | Sequence[Prompt]) -> list[Prompt]:
    prompts = _plain(prompts)
    if isinstance(prompts, str):
        return [prompts]
    if prompts and isinstance(prompts[0], int):
        raise RequestError("one prompt of token ids must be in a list of prompts: [[1, 2, 3]]", param="prompts")
    return list(prompts)  # type: ignore[arg-type]


def _one_each(params: SamplingParams | Sequence[SamplingParams] | None, count: int) -> list[SamplingParams]:
    if params is None or isinstance(params, SamplingParams):
        return [params or SamplingParams()] * count
    if len(params) != count:
        raise RequestError(
            f"{len(params)} SamplingParams for {count} prompts: give one, or one for each", param="params"
        )
    return list(params)
