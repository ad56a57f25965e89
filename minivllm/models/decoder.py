"""One decoder for the Llama, Qwen2 and Qwen3 families, computed over rows of many sequences at once.

Parameter names are those of Hugging Face files, so that weights load without a table of names. The decoder knows
nothing of pages: it hands queries, keys and values of each layer to `attend` and goes on with what comes back.

Sources: the models' own implementations in Hugging Face transformers (modeling_llama, modeling_qwen2, modeling_qwen3).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from minivllm.backend import mx, nn  # first: it loads a fast BLAS before MLX

# isort: split
from mlx_lm.models.rope_utils import initialize_rope

from minivllm.fastmath import silu_times
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
        self.o_proj = nn.Linear(query_size, spec.hidden_size, bias=spec.output_bias)
        self._qk_norm = spec.qk_norm
        if spec.qk_norm:
            self.q_norm = nn.RMSNorm(spec.head_dim, eps=spec.rms_norm_eps)
            self.k_norm = nn.RMSNorm(spec.head_dim, eps=spec.rms_norm_eps)
        self._rope = initialize_rope(
            spec.head_dim,
            spec.rope_theta,
            spec.rope_traditional,
            spec.rope_scaling,
            spec.max_position_embeddings,
        )

    def __call__(self, layer: int, x: mx.array, positions: mx.array, attend: Attend) -> mx.array:
        queries, keys, values = (self._heads(part) for part in self._project(x))
        if self._qk_norm:
            queries, keys = self.q_norm(queries), self.k_norm(keys)
        out = attend(layer, self._rotate(queries, positions), self._rotate(keys, positions), values)
        return self.o_proj(out.reshape(len(x), -1))

    def _project(self, x: mx.array) -> Sequence[mx.array]:
        if "qkv_proj" not in self:
            return self.q_proj(x), self.k_proj(x), self.v_proj(x)
        query_size = self._num_heads * self._head_dim
        bounds = [query_size, query_size + self._num_kv_heads * self._head_dim]
        return list(mx.split(self.qkv_proj(x), bounds, axis=-1))

    def _heads(self, x: mx.array) -> mx.array:
        return x.reshape(len(x), -1, self._head_dim)

    def _rotate(self, x: mx.array, positions: mx.array) -> mx.array:
        """Each row has its own position: rows are the batch, sequences have length 1."""
        return self._rope(x[:, :, None], offset=positions)[:, :, 0]

    def fuse(self) -> None:
        self.qkv_proj = _fuse([self.q_proj, self.k_proj, self.v_proj])
        del self.q_proj, self.k_proj, self.v_proj


class FeedForward(nn.Module):
    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(spec.hidden_size, spec.intermediate_size, bias=spec.mlp_bias)
        self.up_proj = nn.Linear(spec.hidden_size, spec.intermediate_size, bias=spec.mlp_bias)
        self.down_proj = nn.Linear(spec.intermediate_size, spec.hidden_size, bias=spec.mlp_bias)

    def __call__(self, x: mx.array) -> mx.array:
        if "gate_up_proj" in self:
            gate, up = mx.split(self.gate_up_proj(x), 2, axis=-1)
        else:
            gate, up = self.gate_proj(x), self.up_proj(x)
        return self.down_proj(silu_times(gate, up))

    def fuse(self) -> None:
        self.gate_up_proj = _fuse([self.gate_proj, self.up_proj])
        del self.gate_proj, self.up_proj


class Layer(nn.Module):
    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        self.input_layernorm = nn.RMSNorm(spec.hidden_size, eps=spec.rms_norm_eps)
        self.self_attn = Attention(spec)
        self.post_attention_layernorm = nn.RMSNorm(spec.hidden_size, eps=spec.rms_norm_eps)
        self.mlp = FeedForward(spec)

    def __call__(self, layer: int, x: mx.array, positions: mx.array, attend: Attend) -> mx.array:
        x = x + self.self_attn(layer, self.input_layernorm(x), positions, attend)
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
        if not spec.tie_word_embeddings:
            self.lm_head = nn.Linear(spec.hidden_size, spec.vocab_size, bias=False)

    def __call__(self, token_ids: mx.array, positions: mx.array, attend: Attend) -> mx.array:
        """Token ids and positions [rows] -> final hidden states [rows, hidden_size], normalised."""
        x = self.model.embed_tokens(token_ids)
        for number, layer in enumerate(self.model.layers):
            x = layer(number, x, positions, attend)
        return self.model.norm(x)

    def logits(self, hidden: mx.array) -> mx.array:
        """Hidden states [rows, hidden_size] -> float32 [rows, vocab_size]."""
        head = self.lm_head if "lm_head" in self else self.model.embed_tokens.as_linear
        return head(hidden).astype(mx.float32)

    def prepare(self) -> None:
        """Merge products that read the same input, where weights are plain arrays: one product beats three."""
        for layer in self.model.layers:
            if type(layer.self_attn.q_proj) is nn.Linear:
                layer.self_attn.fuse()
            if type(layer.mlp.gate_proj) is nn.Linear:
                layer.mlp.fuse()
        self.eval()
        mx.eval(self.parameters())


def _fuse(parts: list[nn.Linear]) -> nn.Linear:
    """One linear layer that gives the outputs of `parts` side by side, evaluated so that the parts can be freed."""
    fused = nn.Linear(1, 1, bias=False)
    fused.weight = mx.concatenate([part.weight for part in parts])
    if "bias" in parts[0]:
        fused.bias = mx.concatenate([part.bias for part in parts])
    mx.eval(fused.parameters())
    return fused
