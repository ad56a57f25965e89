"""One request of the traffic, as a cache sees it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Access:
    """One request: what it asks the cache for, and what it leaves there.

    `unit_ids` are the prompt in ids of `unit_tokens` tokens each: tokens (1), or prefix blocks of a public trace (512
    or 16), where an id stands for its block and everything before it. The last block may be partial:
    `num_input_tokens` says how many tokens there are.
    """

    unit_ids: tuple[int, ...]
    num_input_tokens: int
    output_ids: tuple[int, ...] = ()  # generated units, when the traffic knows them; public traces do not
    num_output_tokens: int = 0
    arrived_s: float = 0.0  # seconds of trace time
    session: str | None = None  # the conversation or user it belongs to: sticky routing, one cache file each
    salt: str | None = None  # separates tenants: nothing of one salt is found under another
    unit_tokens: int = 1

    def __post_init__(self) -> None:
        if self.unit_tokens < 1:
            raise ValueError(f"unit_tokens is {self.unit_tokens}: a unit holds at least one token")
        if not 0 <= self.num_input_tokens <= len(self.unit_ids) * self.unit_tokens:
            held = f"{len(self.unit_ids)} units of {self.unit_tokens} tokens"
            raise ValueError(f"num_input_tokens is {self.num_input_tokens}, and the prompt has {held}")
        if self.num_output_tokens < 0:
            raise ValueError(f"num_output_tokens is {self.num_output_tokens}: give 0 or more")

    @property
    def kept_ids(self) -> tuple[int, ...]:
        """The units whose keys and values exist once the request has ended, prompt first.

        The last sampled token was never fed back into the model, so it has none.
        """
        if not self.output_ids:
            return self.unit_ids
        return self.unit_ids + (self.output_ids[:-1] if self.unit_tokens == 1 else self.output_ids)
