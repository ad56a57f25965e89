"""A Hugging Face tokenizer rebuilt from the metadata of a `.gguf` file (byte-level BPE only)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from minivllm.models.errors import ModelError

# How text is split before BPE, by `tokenizer.ggml.pre` (llama.cpp, src/llama-vocab.cpp); the expressions
# are those of the models' own tokenizer.json.
_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
_REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_SPLITS = {"qwen2": _CONTRACTIONS + r"\p{N}" + _REST, "llama-bpe": _CONTRACTIONS + r"\p{N}{1,3}" + _REST}
PRE_TOKENIZERS = ("smollm", *_SPLITS)

_CONTROL, _USER_DEFINED = 3, 4  # token types


def write_tokenizer(metadata: Mapping[str, Any], folder: Path) -> None:
    """Write tokenizer.json and tokenizer_config.json, chat template included."""
    tokens = _required(metadata, "tokenizer.ggml.tokens")
    tokenizer = _byte_level_bpe(metadata, tokens)
    bos_id = metadata.get("tokenizer.ggml.bos_token_id")
    pre = metadata["tokenizer.ggml.pre"]
    if metadata.get("tokenizer.ggml.add_bos_token", pre == "llama-bpe") and bos_id is not None:
        bos = tokens[bos_id]
        tokenizer.post_processor = processors.Sequence(
            [
                processors.ByteLevel(trim_offsets=False),
                processors.TemplateProcessing(
                    single=f"{bos} $A", pair=f"{bos} $A {bos}:1 $B:1", special_tokens=[(bos, bos_id)]
                ),
            ]
        )
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(_config(metadata, tokens), indent=2, ensure_ascii=False))


def _byte_level_bpe(metadata: Mapping[str, Any], tokens: list[str]) -> Tokenizer:
    kind, pre = _required(metadata, "tokenizer.ggml.model"), metadata.get("tokenizer.ggml.pre")
    if kind != "gpt2":
        raise ModelError(f"tokenizer.ggml.model {kind!r} is not supported; only 'gpt2' (byte-level BPE) is")
    if pre not in PRE_TOKENIZERS:
        raise ModelError(f"tokenizer.ggml.pre {pre!r} is not supported; only {', '.join(PRE_TOKENIZERS)} are")
    merges = [tuple(merge.split(" ", 1)) for merge in _required(metadata, "tokenizer.ggml.merges")]
    vocabulary = {token: index for index, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(vocabulary, merges, ignore_merges=pre == "llama-bpe"))
    tokenizer.pre_tokenizer = _pre_tokenizer(pre)
    tokenizer.decoder = decoders.ByteLevel()
    if pre == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
    added = {_CONTROL: True, _USER_DEFINED: False}
    types = metadata.get("tokenizer.ggml.token_type", [])
    # Their order does not matter: every token has its id in the vocabulary already.
    tokenizer.add_tokens(
        [
            AddedToken(token, special=added[kind], normalized=False)
            for token, kind in zip(tokens, types, strict=False)
            if kind in added
        ]
    )
    return tokenizer


def _pre_tokenizer(pre: str) -> pre_tokenizers.PreTokenizer:
    if pre == "smollm":
        digits = pre_tokenizers.Digits(individual_digits=True)
        return pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    split = pre_tokenizers.Split(Regex(_SPLITS[pre]), behavior="isolated")
    return pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def _config(metadata: Mapping[str, Any], tokens: list[str]) -> dict[str, Any]:
    architecture = metadata["general.architecture"]
    config: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        "model_max_length": metadata.get(f"{architecture}.context_length"),
        "chat_template": metadata.get("tokenizer.chat_template"),
    }
    for role, key in (("bos", "bos"), ("eos", "eos"), ("pad", "padding"), ("unk", "unknown")):
        token_id = metadata.get(f"tokenizer.ggml.{key}_token_id")
        config[f"{role}_token"] = None if token_id is None else tokens[token_id]
    return {key: value for key, value in config.items() if value is not None}


def _required(metadata: Mapping[str, Any], key: str) -> Any:
    if key not in metadata:
        raise ModelError(f"the GGUF file has no {key!r}; it must be a complete language model with its tokenizer")
    return metadata[key]
