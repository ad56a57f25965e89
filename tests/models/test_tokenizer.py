"""Ids equal those of Transformers' own tokenizer; streamed text equals decoded text."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer as RawTokenizer
from tokenizers import decoders, models, pre_tokenizers

from minivllm.models.errors import ChatTemplateError
from minivllm.models.stream_decoder import StreamDecoder
from minivllm.models.tiny import write_tiny
from minivllm.models.tokenizer import Tokenizer, load_tokenizer

TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {}}}]
CHATS: list[list[dict[str, Any]]] = [
    [{"role": "user", "content": "What is the capital of France?"}],
    [{"role": "system", "content": "You are a pirate."}, {"role": "user", "content": "Ünïcode ☃ 12345\n\n  x"}],
    [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "hello<|end|>"},
        {"role": "user", "content": ""},
    ],
]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    write_tiny(folder)
    return folder


@pytest.fixture(scope="module")
def tokenizer(tiny: Path) -> Tokenizer:
    return load(tiny)


@pytest.fixture(scope="module")
def transformers_tokenizer(tiny: Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(tiny)


def load(folder: Path, **config: Any) -> Tokenizer:
    return load_tokenizer(folder, {"model_type": "llama", **config})


def variant(tiny: Path, folder: Path, **changes: Any) -> Path:
    """A copy of tiny's tokenizer with another tokenizer_config.json; None takes a field away."""
    shutil.copytree(tiny, folder)
    file = folder / "tokenizer_config.json"
    config = json.loads(file.read_text()) | changes
    file.write_text(json.dumps({key: value for key, value in config.items() if value is not None}))
    return folder


@pytest.mark.parametrize("messages", CHATS)
@pytest.mark.parametrize("tools", [None, TOOLS])
@pytest.mark.parametrize("add_generation_prompt", [True, False])
def test_chat_ids_equal_those_of_transformers(
    messages: list[dict[str, Any]],
    tools: list[dict[str, Any]] | None,
    add_generation_prompt: bool,
    tokenizer: Tokenizer,
    transformers_tokenizer: Any,
) -> None:
    theirs = transformers_tokenizer.apply_chat_template(
        messages, tools=tools, add_generation_prompt=add_generation_prompt, return_dict=False
    )
    assert tokenizer.encode_chat(messages, tools, add_generation_prompt) == list(theirs)


