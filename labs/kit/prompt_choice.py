"""Which two prompts the learner looks at: a named pair before or after its repair, or two texts of their own.

Everything that was looked at is noted in the labbook.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from labbook.explain import PAGE_TOKENS
from labs.kit.arrangements import SIDES, Arrangement
from labs.kit.ferry_desk import Ask
from labs.kit.prompt_pair import PromptPair, compare
from labs.kit.session import Session

OWN_TEXTS = "two texts of your own"
OWN_FIRST = "It is 09:41. The ferry leaves from the north pier, and a dog needs a ticket of its own."
OWN_SECOND = "It is 09:42. The ferry leaves from the north pier, and a dog needs a ticket of its own."


class PromptChoice:
    """`names` are the titles of the arrangements, and `OWN_TEXTS`. Pairs are rendered when they are looked at."""

    def __init__(
        self,
        arrangements: Sequence[Arrangement],
        asks: Sequence[Ask],
        tokenizer: Any,
        session: Session,
        page_tokens: int = PAGE_TOKENS,
    ) -> None:
        self._arrangements = {one.title: one for one in arrangements}
        self._asks = tuple(asks)
        self._tokenizer = tokenizer
        self._session = session
        self._page_tokens = page_tokens

    @property
    def names(self) -> list[str]:
        return [*self._arrangements, OWN_TEXTS]

    def look(self, name: str, side: str) -> PromptPair:
        """One arrangement, "before" or "after" its repair. Raises ValueError for a name or a side that is none."""
        if name not in self._arrangements:
            raise ValueError(f"no prompt is called {name!r}: choose one of {', '.join(self._arrangements)}")
        if side not in SIDES:
            raise ValueError(f"side is {side!r}: choose one of {', '.join(SIDES)}")
        first, second = self._arrangements[name].messages(side, self._asks)
        return self._noted(
            compare(
                {"messages": first},
                {"messages": second},
                self._tokenizer,
                title=f"{name}, {side}",
                page_tokens=self._page_tokens,
            )
        )

    def look_at_texts(self, first: str, second: str) -> PromptPair:
        """Two texts as they are, without a chat template."""
        bodies = {"prompt": first}, {"prompt": second}
        return self._noted(compare(*bodies, self._tokenizer, title=OWN_TEXTS, page_tokens=self._page_tokens))

    def _noted(self, pair: PromptPair) -> PromptPair:
        told = {"label": pair.title, "cause": pair.explanation.cause, "page_tokens": pair.page_tokens, **pair.counts}
        self._session.note("prompt-pair", told)
        return pair
