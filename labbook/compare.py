"""Two runs side by side: counts first, then times; and whether they may be compared at all.

Two numbers say something about a cache only when everything else was the same. What is not known is said to be so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from labbook.errors import UsageError
from labbook.record import Record
from labbook.run_numbers import Number, Reach, counts, times

# What has to be equal, and where a record tells it.
CONDITIONS = {
    "experiment": ("experiment",),
    "model": ("model",),
    "identity": ("identity",),
    "KV precision": ("kv_precision",),
    "prompt hash": ("prompt_sha256",),
    "machine": ("environment", "device"),
}


class NotComparableError(UsageError):
    """Two runs that differ in more than what is compared; the message names it with both values."""


@dataclass(frozen=True)
class Condition:
    """`a` and `b` are None where a record does not tell."""

    name: str
    a: Any
    b: Any

    @property
    def is_known(self) -> bool:
        return self.a is not None and self.b is not None

    @property
    def differs(self) -> bool:
        return self.is_known and self.a != self.b


@dataclass(frozen=True)
class Row:
    """One number of both runs; None where a record does not tell."""

    name: str
    unit: str
    a: float | None
    b: float | None
    a_reach: Reach | None = None
    b_reach: Reach | None = None

    @property
    def ratio(self) -> float | None:
        """B over A."""
        return None if self.a is None or self.b is None or not self.a else self.b / self.a

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "b_over_a": self.ratio}


@dataclass(frozen=True)
class Comparison:
    conditions: tuple[Condition, ...]
    counts: tuple[Row, ...]
    times: tuple[Row, ...]
    verdicts: tuple[str | None, str | None]

    @property
    def differing(self) -> list[Condition]:
        """What differs all the same: only with `force` is there any."""
        return [condition for condition in self.conditions if condition.differs]

    @property
    def unknown(self) -> list[Condition]:
        return [condition for condition in self.conditions if not condition.is_known]

    def as_dict(self) -> dict[str, Any]:
        return {
            "verdicts": {"a": self.verdicts[0], "b": self.verdicts[1]},
            "forced": bool(self.differing),
            "same": [condition.name for condition in self.conditions if condition.is_known and not condition.differs],
            "differing": [asdict(condition) for condition in self.differing],
            "not_known": [asdict(condition) for condition in self.unknown],
            "counts": [row.as_dict() for row in self.counts],
            "times": [row.as_dict() for row in self.times],
        }


def compare(a: Record, b: Record, force: bool = False) -> Comparison:
    """Compare two runs. Raises NotComparableError when they differ in a condition, unless `force` is given."""
    conditions = tuple(Condition(name, _at(a, place), _at(b, place)) for name, place in CONDITIONS.items())
    comparison = Comparison(
        conditions,
        tuple(_rows(counts(a), counts(b))),
        tuple(_rows(times(a), times(b))),
        (_text(a.get("verdict")), _text(b.get("verdict"))),
    )
    if comparison.differing and not force:
        told = "; ".join(f"{it.name} is {shown(it.a)} in A and {shown(it.b)} in B" for it in comparison.differing)
        raise NotComparableError(f"these two runs cannot be compared: {told}. --force compares them all the same")
    return comparison


def shown(value: object) -> str:
    """A condition's value on one line."""
    if value is None:
        return "not known"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {shown(one)}" for key, one in sorted(value.items())) + "}"
    return str(value)


def _rows(a: dict[str, Number], b: dict[str, Number]) -> Iterator[Row]:
    for name in dict.fromkeys([*a, *b]):
        of_a, of_b = a.get(name), b.get(name)
        known = of_a or of_b
        yield Row(
            name=name,
            unit=known.unit if known else "",
            a=of_a.value if of_a else None,
            b=of_b.value if of_b else None,
            a_reach=of_a.reach if of_a else None,
            b_reach=of_b.reach if of_b else None,
        )


def _at(record: Record, place: tuple[str, ...]) -> Any:
    value: Any = record
    for name in place:
        value = value.get(name) if isinstance(value, dict) else None
    return None if value in ("", {}) else value


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
