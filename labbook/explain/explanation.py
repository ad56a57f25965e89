"""The answer of `explain`: what is shared, where two prompts part, why, what it costs, and what to do."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from labbook.explain.advice import NONE, UNKNOWN, fix, name
from labbook.explain.arithmetic import reusable
from labbook.explain.rendered import Token
from labbook.explain.words import TOKENS_PER_WORD, UNIT


@dataclass(frozen=True)
class Side:
    """One prompt at the divergence. `token` is None where the prompt has ended."""

    prompt_tokens: int
    token: Token | None
    token_text: str
    before: str
    after: str


@dataclass(frozen=True)
class Explanation:
    """How prompt `b` stands to the earlier prompt `a`.

    `cause` is one of the thirteen, `unknown`, or `none` when nothing is wrong. `position` counts tokens from 0, and is
    None when the prompts are equal. `lost_tokens` are equal in both but stand behind the difference; `gain_tokens` are
    those of whole pages that a prefix cache could reuse as well if they stood before it. Where `unit` is `word` there
    was no tokenizer, and every count is one of words. `notes` tell what else keeps pages from being shared, or makes
    the answer uncertain.
    """

    cause: str
    confidence: str
    position: int | None
    field: str | None
    why: str
    shared_tokens: int
    page_tokens: int
    lost_tokens: int
    gain_tokens: int
    unit: str
    a: Side
    b: Side
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        name(self.cause)  # raises KeyError for a cause that nobody could explain
        if not 0 <= self.shared_tokens <= min(self.a.prompt_tokens, self.b.prompt_tokens):
            raise ValueError(f"{self.shared_tokens} shared tokens are more than a prompt has")

    @property
    def is_alarm(self) -> bool:
        return self.cause != NONE

    @property
    def prompt_tokens(self) -> int:
        return self.b.prompt_tokens

    @property
    def shared_pages(self) -> int:
        return self.shared_tokens // self.page_tokens

    @property
    def reusable_tokens(self) -> int:
        """What a cache of whole pages can spare prompt `b` at most."""
        return reusable(self.shared_tokens, self.prompt_tokens, self.page_tokens)

    @property
    def fix(self) -> str:
        return fix(self.cause)

    @property
    def sharing(self) -> str:
        """The shared prefix in pages, in words: below one page is not the same as nothing."""
        plural = "s" if self.shared_tokens != 1 else ""
        if self.shared_tokens == 0:
            return "no shared prefix"
        if self.shared_tokens < self.page_tokens:
            return f"shared prefix of {self.shared_tokens} is below one page of {self.page_tokens}"
        pages = f"{self.shared_pages:,} page{'s' if self.shared_pages != 1 else ''} of {self.page_tokens}"
        return f"shared prefix of {self.shared_tokens:,} {self.unit}{plural} holds {pages}"

    @property
    def sentence(self) -> str:
        if self.position is None:
            return f"The prompts are equal: {self.sharing}."
        place = f"{self.unit} {self.position:,}, in {self.field}"
        if self.cause == NONE:
            return f"Nothing wrong: {self.why} (from {place} on); {self.sharing}."
        seen = f": {self.why}" if self.why else ""
        if self.cause == UNKNOWN:
            told = f"The prompts part at {place}; the cause is unknown ({self.why or 'nothing familiar is there'})"
        else:
            told = f"The prompts part at {place}, by {name(self.cause)} ({self.confidence}{seen})"
        return f"{told}; {self.sharing}, and {self.lost_tokens:,} equal {self.unit}s behind it are lost."

    @property
    def caveat(self) -> str | None:
        """How uncertain the counts are; None where a tokenizer made them."""
        if self.unit != UNIT:
            return None
        low, high = TOKENS_PER_WORD
        return (
            f"without a tokenizer, counts and positions are of words (pieces between blanks and signs), each about "
            f"{low:g} to {high:g} tokens, and the chat template is not seen: give --base-url or --tokenizer"
        )

    def as_json(self) -> dict[str, Any]:
        told = asdict(self)
        derived = (
            "is_alarm",
            "prompt_tokens",
            "shared_pages",
            "reusable_tokens",
            "fix",
            "sharing",
            "sentence",
            "caveat",
        )
        return {**told, "notes": list(self.notes), **{each: getattr(self, each) for each in derived}}
