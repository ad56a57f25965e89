"""Tokenizer: text to token ids and back, and the model's chat template.

Transformers' own tokenizer does the work, so that ids equal what other servers of the same model compute.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import jinja2
import jinja2.meta

from minivllm.models.errors import ChatTemplateError, ModelError
from minivllm.models.stream_decoder import StreamDecoder
from minivllm.models.weights import read_json

Message = Mapping[str, Any]

# Normalization (NFC) makes one character of a letter and its marks: "ǖ" of three, whose UTF-8 form has two bytes.
_COMPOSED_CHARS = 4


class Tokenizer:
    """The tokenizer of one model.

    `eos_token_ids` end a generation. `decode` and `token_text` take any id of the model, and give
    no text for those that the tokenizer does not have.
    """

    def __init__(self, transformers_tokenizer: Any, eos_token_ids: Iterable[int]) -> None:
        self._tokenizer = transformers_tokenizer
        self.eos_token_ids: frozenset[int] = frozenset(eos_token_ids)
        self.vocab_size: int = len(transformers_tokenizer)
        added = transformers_tokenizer.added_tokens_decoder.items()
        self.special_token_ids = frozenset(index for index, token in added if token.special)
        self._byte_token_ids = _byte_token_ids(transformers_tokenizer.backend_tokenizer)

    @cached_property
    def max_chars_per_token(self) -> int:
        """No token stands for more characters of a text than this."""
        longest = max(map(len, self._tokenizer.get_vocab()), default=1)
        return longest * (_COMPOSED_CHARS if self._tokenizer.backend_tokenizer.normalizer is not None else 1)

    @property
    def bos_token_id(self) -> int | None:
        bos: int | None = self._tokenizer.bos_token_id
        return bos

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the vocabulary and its rules: equal digests give equal ids for equal text."""
        return hashlib.sha256(self._tokenizer.backend_tokenizer.to_str().encode()).hexdigest()

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        """Token ids of `text`, with what the model expects around it; one BOS even if the text has it."""
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=add_special_tokens)
        doubled = self.bos_token_id is not None and ids[:2] == [self.bos_token_id] * 2
        return ids[1:] if add_special_tokens and doubled else ids

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        text: str = self._tokenizer.decode(
            list(ids), skip_special_tokens=skip_special_tokens, clean_up_tokenization_spaces=False
        )
        return text

    def token_text(self, token_id: int) -> str:
        """One token as text, special ones by their name; U+FFFD stands for half a character."""
        return self.decode([token_id], skip_special_tokens=False)

    def stream_decoder(self) -> StreamDecoder:
        """A decoder for one generated text, special tokens left out."""
        return StreamDecoder(self.decode, self.special_token_ids, self._byte_token_ids)

    @property
    def has_chat_template(self) -> bool:
        return bool(self._tokenizer.chat_template)

    @cached_property
    def supports_tools(self) -> bool:
        """Whether the chat template reads `tools`."""
        template = self._tokenizer.chat_template or ""
        sources = template.values() if isinstance(template, dict) else [template]
        return any("tools" in _variables(source) for source in sources)

    def render_chat(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        **template_kwargs: Any,
    ) -> str:
        """The prompt that the chat template makes; ChatTemplateError if it refuses messages or tools."""
        if not self.has_chat_template:
            raise ChatTemplateError("this model has no chat template; use the text completions route or a chat model")
        if tools and not self.supports_tools:
            raise ChatTemplateError(f"this model's chat template takes no tools ({len(tools)} given); leave them out")
        try:
            text: str = self._tokenizer.apply_chat_template(
                [dict(message) for message in messages],
                tools=[dict(tool) for tool in tools] if tools else None,
                add_generation_prompt=add_generation_prompt,
                tokenize=False,
                **template_kwargs,
            )
        except (jinja2.TemplateError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise ChatTemplateError(f"the chat template refused the messages: {error}") from error
        return text

    def encode_chat(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        **template_kwargs: Any,
    ) -> list[int]:
        """Token ids of the rendered chat. The template writes BOS itself, so none is added."""
        text = self.render_chat(messages, tools, add_generation_prompt, **template_kwargs)
        return self.encode(text, add_special_tokens=False)


def load_tokenizer(folder: Path, config: Mapping[str, Any]) -> Tokenizer:
    """The tokenizer of a model folder whose config.json is `config`; ModelError if it cannot be read."""
    if not any((folder / name).is_file() for name in ("tokenizer.json", "tokenizer.model", "vocab.json")):
        raise ModelError(f"{folder} has no tokenizer (tokenizer.json); use a complete MLX or Hugging Face model folder")
    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")  # else: a line on stderr that PyTorch is absent
    from transformers import AutoTokenizer  # 0.9 s to import, and only needed with a model

    try:
        tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    except Exception as error:  # many types for a damaged file, a plain Exception among them
        raise ModelError(f"the tokenizer in {folder} cannot be read: {error}; fetch the model again") from error
    if not getattr(tokenizer, "is_fast", False):
        raise ModelError(f"{folder} has a {type(tokenizer).__name__}, which has no tokenizer.json form; save it as one")
    tokenizer.model_max_length = sys.maxsize  # the engine's limits refuse what is too long; this would only warn
    return Tokenizer(tokenizer, _eos_token_ids(folder, config) | _one(tokenizer.eos_token_id))


def _byte_token_ids(backend: Any) -> frozenset[int]:
    """Tokens that stand for one byte each, in tokenizers that fall back to bytes."""
    ids = (backend.token_to_id(f"<0x{byte:02X}>") for byte in range(256))
    return frozenset(token_id for token_id in ids if token_id is not None)


def _eos_token_ids(folder: Path, config: Mapping[str, Any]) -> set[int]:
    """The ends that the model's configs name, generation_config.json before config.json."""
    generation = folder / "generation_config.json"
    named = read_json(generation).get("eos_token_id") if generation.is_file() else None
    ids = config.get("eos_token_id") if named is None else named
    return set(ids) if isinstance(ids, (list, tuple)) else _one(ids)


def _one(token_id: Any) -> set[int]:
    return set() if token_id is None else {int(token_id)}


def _variables(template: str) -> set[str]:
    """Names that a Jinja template takes from outside."""
    environment = jinja2.Environment(extensions=["jinja2.ext.loopcontrols"])
    environment.globals.clear()
    try:
        return jinja2.meta.find_undeclared_variables(environment.parse(template))
    except jinja2.TemplateSyntaxError:  # Transformers' own tags, such as {% generation %}
        return {"tools"} if "tools" in template else set()
