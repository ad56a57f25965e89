"""Which tokenizer counts a prompt: the model's own, read here, or that of a server which is not ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from labbook.errors import LabbookError
from labbook.explain.body import Body
from labbook.explain.rendered import Renderer
from labbook.explain.server import ServerRenderer
from labbook.explain.tokenizer import TokenizerRenderer
from labbook.explain.words import WordRenderer
from labs.kit.parameters import Parameters

_PROBE = Body({"messages": [{"role": "user", "content": "Hello"}]})


def renderer_of(parameters: Parameters, served_model: str) -> tuple[Renderer, str]:
    """A renderer for `labbook.explain`, and a sentence that says whose it is. `served_model` is the server's name.

    A server of yours tokenizes itself where it can. Where it cannot, the tokenizer of the model that it serves is read
    from this machine, else that of `parameters.model`; without either, words are compared.
    """
    if not parameters.starts_engine:
        asked = ServerRenderer(parameters.base_url, model=served_model)
        try:
            asked.render(_PROBE)
            return asked, "tokens by the server's own /tokenize"
        except LabbookError:
            asked.close()
    for name in (served_model, parameters.model):
        if tokenizer := _local(name):
            return TokenizerRenderer(tokenizer), f"tokens by the tokenizer of {Path(name).name}, read here"
    return WordRenderer(), f"words, not tokens: {served_model} has no tokenizer on this machine"


def _local(model: str) -> Any:
    """The tokenizer of a model of the registry or of a folder; None for other names, which are looked for nowhere."""
    from minivllm.models.errors import ModelError
    from minivllm.models.registry import REGISTRY, resolve
    from minivllm.models.tokenizer import load_tokenizer
    from minivllm.models.weights import read_json

    if model not in REGISTRY and not Path(model).expanduser().is_dir():
        return None
    try:
        folder = resolve(model)
        return load_tokenizer(folder, read_json(folder / "config.json"))
    except ModelError:
        return None
