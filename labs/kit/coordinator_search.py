"""Every order in which a few requests with one input can arrive, finish their prompt, complete and fail.

Breadth first, on the coordinator itself: a state is replayed from the actions that lead to it, so the first way found
to a bad state is a shortest one. What a coordinator may do is checked against the world, which knows who is alive.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from labs.kit.coordinator_states import KINDS, Design, State
from labs.kit.table import text_table
from minivllm.config import SamplingParams
from minivllm.request import Request, UnknownRequestError
from minivllm.stats import Counters

IDS = ("a", "b", "c")
WAITING, COMPUTING, ANSWERING = "waiting", "computing", "answering"
_PROMPT = (1, 2, 3)


class Action(NamedTuple):
    name: str
    what: str

    def __str__(self) -> str:
        return f"{self.name} {self.what}"


ARRIVES, HAS_ITS_PROMPT, COMPLETES, FAILS = "arrives", "has its prompt computed", "completes", "fails"
IS_MISNAMED = "ends and is reported under another name"
Path = tuple[Action, ...]


@dataclass
class Found:
    """What a search has met. Paths are shortest ones; None: there is no such state."""

    num_states: int = 0
    contradictions: dict[str, Path] = field(default_factory=dict)
    lost: Path | None = None
    """Somebody waits and nobody computes: it will wait for ever."""
    lost_says: list[str] = field(default_factory=list)
    """The contradictions of that state: what an assertion could have caught."""
    num_lost: int = 0
    leaked: Path | None = None
    """All have ended, and the coordinator remembers something."""
    num_misnamed: int = 0
    num_reported: int = 0
    """Ends under a name nobody knows, and how many of them raised an error."""


def search(design: Design, ids: Sequence[str] = IDS, *, with_misnamed_ends: bool = False) -> Found:
    """Follow every order of events over `ids`, until all have ended."""
    found = Found()
    seen: set[object] = set()
    frontier: deque[Path] = deque([()])
    while frontier:
        path = frontier.popleft()
        world = _World(design, ids, path)
        if path and path[-1].what == IS_MISNAMED:
            found.num_misnamed += 1
            found.num_reported += world.has_raised
        if world.has_raised or world.facts() in seen:
            continue
        seen.add(world.facts())
        _look(world, path, found)
        frontier.extend((*path, action) for action in world.possible(with_misnamed_ends))
    found.num_states = len(seen)
    return found


def _look(world: _World, path: Path, found: Found) -> None:
    for kind in world.state.contradictions():
        found.contradictions.setdefault(kind, path)
    statuses = world.alive.values()
    if WAITING in statuses and COMPUTING not in statuses:
        found.num_lost += 1
        if found.lost is None:
            found.lost, found.lost_says = path, world.state.contradictions()
    if not world.alive and world.state != world.fresh_state:
        found.leaked = found.leaked or path


class _World:
    """The requests as they are, and the coordinator that was told so."""

    def __init__(self, design: Design, ids: Sequence[str], path: Path) -> None:
        self._ids = ids
        self._num_arrived = 0
        self._flights = design.make(Counters())
        self._read = design.read
        self.fresh_state = design.read(self._flights)
        self.alive: dict[str, str] = {}
        self.has_raised = False
        for action in path:
            self._act(action)

    @property
    def state(self) -> State:
        return self._read(self._flights)

    def facts(self) -> object:
        """What the future depends on."""
        return self._num_arrived, tuple(sorted(self.alive.items())), self.state

    def possible(self, with_misnamed_ends: bool) -> list[Action]:
        actions = [Action(self._ids[self._num_arrived], ARRIVES)] if self._num_arrived < len(self._ids) else []
        for name, status in self.alive.items():
            if status == COMPUTING:
                actions.append(Action(name, HAS_ITS_PROMPT))
            if status == ANSWERING:
                actions.append(Action(name, COMPLETES))
            actions.append(Action(name, FAILS))
            actions += [Action(name, IS_MISNAMED)] if with_misnamed_ends else []
        return actions

    def _act(self, action: Action) -> None:
        name, what = action
        if what == ARRIVES:
            self._num_arrived += 1
            self.alive[name] = COMPUTING if self._flights.arrive(_request(name)) else WAITING
            return
        if what == HAS_ITS_PROMPT:
            self.alive[name] = ANSWERING
            self._go_on(lambda: self._flights.prompt_computed(_request(name)))
            return
        has_completed = self.alive.pop(name) == ANSWERING and what != FAILS
        told = f"cmpl-{name}" if what == IS_MISNAMED else name
        self._go_on(lambda: self._flights.ended(told, has_completed))

    def _go_on(self, tell: Callable[[], list[str]]) -> None:
        try:
            freed = tell()
        except UnknownRequestError:
            self.has_raised = True
            return
        for name in freed:
            if name in self.alive:  # else one that ended is set free, and computes nothing for anybody
                self.alive[name] = COMPUTING


def _request(name: str) -> Request:
    return Request(name, _PROMPT, SamplingParams(), None, 0.0)


def impossible_states(design: Design, ids: Sequence[str] = IDS) -> Counter[str]:
    """How many states the fields of a design can hold ("all"), how many make no sense, and of which kinds."""
    counted = Counter({"all": 0, "impossible": 0, **dict.fromkeys(KINDS, 0)})
    for state in design.every_state(ids):
        kinds = state.contradictions()
        counted["all"] += 1
        counted["impossible"] += bool(kinds)
        counted.update(kinds)
    return counted


def path_text(path: Path | None) -> str:
    return "never" if path is None else ", ".join(map(str, path))


def designs_table(designs: Sequence[Design], ids: Sequence[str] = IDS) -> str:
    """What each design can write down, and what of it the search has met."""
    counted = [impossible_states(design, ids) for design in designs]
    found = [search(design, ids) for design in designs]
    rows: list[list[object]] = [
        ["states it can write down", *(one["all"] for one in counted)],
        ["impossible ones among them", *(one["impossible"] for one in counted)],
        *([f"- {kind}", *(one[kind] for one in counted)] for kind in KINDS),
        ["states met, in all orders of events", *(one.num_states for one in found)],
        ["impossible ones met", *(len(one.contradictions) for one in found)],
        ["states with a lost request met", *(one.num_lost for one in found)],
    ]
    return text_table([f"{len(ids)} requests", *(design.name for design in designs)], rows)
