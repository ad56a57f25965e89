"""StreamDecoder: text from token ids as they come, never half a character."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

_INCOMPLETE = "\ufffd"  # what a decoder writes for bytes that are not a character (yet)


class StreamDecoder:
    """Decodes one sequence step by step; all `add` results and the `flush` joined equal the decoded whole.

    A character may take several tokens, and a word's leading space may depend on the token before it. So the
    tokens of the last complete piece of text are kept, and decoded again before the new ones:

        context     pending
        [" blue"]   [E2] [98]         decoded: " blue" + U+FFFD: wait
        [" blue"]   [E2] [98] [83]    decoded: " blue" + "☃": give out "☃"; its tokens become the context
    """

    def __init__(
        self,
        decode: Callable[[Sequence[int]], str],
        special_token_ids: Collection[int],
        byte_token_ids: Collection[int] = (),
    ) -> None:
        self._decode = decode
        self._special_token_ids = special_token_ids
        self._byte_token_ids = byte_token_ids  # "<0xE2>" and the like, which are decoded a whole run at a time
        self._context: list[int] = []
        self._context_text = ""
        self._pending: list[int] = []

    def add(self, token_id: int) -> str:
        """The text that this token completes; empty while a character is incomplete."""
        if token_id in self._special_token_ids:
            return ""  # left out of the text, and so no part of a character either
        self._pending.append(token_id)
        if token_id in self._byte_token_ids:
            return ""
        text = self._decode(self._context + self._pending)
        if text.endswith(_INCOMPLETE):
            return ""
        return self._give_out(text)

    def flush(self) -> str:
        """What is left at the end: U+FFFD in place of bytes that never became a character."""
        return self._give_out(self._decode(self._context + self._pending)) if self._pending else ""

    def _give_out(self, text: str) -> str:
        new_text = text[len(self._context_text) :]
        if new_text:  # a context without text would lose the next word's leading space
            self._context, self._pending = self._pending, []
            self._context_text = self._decode(self._context)
        return new_text
