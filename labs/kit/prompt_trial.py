"""Two prompts sent one after the other: what the server reused of the second, beside what the bodies had said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from labbook.answer import Answer
from labbook.client import Client
from labbook.explain import Explanation, explain
from labbook.explain.rendered import Renderer
from labbook.prompts import Message

_MAX_TOKENS = 1


@dataclass(frozen=True)
class Trial:
    """`explanation` was made from the two bodies alone. Cached tokens are None where the server does not tell."""

    name: str
    explanation: Explanation
    first: Answer
    second: Answer

    @property
    def cached_tokens(self) -> int | None:
        return self.second.cached_tokens

    @property
    def prompt_tokens(self) -> int:
        """Of the second prompt, as the server counts; as the explanation does where it does not tell."""
        return self.explanation.prompt_tokens if self.second.prompt_tokens is None else self.second.prompt_tokens

    @property
    def computed_tokens(self) -> int:
        """Prompt tokens of the second request that were not restored; all where the server does not tell."""
        return self.prompt_tokens - (self.cached_tokens or 0)

    @property
    def is_as_foretold(self) -> bool:
        """The server restored exactly the whole pages that both prompts share."""
        return self.cached_tokens == self.explanation.reusable_tokens

    def as_dict(self) -> dict[str, Any]:
        """The fields for a record."""
        return {
            "name": self.name,
            "cause": self.explanation.cause,
            "prompt_tokens": self.prompt_tokens,
            "first_cached_tokens": self.first.cached_tokens,
            "cached_tokens": self.cached_tokens,
            "foretold_tokens": self.explanation.reusable_tokens,
        }


@dataclass(frozen=True)
class Sender:
    """Sends pairs of prompts to one server. `model` is the name that it knows."""

    client: Client
    model: str
    renderer: Renderer

    def send(self, name: str, messages: Sequence[list[Message]]) -> Trial:
        """Both prompts in order, one answer token each."""
        first, second = messages
        explanation = explain(self.body(first), self.body(second), self.renderer)
        answers = [self.client.chat(self.model, one, max_tokens=_MAX_TOKENS) for one in (first, second)]
        return Trial(name, explanation, *answers)

    def body(self, messages: list[Message]) -> dict[str, Any]:
        """What `labbook explain` wants to see of a request."""
        return {"model": self.model, "messages": messages}


def foretold(trials: Sequence[Trial]) -> str:
    """Whether the server did what the bodies alone had said, in a sentence."""
    if any(trial.cached_tokens is None for trial in trials):
        return "This server does not tell its cached tokens, so only the explanation can be trusted."
    exact = [trial.is_as_foretold for trial in trials].count(True)
    told = f"In {exact} of {len(trials)} pairs the server restored exactly the whole pages that both prompts share"
    if exact == len(trials):
        return f"{told}."
    others = ", ".join(
        f"{trial.name}: {trial.cached_tokens} for {trial.explanation.reusable_tokens}"
        for trial in trials
        if not trial.is_as_foretold
    )
    return f"{told}. Its pages may have another size than {trials[0].explanation.page_tokens} tokens ({others})."


def same_counts(trials: Sequence[Trial]) -> str:
    """Whether the tokenizer here counts a prompt as the server does, in a sentence."""
    told = [trial for trial in trials if trial.second.prompt_tokens is not None]
    if not told:
        return "This server does not tell how many tokens a prompt has."
    if any(trial.explanation.unit != "token" for trial in told):
        return "Words were compared here, so the counts differ from the server's tokens; places and causes hold."
    equal = sum(trial.second.prompt_tokens == trial.explanation.prompt_tokens for trial in told)
    return f"{equal} of {len(told)} prompts have as many tokens here as on the server."
