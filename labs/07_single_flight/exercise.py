"""Lab 07: single flight. The question is in README.md; `labs check 07` says how far you are."""

from __future__ import annotations

from collections.abc import Sequence

from minivllm.request import Request, UnknownRequestError  # noqa: F401  (what `ended` raises)

History = Sequence[tuple[str, str, object]]


def slow_waiting(history: History, release_after_prefill: bool) -> set[str]:
    """Who waits after all this has happened, slowly: the whole history is played again, and all of it is kept.

    Its entries are ("arrive", id, key), ("prompt_computed", id, None), ("completed", id, None), ("lost", id, None).
    """
    flights: list[list[str]] = []  # the ids of each flight, its leader first
    key_of = {name: key for event, name, key in history if event == "arrive"}
    for event, name, key in history:
        mine = next((flight for flight in flights if name in flight), None)
        if event == "arrive":
            same = next((flight for flight in flights if key_of[flight[0]] == key), None)
            flights.append([name]) if same is None else same.append(name)
        elif (
            mine is not None
            and mine[0] == name
            and (event == "completed" or (event == "prompt_computed" and release_after_prefill))
        ):
            flights.remove(mine)
        elif mine is not None and event in ("completed", "lost"):
            mine.remove(name)
            if not mine:
                flights.remove(mine)
    return {name for flight in flights for name in flight[1:]}


class Given:
    """What the engine also asks of a coordinator, and this one does not need."""

    goes_page_by_page = False

    def begin_step(self) -> None:
        return None

    def claim(self, request: Request, start: int, end: int) -> int:
        return end

    def must_publish(self, request: Request) -> int:
        """The engine publishes the prompt when followers are released after the prefill."""
        return request.num_prompt_tokens if self.release_after_prefill and not request.is_prefilling else 0


class MyCoordinator(Given):
    """Of a request you need `request.request_id`, `request.prompt_token_ids` and `request.cache_salt`."""

    def __init__(self, release_after_prefill: bool) -> None:
        self.release_after_prefill = release_after_prefill
        raise NotImplementedError("MyCoordinator is not written yet")

    def arrive(self, request: Request) -> bool:
        """Whether the request may run. False: it waits, until another call returns its id."""
        raise NotImplementedError("arrive is not written yet")

    def prompt_computed(self, request: Request) -> list[str]:
        """The prompt of a running request is computed. Returns the ids that may run now."""
        raise NotImplementedError("prompt_computed is not written yet")

    def ended(self, request_id: str, completed: bool) -> list[str]:
        """A request is over; not `completed` when it failed or was aborted. Returns the ids that may run now.

        Raises UnknownRequestError for an id that never arrived, or has ended before.
        """
        raise NotImplementedError("ended is not written yet")


def review() -> set[str]:
    """The letters of all true statements about the patch, as in {"a", "d"}."""
    raise NotImplementedError("review is not written yet")