def test_a_rendered_chat_has_one_bos_however_it_is_encoded(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode_chat(CHATS[0])
    assert ids.count(0) == 1
    assert tokenizer.encode(tokenizer.render_chat(CHATS[0])) == ids


def test_plain_text_gets_its_bos(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode("page") == [0, *tokenizer.encode("page", add_special_tokens=False)]
    assert tokenizer.encode("") == [0]


def test_template_arguments_reach_the_template(tiny: Path, tmp_path: Path) -> None:
    template = "{% if enable_thinking %}think{% else %}do{% endif %}"
    tokenizer = load(variant(tiny, tmp_path / "t", chat_template=template))
    assert tokenizer.render_chat(CHATS[0], enable_thinking=True) == "think"
    assert tokenizer.render_chat(CHATS[0]) == "do"


def test_tools_are_taken_only_by_a_template_that_reads_them(tokenizer: Tokenizer, tiny: Path, tmp_path: Path) -> None:
    assert tokenizer.supports_tools and "weather" in tokenizer.render_chat(CHATS[0], TOOLS)
    plain = load(variant(tiny, tmp_path / "t", chat_template="{{ messages[0]['content'] }} tools"))
    assert not plain.supports_tools
    with pytest.raises(ChatTemplateError, match="takes no tools"):
        plain.render_chat(CHATS[0], TOOLS)


@pytest.mark.parametrize(
    "template", ["{{ raise_exception('roles must alternate') }}", "{{ messages[5].content.strip() }}"]
)
def test_what_a_template_refuses_is_an_error_of_the_request(template: str, tiny: Path, tmp_path: Path) -> None:
    tokenizer = load(variant(tiny, tmp_path / "t", chat_template=template))
    with pytest.raises(ChatTemplateError, match="the chat template refused"):
        tokenizer.encode_chat(CHATS[0])


def test_a_model_without_a_chat_template_says_so(tiny: Path, tmp_path: Path) -> None:
    tokenizer = load(variant(tiny, tmp_path / "t", chat_template=None))
    assert not tokenizer.has_chat_template and not tokenizer.supports_tools
    with pytest.raises(ChatTemplateError, match="no chat template"):
        tokenizer.encode_chat(CHATS[0])


def test_the_ends_are_those_of_the_generation_config_and_of_the_tokenizer(tiny: Path, tmp_path: Path) -> None:
    folder = variant(tiny, tmp_path / "t")
    assert load(folder, eos_token_id=5).eos_token_ids == {1, 5}
    (folder / "generation_config.json").write_text('{"eos_token_id": [7, 8]}')
    assert load(folder, eos_token_id=5).eos_token_ids == {1, 7, 8}


def test_the_digest_follows_the_vocabulary_and_not_the_place(tiny: Path, tmp_path: Path, tokenizer: Tokenizer) -> None:
    assert load(variant(tiny, tmp_path / "same")).digest == tokenizer.digest
    other = variant(tiny, tmp_path / "other")
    content = json.loads((other / "tokenizer.json").read_text())
    content["model"]["merges"].pop()
    (other / "tokenizer.json").write_text(json.dumps(content))
    assert load(other).digest != tokenizer.digest


def test_a_token_shows_its_text_and_a_special_one_its_name(tokenizer: Tokenizer) -> None:
    assert tokenizer.token_text(1) == "<|end|>"
    assert [tokenizer.token_text(index) for index in tokenizer.encode("a", add_special_tokens=False)] == ["a"]


def test_ids_beyond_the_tokenizer_have_no_text(tokenizer: Tokenizer) -> None:
    assert tokenizer.vocab_size == 512
    assert tokenizer.decode([600]) == "" == tokenizer.token_text(600)


def spaced_tokenizer() -> RawTokenizer:
    """A tokenizer in the manner of Llama 2: spaces as marks, bytes as tokens of their own."""
    words = ["<unk>", "<s>", "▁", "▁a", "▁the", "a", "b", "page", "▁page", *(f"<0x{byte:02X}>" for byte in range(256))]
    tokenizer = RawTokenizer(models.BPE({word: index for index, word in enumerate(words)}, [], byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.add_special_tokens(["<unk>", "<s>"])
    return tokenizer


def streamed(decoder: StreamDecoder, ids: list[int]) -> list[str]:
    return [*(decoder.add(token_id) for token_id in ids), decoder.flush()]


token_ids = st.lists(st.integers(0, 511), max_size=40)


@given(ids=token_ids)
def test_streamed_pieces_join_to_the_decoded_text(ids: list[int], tokenizer: Tokenizer) -> None:
    assert "".join(streamed(tokenizer.stream_decoder(), ids)) == tokenizer.decode(ids)


@given(ids=st.lists(st.integers(0, 264), max_size=30))
def test_streamed_pieces_join_with_marked_spaces_too(ids: list[int]) -> None:
    raw = spaced_tokenizer()
    assert "".join(streamed(StreamDecoder(raw.decode, {0, 1}, range(9, 265)), ids)) == raw.decode(ids)


@given(text=st.text(max_size=30))
def test_no_piece_of_a_text_is_half_a_character(text: str, tokenizer: Tokenizer) -> None:
    text = text.replace("\ufffd", "").replace("<|", "")  # special tokens are no text
    pieces = streamed(tokenizer.stream_decoder(), tokenizer.encode(text))
    assert "\ufffd" not in "".join(pieces) and "".join(pieces) == text


def test_a_character_of_several_tokens_comes_whole(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode("☃", add_special_tokens=False)
    assert len(ids) == 3
    assert streamed(tokenizer.stream_decoder(), ids) == ["", "", "☃", ""]


def test_bytes_that_never_became_a_character_come_at_the_end(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode("a☃", add_special_tokens=False)[:-1]
    assert streamed(tokenizer.stream_decoder(), ids) == ["a", "", "", "\ufffd"]


def test_special_tokens_are_no_text(tokenizer: Tokenizer) -> None:
    decoder = tokenizer.stream_decoder()
    assert [decoder.add(token_id) for token_id in (0, 2, 1)] == ["", "", ""] and decoder.flush() == ""
