"""The memory of a server as one bar: weights, the KV cache of so many conversations, and what is free or missing."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from minivllm.budget import MemoryBudget, ModelShape, memory_budget, shape_of
from minivllm.config import GIB, ConfigError

WIDTH = 64
SIGNS = {"weights": "#", "KV cache": "=", "free": ".", "over budget": "!"}

# The numbers of Qwen3-8B's config.json, as its makers publish them.
QWEN3_8B = shape_of(
    {
        "model_type": "qwen3",
        "num_hidden_layers": 36,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "hidden_size": 4096,
        "intermediate_size": 12288,
        "vocab_size": 151936,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
    }
)


@dataclass(frozen=True)
class Segment:
    """A part of the bar. `name` is one of SIGNS."""

    name: str
    num_bytes: int

    @property
    def sign(self) -> str:
        return SIGNS[self.name]

    @property
    def label(self) -> str:
        return f"{self.name} {gib(self.num_bytes)}"


@dataclass(frozen=True)
class MemoryBar:
    """What is set, and all that follows from it. `kv_bits` 16 means numbers of two bytes, not quantized."""

    model: str = "Qwen3-8B"
    shape: ModelShape = QWEN3_8B
    context_tokens: int = 32_768
    conversations: int = 1
    kv_bits: int = 16
    budget_gib: int = 24

    def __post_init__(self) -> None:
        if self.conversations < 0:
            raise ConfigError(f"conversations={self.conversations} must be at least 0")
        _ = self.budget  # refuses the other numbers

    @property
    def budget(self) -> MemoryBudget:
        return memory_budget(
            self.shape, context_tokens=self.context_tokens, kv_bits=self.kv_bits, budget_bytes=self.budget_gib * GIB
        )

    @property
    def weights_bytes(self) -> int:
        """Weights, with the buffers of one forward pass."""
        return self.budget.weights_bytes + self.budget.buffers_bytes

    @property
    def kv_bytes(self) -> int:
        return self.conversations * self.budget.conversation_bytes

    @property
    def free_bytes(self) -> int:
        """Below 0 when it does not fit."""
        return self.budget.budget_bytes - self.weights_bytes - self.kv_bytes

    @property
    def parts(self) -> list[Segment]:
        """The sizes that the bar speaks of: what is needed, and what that leaves or lacks."""
        rest = Segment("free", self.free_bytes) if self.free_bytes >= 0 else Segment("over budget", -self.free_bytes)
        return [Segment("weights", self.weights_bytes), Segment("KV cache", self.kv_bytes), rest]

    @property
    def segments(self) -> list[Segment]:
        """The bar from left to right. Beyond the budget everything is "over budget", whatever it is needed for."""
        limit = self.budget.budget_bytes
        weights = min(self.weights_bytes, limit)
        drawn = [Segment("weights", weights), Segment("KV cache", min(self.kv_bytes, limit - weights)), self.parts[-1]]
        return [segment for segment in drawn if segment.num_bytes]

    @property
    def sentence(self) -> str:
        """Everything that the picture shows, in words."""
        sizes = ", ".join(part.label for part in self.parts)
        return f"{self._asked}: {sizes}. {self._verdict}"

    def as_text(self) -> str:
        """The bar in characters, its legend and the verdict. `|` stands where the budget ends."""
        legend = ", ".join(f"{part.sign} {part.label}" for part in self.parts)
        return f"{self._asked}\n[{self._characters()}]\n{legend}\n{self._verdict}"

    def as_record(self) -> dict[str, Any]:
        """Fields for the labbook: what was set, and what came of it."""
        settings = {name: value for name, value in asdict(self).items() if name != "shape"}
        return {
            "label": self._asked,
            **settings,
            "kv_bytes": self.kv_bytes,
            "free_bytes": self.free_bytes,
            "conversations_that_fit": self.budget.num_conversations,
        }

    @property
    def _asked(self) -> str:
        return (
            f"{self.model} in {self.budget_gib} GiB, {_counted(self.conversations)} of {self.context_tokens:,} tokens, "
            f"KV cache of {self.kv_bits} bits"
        )

    @property
    def _verdict(self) -> str:
        room = f"there is room for {_counted(self.budget.num_conversations)} of this length."
        return f"It fits; {room}" if self.free_bytes >= 0 else f"It does not fit; {room}"

    def _characters(self) -> str:
        limit, used = self.budget.budget_bytes, self.weights_bytes + self.kv_bytes
        ends: list[tuple[int, str]] = []
        end = 0
        for segment in self.segments:
            end += segment.num_bytes
            ends.append((end, segment.sign))
        scale = max(limit, used)
        middles = [(place + 0.5) / WIDTH * scale for place in range(WIDTH)]
        signs = [next(sign for end, sign in ends if middle <= end) for middle in middles]
        inside = sum(middle <= limit for middle in middles)
        return "".join(signs[:inside]) + ("|" + "".join(signs[inside:]) if inside < WIDTH else "")


def gib(num_bytes: int) -> str:
    return f"{num_bytes / GIB:.1f} GiB"


def _counted(conversations: int) -> str:
    return f"{conversations} conversation{'' if conversations == 1 else 's'}"
