"""How a double is started: its name, faults and flags in, a base URL out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from labs.kit.doubles.dialect import Dialect
from labs.kit.doubles.errors import DoubleError
from labs.kit.doubles.faults import Faults
from labs.kit.doubles.listening import listening
from labs.kit.doubles.llama_server import LlamaServer
from labs.kit.doubles.mlx_lm import MlxLm
from labs.kit.doubles.server_double import Double
from labs.kit.doubles.sglang import SgLang
from labs.kit.doubles.vllm import Vllm

DIALECTS: dict[str, type[Dialect]] = {kind.name: kind for kind in (Vllm, SgLang, LlamaServer, MlxLm)}


@contextmanager
def double(
    engine: str, *, faults: Faults | None = None, flags: Sequence[str] = (), model: str = "tiny", port: int = 0
) -> Iterator[Double]:
    """A running double of `engine` ("vllm", "sglang", "llama-server", "mlx-lm") at `base_url`, on loopback.

    `flags` are that server's own, such as `["--enable-prompt-tokens-details"]`; `model` is what clients call the
    model. Port 0 takes a free one. Raises DoubleError for an engine, a flag or a value that cannot be used.
    """
    if engine not in DIALECTS:
        raise DoubleError(f"engine {engine!r} has no double: choose one of {', '.join(DIALECTS)}")
    running = Double(DIALECTS[engine](model, flags, faults or Faults()))
    try:
        with listening(running, port) as url:
            running.base_url = f"{url}/v1"
            yield running
    finally:
        running.close()
