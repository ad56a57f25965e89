"""One line of the doctor's answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Check:
    """`found` is what there is, in a few words; `repair` the command that helps, for a check that failed."""

    name: str
    is_ok: bool
    found: str
    repair: str = ""
    is_required: bool = True

    def __post_init__(self) -> None:
        if not self.is_ok and not self.repair:
            raise ValueError(f"the check of {self.name} failed and names no repair")

    @property
    def stops_the_course(self) -> bool:
        return self.is_required and not self.is_ok

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "ok": self.is_ok,
            "required": self.is_required,
            "found": self.found,
            "repair": None if self.is_ok else self.repair,
        }
