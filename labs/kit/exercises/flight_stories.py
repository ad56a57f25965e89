"""Stories of single flight: what can happen to a few requests, in every order, and what must follow each time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from labs.kit.exercises.part import Answer, Wrong
from minivllm.request import UnknownRequestError

Event = tuple[str, str]
MODES = {"release_on_finish": False, "release_after_prefill": True}


@dataclass
class Model:
    """Flights as lists of ids, leader first, and what each request may do next. Slow, and nothing is ever shared."""

    after_prefill: bool
    keys: dict[str, Any]
    flights: list[list[str]] = field(default_factory=list)
    arrived: list[str] = field(default_factory=list)
    computed: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)

    def waits(self, name: str) -> bool:
        return any(name in flight[1:] for flight in self.flights)

    def possible(self) -> Iterator[Event]:
        """What can happen next, to whom. Names arrive in order: another order is the same story with other names."""
        for name in self.keys:
            if name not in self.arrived:
                yield "arrive", name
                break
        for name in self.arrived:
            if name in self.gone:
                continue
            yield "lost", name
            if not self.waits(name):
                yield ("completed" if name in self.computed else "prompt_computed"), name

    def do(self, event: Event) -> Any:
        kind, name = event
        if kind == "arrive":
            self.arrived.append(name)
            mine = next((flight for flight in self.flights if self.keys[flight[0]] == self.keys[name]), None)
            self.flights.append([name]) if mine is None else mine.append(name)
            return mine is None
        flight = next((flight for flight in self.flights if name in flight), None)
        if kind == "prompt_computed":
            self.computed.add(name)
            if flight is None or not self.after_prefill:
                return []
            self.flights.remove(flight)
            return flight[1:]
        self.gone.add(name)
        if flight is None:
            return []
        if flight[0] == name and kind == "completed":
            self.flights.remove(flight)
            return flight[1:]
        was_leader = flight[0] == name
        flight.remove(name)
        if not flight:
            self.flights.remove(flight)
        return flight[:1] if was_leader else []


def request(name: str, key: Any) -> Any:
    return SimpleNamespace(
        request_id=name, cache_salt=key[0], prompt_token_ids=list(key[1]), num_prompt_tokens=2, is_prefilling=False
    )


def told(events: list[Event], mode: str) -> str:
    words = {
        "arrive": "{} arrives",
        "prompt_computed": "{}'s prompt is computed",
        "completed": "{} completes",
        "lost": "{} is aborted or fails",
    }
    return f"{mode}:  " + "  |  ".join(words[kind].format(name) for kind, name in events)


def play(answer: Answer, mode: str, keys: dict[str, Any], events: list[Event]) -> tuple[Any, Model]:
    """All events on a new coordinator, each answer compared with the model's."""
    coordinator, model = answer.MyCoordinator(MODES[mode]), Model(MODES[mode], keys)
    requests = {name: request(name, key) for name, key in keys.items()}
    for number, event in enumerate(events, start=1):
        kind, name = event
        expected = model.do(event)
        try:
            actual = call(coordinator, kind, name, requests)
        except UnknownRequestError as error:
            raise Wrong(
                "a known request is called unknown",
                drawing=told(events[:number], mode),
                expected=expected,
                actual=f"UnknownRequestError: {error}",
            ) from None
        if actual != expected:
            raise Wrong(
                "other requests may run than should",
                drawing=told(events[:number], mode),
                expected=expected,
                actual=actual,
            )
    return coordinator, model


def call(coordinator: Any, kind: str, name: str, requests: dict[str, Any]) -> Any:
    if kind == "arrive":
        return coordinator.arrive(requests[name])
    if kind == "prompt_computed":
        return list(coordinator.prompt_computed(requests[name]))
    return list(coordinator.ended(name, kind == "completed"))


def interleavings(mode: str, keys: dict[str, Any]) -> Iterator[list[Event]]:
    """Every history, the shorter ones first, up to the point where all have ended."""
    waiting: list[list[Event]] = [[]]
    for events in waiting:
        model = Model(MODES[mode], keys)
        for event in events:
            model.do(event)
        following = [[*events, event] for event in model.possible()]
        waiting.extend(following)
        yield events
