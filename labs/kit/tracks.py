"""Four engines on four kinds of machine: how to start each so that it can be measured, and whether anybody here did.

`run` says what this project has seen with its own eyes: "captured" (answers of a real server were recorded), "here" (a
notebook or a test starts it), or "not run" (read in the engine's documentation, November 2026). Options that turn the
cache on or off and make it tell more are in labbook's engine table, with where each is known from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from labbook.engines import how_to_ask, how_to_turn
from labbook.errors import UsageError
from labs.kit.table import text_table

TRACKS = ("Apple silicon", "NVIDIA", "AMD", "plain CPU")
Seen = Literal["captured", "here", "not run", "none"]

_VLLM = "vllm serve MODEL --enable-prompt-tokens-details"
_SGLANG = "python -m sglang.launch_server --model-path MODEL --enable-metrics --enable-cache-report"
_LLAMA = "llama-server -m MODEL.gguf --metrics"
_MLX = "mlx_lm.server --model MODEL"


@dataclass(frozen=True)
class Way:
    """One engine on one track. `command` is empty where the engine has no build for it."""

    engine: str
    track: str
    run: Seen
    command: str
    remark: str = ""


WAYS = (
    Way("vllm", "Apple silicon", "not run", _VLLM, "with the plugin vllm-metal; vLLM's own build is for the CPU only"),
    Way("vllm", "NVIDIA", "not run", _VLLM, "--kv-cache-dtype fp8 quantizes the cache where the GPU knows fp8"),
    Way("vllm", "AMD", "not run", _VLLM, "in the ROCm build"),
    Way("vllm", "plain CPU", "captured", _VLLM, "in the CPU build; its blocks have 128 tokens, so short prefixes miss"),
    Way("sglang", "Apple silicon", "none", "", "not among the platforms of its documentation"),
    Way("sglang", "NVIDIA", "not run", _SGLANG, "--kv-cache-dtype fp8_e5m2 quantizes the cache"),
    Way("sglang", "AMD", "not run", _SGLANG, "in the ROCm image"),
    Way(
        "sglang",
        "plain CPU",
        "not run",
        f"{_SGLANG} --device cpu",
        "with SGLANG_USE_CPU_ENGINE=1, on CPUs with AMX",
    ),
    Way("llama-server", "Apple silicon", "not run", _LLAMA, "Metal is on in the default build"),
    Way("llama-server", "NVIDIA", "not run", f"{_LLAMA} --n-gpu-layers 99", "built with -DGGML_CUDA=ON"),
    Way("llama-server", "AMD", "not run", f"{_LLAMA} --n-gpu-layers 99", "built with -DGGML_HIP=ON, or Vulkan"),
    Way("llama-server", "plain CPU", "captured", _LLAMA, "--cache-ram 0 shows what a slot alone keeps"),
    Way("mlx-lm", "Apple silicon", "not run", _MLX, "on Metal"),
    Way("mlx-lm", "NVIDIA", "not run", _MLX, "with MLX's CUDA build, mlx[cuda]"),
    Way("mlx-lm", "AMD", "none", "", "MLX has no build for it that we know of"),
    Way("mlx-lm", "plain CPU", "here", _MLX, "slow as shipped: labs.kit.mlx_launcher loads a fast BLAS first"),
)
ENGINES = tuple(dict.fromkeys(way.engine for way in WAYS))


def way(engine: str, track: str) -> Way:
    """Raises UsageError with the names there are."""
    for one in WAYS:
        if (one.engine, one.track) == (engine, track):
            return one
    raise UsageError(f"{engine!r} on {track!r} is not in the table: {', '.join(ENGINES)} on {', '.join(TRACKS)}")


def run_table() -> str:
    """Which engine was run on which track."""
    rows = [(engine, *(way(engine, track).run for track in TRACKS)) for engine in ENGINES]
    return text_table(("engine", *TRACKS), rows)


def commands(track: str) -> str:
    """For each engine on this track: how to start it, what to add, how to turn its cache off."""
    lines = []
    for engine in ENGINES:
        one = way(engine, track)
        lines.append(f"{engine} on {track} ({one.run})")
        if one.command:
            lines += [f"  start   {one.command}", f"  off     {how_to_turn('off', engine)}"]
        lines.append(f"  remark  {one.remark}")
    return "\n".join(lines)


def telling_table() -> str:
    """What makes each engine show cached tokens and counters; always where there is nothing to switch on."""
    rows = [(engine, _asked("cached_tokens", engine), _asked("counters", engine)) for engine in ENGINES]
    return text_table(("engine", "cached tokens", "counters"), rows)


def _asked(signal: str, engine: str) -> str:
    if (engine, signal) == ("mlx-lm", "counters"):
        return "never: it has no metrics page"
    return how_to_ask(signal, engine).strip("()") or "always"
