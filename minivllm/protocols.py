"""The protocol of each component that can be replaced: `LLM(..., components={"prefix_index": MyIndex()})`.

A component is checked against its protocol when the engine is built, so a missing method is reported by name before
any token is computed. None of these hold tensors: they decide, the manager keeps the books, the storage the bytes.
"""

from __future__ import annotations

import enum
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from minivllm.config import ConfigError
from minivllm.request import Request


@runtime_checkable
class PagePool(Protocol):
    """Page ids, their reference counts and the order in which free ones are handed out.

    A page is free (in the free list), active (referenced by page tables) or unreferenced (neither: whoever released
    it last decides whether it is kept as cached or reclaimed). Methods raise on a page in the wrong state.
    """

    num_pages: int
    num_free: int

    def allocate(self) -> int:
        """Take a free page, with one reference. Raises `OutOfPagesError` when none is free."""
        ...

    def retain(self, page_id: int) -> int:
        """Add a reference to an active or unreferenced page; returns the new count."""
        ...

    def release(self, page_id: int) -> int:
        """Drop one reference; returns how many are left."""
        ...

    def reclaim(self, page_id: int) -> None:
        """Put an unreferenced page back into the free list: its content is gone."""
        ...

    def references(self, page_id: int) -> int: ...

    def free_page_ids(self) -> Sequence[int]: ...


@runtime_checkable
class PrefixIndex(Protocol):
    """Map from page key to page id. A key chains its parent's key, so equal keys mean equal prefixes."""

    def lookup(self, token_ids: Sequence[int], max_pages: int, salt: str | None) -> list[int]:
        """Page ids of the longest indexed prefix, whole pages only, at most `max_pages`. Changes nothing."""
        ...

    def insert(
        self, token_ids: Sequence[int], parent_page_id: int | None, page_id: int, salt: str | None
    ) -> int | None:
        """Make one page findable behind its parent (None: first page).

        Returns the page id now found under this key: `page_id`, or the page that was there before with equal content.
        None means that nothing was stored (another page's key collides).
        """
        ...

    def remove(self, page_id: int) -> None:
        """Forget an indexed page. Its children must be gone already."""
        ...

    def parent_of(self, page_id: int) -> int | None: ...

    def page_ids(self, salt: str | None = ...) -> Sequence[int]:
        """Indexed pages, parents before their children; those of one salt when it is given (None is a salt, too)."""
        ...

    def __contains__(self, page_id: object) -> bool: ...

    def __len__(self) -> int: ...


@dataclass(frozen=True, slots=True)
class PageUse:
    """What the books know of a page that becomes a candidate for eviction."""

    depth: int
    """Its place in the page table; 0 is the first page of a sequence."""
    num_restores: int
    """How often it was attached to a request in the place of computing it, since it was computed."""
    content_number: int = 0
    """Grows with every page that is computed: another number, another content in the page."""


@runtime_checkable
class Eviction(Protocol):
    """Which cached page goes next. A page is a candidate from `add` until `remove` or `pop_victim`."""

    def add(self, page_id: int, use: PageUse) -> None:
        """A cached page nobody references any more. Pages of one request arrive deepest first."""
        ...

    def remove(self, page_id: int) -> None:
        """The page is in use again, or dropped for another reason."""
        ...

    def pop_victim(self) -> int:
        """The page to evict next, no longer a candidate. Never a page whose indexed child is a candidate."""
        ...

    def __len__(self) -> int: ...


class Moment(enum.Enum):
    """When the manager asks the publication policy."""

    SCHEDULED = "scheduled"
    """A forward pass is about to compute these tokens. What is published now is withdrawn if it fails."""
    COMPUTED = "computed"
    """A forward pass of this request's tokens has succeeded."""
    ENDED = "ended"
    """The request has ended, by whatever reason but a failed forward pass."""


