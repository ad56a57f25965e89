"""Lab 07, a solution: a flight is a list, its leader first; released ids are remembered until they end."""

from __future__ import annotations

from collections.abc import Sequence

from minivllm.request import Request, UnknownRequestError

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
        self.flight_of_key: dict[object, list[str]] = {}
        self.key_of_id: dict[str, object] = {}
        self.released: set[str] = set()

    def arrive(self, request: Request) -> bool:
        """Whether the request may run. False: it waits, until another call returns its id."""
        key = (request.cache_salt, tuple(request.prompt_token_ids))
        flight = self.flight_of_key.setdefault(key, [])
        flight.append(request.request_id)
        self.key_of_id[request.request_id] = key
        return len(flight) == 1

    def prompt_computed(self, request: Request) -> list[str]:
        """The prompt of a running request is computed. Returns the ids that may run now."""
        is_in_flight = request.request_id in self.key_of_id
        return self.release(request.request_id) if self.release_after_prefill and is_in_flight else []

    def ended(self, request_id: str, completed: bool) -> list[str]:
        """A request is over; not `completed` when it failed or was aborted. Returns the ids that may run now.

        Raises UnknownRequestError for an id that never arrived, or has ended before.
        """
        if request_id in self.released:
            self.released.remove(request_id)
            return []
        if request_id not in self.key_of_id:
            raise UnknownRequestError(f"request {request_id!r} is unknown: it never arrived, or has ended before")
        flight = self.flight_of_key[self.key_of_id[request_id]]
        is_leader = flight[0] == request_id
        if is_leader and completed:
            followers = self.release(request_id)
            self.released.remove(request_id)
            return followers
        return self.leave(request_id, flight, is_leader)

    def leave(self, request_id: str, flight: list[str], is_leader: bool) -> list[str]:
        """One request goes without having released anybody; a lost leader hands over to the first follower."""
        flight.remove(request_id)
        key = self.key_of_id.pop(request_id)
        if not flight:
            del self.flight_of_key[key]
        return flight[:1] if is_leader else []

    def release(self, leader: str) -> list[str]:
        """The flight is gone; its requests are remembered until they end."""
        flight = self.flight_of_key.pop(self.key_of_id[leader])
        for request_id in flight:
            del self.key_of_id[request_id]
        self.released.update(flight)
        return flight[1:]


def review() -> set[str]:
    """The letters of all true statements about the patch, as in {"a", "d"}."""
    return {"a", "c", "e"}
