from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import pytest

from minivllm import LLM, EngineConfig
from minivllm.cache import audit
from minivllm.models.loading import LoadedModel, load_model
from minivllm.slots import SlotFileOptions
from tests.engine.oracle import Oracle


@cache
def loaded(name: str) -> LoadedModel:
    """Each model once per test run; engines over it are cheap."""
    return load_model(name)


@pytest.fixture(scope="session")
def tiny() -> LoadedModel:
    return loaded("tiny")


@pytest.fixture(scope="session")
def tiny_oracle() -> Oracle:
    return Oracle("tiny")


@pytest.fixture
def make_llm() -> Iterator[Callable[..., LLM]]:
    """Engines with poisoned free pages; the books of each are audited, and idle, at the end of the test."""
    made: list[LLM] = []

    def make(
        model: str = "tiny",
        components: Mapping[str, Any] | None = None,
        slot_options: SlotFileOptions | None = None,
        **settings: Any,
    ) -> LLM:
        config = EngineConfig(**{"debug_poison_pages": True, "num_pages": 64, **settings})
        made.append(LLM(loaded(model), config, components, slot_options))
        return made[-1]

    yield make
    for llm in made:
        audit.check(llm.engine)
        assert llm.stats()["pages_active"] == llm.stats()["pages_partial"] <= llm.engine.config.num_slots
        llm.close()
