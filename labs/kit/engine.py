"""The mini engine inside the notebook's own process, for what a server cannot show: logits, pages, single steps."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from labs.kit.parameters import Parameters
from minivllm import LLM, EngineConfig

SERVER_CANNOT_SHOW = (
    "BASE_URL is set, and a server shows neither its pages nor its logits: this notebook looks into the engine of the "
    "course, here in its own process."
)


def open_llm(parameters: Parameters, components: Mapping[str, Any] | None = None, **settings: Any) -> LLM:
    """An engine on this run's model; `settings` are fields of EngineConfig. Close it, or use it in a `with`.

    With a base URL the engine runs all the same, and says why. Loading takes about two seconds on two CPU cores.
    """
    if parameters.base_url:
        print(SERVER_CANNOT_SHOW)
    return LLM(parameters.model, EngineConfig(**settings), components)


def conditions(llm: LLM) -> dict[str, Any]:
    """What a record of a measurement on this engine has to name: the model, and every setting that is no default."""
    config, default = llm.engine.config, EngineConfig()
    changed = {
        field.name: getattr(config, field.name)
        for field in dataclasses.fields(EngineConfig)
        if getattr(config, field.name) != getattr(default, field.name)
    }
    return {"engine": "minivllm", "model": llm.model, "page_tokens": config.page_size, "settings": changed}
