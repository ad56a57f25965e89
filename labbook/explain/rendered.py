"""A body as the model gets it: its tokens, their text, and what made them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from labbook.explain.body import Body

Token = int | str


@dataclass(frozen=True)
class Rendered:
    """`start(k)` is the place in `text` at which token k begins; `unit` says what a token is here."""

    body: Body
    tokens: Sequence[Token]
    text: str
    start: Callable[[int], int]
    unit: str = "token"

    def token_text(self, position: int) -> str:
        return self.text[self.start(position) : self.start(position + 1)]


class Renderer(Protocol):
    """Makes tokens of bodies."""

    def render(self, body: Body) -> Rendered: ...


Decode = Callable[[Sequence[int]], str]


def decoded(body: Body, ids: Sequence[int], decode: Decode) -> Rendered:
    """What token ids stand for, by a tokenizer that can only decode."""
    text = decode(ids)
    known = {0: 0, len(ids): len(text)}

    def start(position: int) -> int:
        if position not in known:
            # Half a character decodes to U+FFFD: such a token begins where the character begins.
            before = decode(ids[:position])
            known[position] = len(before if text.startswith(before) else before.rstrip("\ufffd"))
        return known[position]

    return Rendered(body, ids, text, start)
