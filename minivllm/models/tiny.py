"""`tiny`: a Llama of 2 layers with random weights and a tokenizer of its own, made here in a moment.

For tests and fast notebooks. Its text means nothing, but depends on every token before it: wrong keys or
values in one page change what it writes.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from minivllm.backend import mx
from minivllm.home import folder_made_once, home

VERSION = 1  # part of the folder's name: raise it when anything below changes what is written
SEED = 20260
BOS, END, TURN = "<|bos|>", "<|end|>", "<|turn|>"
SPECIAL_TOKENS = (BOS, END, TURN)
VOCAB_SIZE, HIDDEN_SIZE, INNER_SIZE = 512, 64, 128
NUM_LAYERS, NUM_HEADS, NUM_KV_HEADS, HEAD_DIM = 2, 4, 2, 32

CONFIG = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "num_hidden_layers": NUM_LAYERS,
    "hidden_size": HIDDEN_SIZE,
    "intermediate_size": INNER_SIZE,
    "num_attention_heads": NUM_HEADS,
    "num_key_value_heads": NUM_KV_HEADS,
    "head_dim": HEAD_DIM,
    "vocab_size": VOCAB_SIZE,
    "max_position_embeddings": 8192,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "hidden_act": "silu",
    "attention_bias": False,
    "mlp_bias": False,
    "tie_word_embeddings": False,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "torch_dtype": "float32",
}

CHAT_TEMPLATE = (
    "{{ bos_token }}"
    "{% if tools %}<|turn|>tools\n{{ tools | tojson }}<|end|>\n{% endif %}"
    "{% for message in messages %}"
    "<|turn|>{{ message['role'] }}\n{{ message['content'] }}<|end|>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|turn|>assistant\n{% endif %}"
)

# What the tokenizer learns its words from.
CORPUS = """
The lighthouse keeper writes one page a day. Every page begins where the page before it ended, and no
page is written twice. When a ship asks about the weather, the keeper looks for the page that begins as
the question begins, and reads on from there. What was written once need not be written again.
A model reads a prompt from the first token to the last. For every token it keeps a key and a value in
every layer. When the next prompt begins with the same tokens, the same keys and values are right for it,
and only the rest must be computed.
This is called a prefix cache. The first request is cold; the second request is warm, and its first token
comes sooner.
You are a helpful assistant. Answer the question in one sentence. What is the capital of France? Please
explain how this works, and why the time to the first token is shorter. Here is a list of questions: who,
what, when, where and why?
The user asks, the assistant answers, the system says how. Numbers are 0 1 2 3 4 5 6 7 8 9 10 12 16 32 64
100 128 256.
"""


def tiny_folder() -> Path:
    """The model's folder, made the first time."""
    return folder_made_once(home() / "models" / f"tiny-v{VERSION}", write_tiny)


def write_tiny(folder: Path) -> None:
    """Write the model in Hugging Face layout; the same bytes every time."""
    tokenizer = _tokenizer()
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(_tokenizer_config(), indent=2))
    (folder / "config.json").write_text(json.dumps(CONFIG, indent=2))
    mx.save_safetensors(str(folder / "model.safetensors"), _weights(tokenizer), {"format": "mlx"})


def _tokenizer() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB_SIZE,
        special_tokens=[AddedToken(token, special=True, normalized=False) for token in SPECIAL_TOKENS],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator([CORPUS], trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{BOS} $A", pair=f"{BOS} $A $B", special_tokens=[(BOS, SPECIAL_TOKENS.index(BOS))]
    )
    return tokenizer


def _tokenizer_config() -> dict[str, object]:
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": BOS,
        "eos_token": END,
        "clean_up_tokenization_spaces": False,
        "model_max_length": CONFIG["max_position_embeddings"],
        "chat_template": CHAT_TEMPLATE,
    }


def _weights(tokenizer: Tokenizer) -> dict[str, mx.array]:
    # RandomState, because NumPy promises that its numbers stay the same in every version.
    random = np.random.RandomState(SEED)
    hidden, inner = HIDDEN_SIZE, INNER_SIZE
    queries, keys = NUM_HEADS * HEAD_DIM, NUM_KV_HEADS * HEAD_DIM

    def matrix(rows: int, columns: int, gain: float = 1.0) -> mx.array:
        return mx.array((random.randn(rows, columns) * gain / columns**0.5).astype(np.float32))

    weights = {"model.embed_tokens.weight": matrix(VOCAB_SIZE, hidden, 8.0)}
    for layer in range(NUM_LAYERS):
        prefix = f"model.layers.{layer}"
        weights[f"{prefix}.input_layernorm.weight"] = mx.ones(hidden)
        weights[f"{prefix}.self_attn.q_proj.weight"] = matrix(queries, hidden, 1.5)
        weights[f"{prefix}.self_attn.k_proj.weight"] = matrix(keys, hidden, 1.5)
        weights[f"{prefix}.self_attn.v_proj.weight"] = matrix(keys, hidden, 3.0)
        weights[f"{prefix}.self_attn.o_proj.weight"] = matrix(hidden, queries, 3.0)
        weights[f"{prefix}.post_attention_layernorm.weight"] = mx.ones(hidden)
        weights[f"{prefix}.mlp.gate_proj.weight"] = matrix(inner, hidden)
        weights[f"{prefix}.mlp.up_proj.weight"] = matrix(inner, hidden)
        weights[f"{prefix}.mlp.down_proj.weight"] = matrix(hidden, inner)
    weights["model.norm.weight"] = mx.ones(hidden)
    weights["lm_head.weight"] = matrix(VOCAB_SIZE, hidden, 3.0) * _written(tokenizer)[:, None]
    return weights


def _written(tokenizer: Tokenizer) -> mx.array:
    """1 for tokens of readable text, else 0: greedy text is readable, and no end comes by chance."""
    texts = [tokenizer.decode([index]) for index in range(VOCAB_SIZE)]
    return mx.array([float(text.isascii() and (text.isprintable() and bool(text))) for text in texts])