@runtime_checkable
class Publication(Protocol):
    """When a filled page may be found."""

    def findable_tokens(self, moment: Moment, num_computed_tokens: int, num_prompt_tokens: int) -> int:
        """How many leading tokens may be found now; never more than `num_computed_tokens`.

        At the moment SCHEDULED those are counted as computed that the step is going to compute.
        """
        ...


@runtime_checkable
class Flights(Protocol):
    """Who waits for whom. Decides when a request may be computed, never what it answers.

    Every request that may read the cache is announced by `arrive` and ends with exactly one `ended`.
    """

    goes_page_by_page: bool
    """Whether pages of others may help a request that is under way, so that it looks again before every chunk."""

    def arrive(self, request: Request) -> bool:
        """Whether the request may be scheduled. False: it waits until another call returns its id."""
        ...

    def prompt_computed(self, request: Request) -> list[str]:
        """The prompt of a request is computed and published as far as `must_publish` says; returns ids that go free."""
        ...

    def ended(self, request_id: str, completed: bool) -> list[str]:
        """A request is over, `completed` unless it failed or was aborted; returns ids that may be scheduled now.

        Raises `UnknownRequestError` for an id that never arrived or has ended before.
        """
        ...

    def begin_step(self) -> None:
        """Nothing is being computed: a new step is about to be scheduled."""
        ...

    def claim(self, request: Request, start: int, end: int) -> int:
        """How far a request may compute its prompt tokens from `start` to `end` in this step.

        What it may compute is its own until the step is over. Returns `start` when it has to wait.
        """
        ...

    def must_publish(self, request: Request) -> int:
        """Leading tokens of the computed ones that others wait for, whatever the publication policy says."""
        ...


COMPONENTS: dict[str, type] = {
    "page_pool": PagePool,
    "prefix_index": PrefixIndex,
    "eviction": Eviction,
    "publication": Publication,
    "flights": Flights,
}


def check_components(components: Mapping[str, Any] | None) -> dict[str, Any]:
    """The components by name, each with every method of its protocol. `ConfigError` names what is missing."""
    checked = dict(components or {})
    for name, component in checked.items():
        if name not in COMPONENTS:
            raise ConfigError(f"components has {name!r}, which is not one of {', '.join(COMPONENTS)}")
        if isinstance(component, type):
            raise ConfigError(f"components[{name!r}] is the class {component.__name__}: give an object of it")
        protocol = COMPONENTS[name]
        missing = [member for member in protocol_members(protocol) if not _has(component, protocol, member)]
        if missing:
            raise ConfigError(f"components[{name!r}] ({type(component).__name__}) lacks {', '.join(missing)}")
        for member in protocol_members(protocol):
            _require_arguments(name, component, protocol, member)
    return checked


def _has(component: Any, protocol: type, member: str) -> bool:
    is_method = callable(getattr(protocol, member, None))
    return hasattr(component, member) and (callable(getattr(component, member)) or not is_method)


def _require_arguments(name: str, component: Any, protocol: type, member: str) -> None:
    """A method must take, by position, what the engine gives it."""
    declared, method = getattr(protocol, member, None), getattr(component, member)
    if not inspect.isfunction(declared):
        return
    parameters = list(inspect.signature(declared).parameters.values())[1:]
    needed = [parameter.name for parameter in parameters if parameter.default is parameter.empty]
    try:
        taken = inspect.signature(method)
        taken.bind(*needed)
    except ValueError:  # a callable of C tells no signature
        return
    except TypeError:
        raise ConfigError(
            f"components[{name!r}] ({type(component).__name__}).{member} takes ({', '.join(taken.parameters)}), "
            f"the engine gives {', '.join(needed) or 'nothing'}"
        ) from None


def protocol_members(protocol: type) -> list[str]:
    declared = set(getattr(protocol, "__annotations__", {})) | set(vars(protocol))
    inherited_by_all = set(vars(Protocol)) | set(vars(object))
    own = {name for name in declared if not name.startswith("_") or name in ("__len__", "__contains__")}
    return sorted(own - (inherited_by_all - {"__len__", "__contains__"}))
