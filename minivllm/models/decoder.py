"""One decoder for the Llama, Qwen2 and Qwen3 families, computed over rows of many sequences at once.

Parameter names are those of Hugging Face files, so that weights load without a table of names. The decoder knows
nothing of pages: it hands queries, keys and values of each layer to `attend` and goes on with what comes back.

Sources: the models' own implementations in Hugging Face transformers (modeling_llama, modeling_qwen2, modeling_qwen3).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from minivllm.backend import is_cpu, mx, nn
from minivllm.fastmath import silu_times
from minivllm.models.rotary import Angles, Rotary
from minivllm.models.row_product import RowLinear
from minivllm.models.spec import ModelSpec

Attend = Callable[[int, mx.array, mx.array, mx.array], mx.array]
"""layer, queries [rows, heads, d], keys [rows, kv_heads, d], values [rows, kv_heads, d] -> [rows, heads, d]"""


class Attention(nn.Module):
    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        self._num_heads, self._num_kv_heads, self._head_dim = spec.num_heads, spec.num_kv_heads, spec.head_dim
        query_size = spec.num_heads * spec.head_dim
        self.q_proj = nn.Linear(spec.hidden_size, query_size, bias=spec.attention_bias)
        self.k_proj = nn.Linear(spec.hidden_size, spec.kv_size, bias=spec.attention_bias)
        self.v_proj = nn.Linear(spec.hidden_size, spec.kv_size, bias=spec.attention_bias)
        self.o_proj: nn.Module = nn.Linear(query_size, spec.hidden_size, bias=spec.output_bias)
        self._qk_norm = spec.qk_norm
        if spec.qk_norm:
            self.q_norm = nn.RMSNorm(spec.head_dim, eps=spec.rms_norm_eps)
            self.k_norm = nn.RMSNorm(spec.head_dim, eps=spec.rms_norm_eps)

    def __call__(self, layer: int, x: mx.array, rotary: Rotary, angles: Angles, attend: Attend) -> mx.array:
        queries, keys, values = (self._heads(part) for part in self._project(x))
        if self._qk_norm:
            queries, keys = self.q_norm(queries), self.k_norm(keys)
        queries, keys = rotary(queries, keys, angles)
        out = attend(layer, queries, keys, values)
        return self.o_proj(out.reshape(len(x), -1))

    def _project(self, x: mx.array) -> Sequence[mx.array]:
        return self.qkv_proj.outputs(x) if "qkv_proj" in self else (self.q_proj(x), self.k_proj(x), self.v_proj(x))

    def _heads(self, x: mx.array) -> mx.array:
        return x.reshape(len(x), -1, self._head_dim)

    def merge(self) -> None:
        self.qkv_proj = RowLinear(self.q_proj, self.k_proj, self.v_proj)
        self.o_proj = RowLinear(self.o_proj)
        del self.q_proj, self.k_proj, self.v_proj


class FeedForward(nn.Module):
    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(spec.hidden_size, spec.intermediate_size, bias=spec.mlp_bias)
        self.up_proj = nn.Linear(spec.hidden_size, spec.intermediate_size, bias=spec.mlp_bias)
        self.down_proj: nn.Module = nn.Linear(spec.intermediate_size, spec.hidden_size, bias=spec.mlp_bias)

    def __call__(self, x: mx.array) -> mx.array:
        gate, up = self.gate_up_proj.outputs(x) if "gate_up_proj" in self else (self.gate_proj(x), self.up_proj(x))
        return self.down_proj(silu_times(gate, up))

    def merge(self) -> None:
        self.gate_up_proj = RowLinear(self.gate_proj, self.up_proj)
        self.down_proj = RowLinear(self.down_proj)
        del self.gate_proj, self.up_proj


class Layer(nn.Module):
    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        self.input_layernorm = nn.RMSNorm(spec.hidden_size, eps=spec.rms_norm_eps)
        self.self_attn = Attention(spec)
        self.post_attention_layernorm = nn.RMSNorm(spec.hidden_size, eps=spec.rms_norm_eps)
        self.mlp = FeedForward(spec)

    def __call__(self, layer: int, x: mx.array, rotary: Rotary, angles: Angles, attend: Attend) -> mx.array:
        x = x + self.self_attn(layer, self.input_layernorm(x), rotary, angles, attend)
        return x + self.mlp(self.post_attention_layernorm(x))


class Body(nn.Module):
    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(spec.vocab_size, spec.hidden_size)
        self.layers = [Layer(spec) for _ in range(spec.num_layers)]
        self.norm = nn.RMSNorm(spec.hidden_size, eps=spec.rms_norm_eps)


class Decoder(nn.Module):
    """Embedding, layers, final norm, head. `prepare()` it once its weights are in."""

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        self.model = Body(spec)
        self._rotary = Rotary(spec)
        if not spec.tie_word_embeddings:
            self.lm_head = nn.Linear(spec.hidden_size, spec.vocab_size, bias=False)

    def __call__(self, token_ids: mx.array, positions: mx.array, attend: Attend) -> mx.array:
        """Token ids and positions [rows] -> final hidden states [rows, hidden_size], normalised."""
        x = self.model.embed_tokens(token_ids)
        angles = self._rotary.angles(positions)
        for number, layer in enumerate(self.model.layers):
            x = layer(number, x, self._rotary, angles, attend)
        return self.model.norm(x)

    def logits(self, hidden: mx.array) -> mx.array:
        """Hidden states [rows, hidden_size] -> float32 [rows, vocab_size]."""
        return self._head(hidden).astype(mx.float32)

    def prepare(self) -> None:
        """On a CPU, where weights are plain float32: merge layers that read the same input, be quick for one row."""
        if is_cpu:
            for layer in self.model.layers:
                layer.self_attn.merge()
                layer.mlp.merge()
            self._merged_head = RowLinear(self.lm_head if "lm_head" in self else self.model.embed_tokens)
        self.eval()
        mx.eval(self.parameters())

    @property
    def _head(self) -> Callable[[mx.array], mx.array]:
        if "_merged_head" in self:
            return self._merged_head
        return self.lm_head if "lm_head" in self else self.model.embed_tokens.as_linear
