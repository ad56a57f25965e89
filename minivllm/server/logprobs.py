"""Log probabilities in OpenAI's two shapes: objects for chats, columns for text completions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minivllm.request import TokenLogprobs

TokenText = Callable[[int], str]


def chat_logprobs(rows: Sequence[TokenLogprobs], text_of: TokenText) -> dict[str, Any]:
    """`choices[].logprobs` of a chat: one object per token, each with its alternatives, natural logs."""
    content = []
    for row in rows:
        entry = _entry(row.token_id, row.logprob, text_of)
        entry["top_logprobs"] = [_entry(token_id, logprob, text_of) for token_id, logprob in row.top]
        content.append(entry)
    return {"content": content, "refusal": None}


class TextLogprobs:
    """`choices[].logprobs` of a text completion. Keeps the offset, in characters, from chunk to chunk."""

    def __init__(self, text_of: TokenText) -> None:
        self._text_of = text_of
        self._offset = 0

    def columns(self, token_ids: Sequence[int], rows: Sequence[TokenLogprobs | None]) -> dict[str, Any]:
        """A row that is None is the prompt's first token: nothing precedes it, so it has no probability.

        An entry of `top_logprobs` holds the alternatives asked for and the token itself.
        """
        columns: dict[str, Any] = {"tokens": [], "token_logprobs": [], "top_logprobs": [], "text_offset": []}
        for token_id, row in zip(token_ids, rows, strict=True):
            text = self._text_of(token_id)
            columns["tokens"].append(text)
            columns["token_logprobs"].append(None if row is None else row.logprob)
            columns["top_logprobs"].append(None if row is None else self._alternatives(row))
            columns["text_offset"].append(self._offset)
            self._offset += len(text)
        return columns

    def _alternatives(self, row: TokenLogprobs) -> dict[str, float]:
        """Best first wins where two tokens spell the same text."""
        by_text: dict[str, float] = {}
        for token_id, logprob in (*row.top, (row.token_id, row.logprob)):
            by_text.setdefault(self._text_of(token_id), logprob)
        return by_text


def _entry(token_id: int, logprob: float, text_of: TokenText) -> dict[str, Any]:
    text = text_of(token_id)
    is_part_of_character = "\N{REPLACEMENT CHARACTER}" in text
    return {"token": text, "logprob": logprob, "bytes": None if is_part_of_character else list(text.encode())}
