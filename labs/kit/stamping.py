"""A small application that does what many do unasked: it writes the time into every system prompt as it sends it."""

from __future__ import annotations

from collections.abc import Callable

from labbook.answer import Answer
from labbook.client import Client
from labbook.prompts import Message


class StampingApplication:
    """Sends conversations that its user saved. `clock` gives the time of each request, as text.

    What it sends is not what the user saved: the first line of the system prompt gets the time behind it.
    """

    def __init__(self, base_url: str, model: str, clock: Callable[[], str]) -> None:
        self._client = Client(base_url)
        self._model = model
        self._clock = clock

    def ask(self, saved: list[Message]) -> Answer:
        """One answer token for a saved conversation."""
        system, *rest = saved
        first_line, break_, more = system["content"].partition("\n")
        stamped = f"{first_line} Current time: {self._clock()}.{break_}{more}"
        return self._client.chat(self._model, [{**system, "content": stamped}, *rest], max_tokens=1)

    def close(self) -> None:
        self._client.close()
