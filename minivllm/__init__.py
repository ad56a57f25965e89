"""minivllm: a small LLM engine with a paged, shared KV cache, on MLX.

Importing the package imports no array library; the names below load their part when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minivllm.config import EngineConfig, SamplingParams
    from minivllm.llm import LLM

__all__ = ["LLM", "EngineConfig", "SamplingParams"]

_HOMES = {"LLM": "minivllm.llm", "EngineConfig": "minivllm.config", "SamplingParams": "minivllm.config"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
