"""The four parameters of every notebook, from its cell, from papermill or from the environment.

A value that was changed in the notebook wins (papermill changes it, too), then `LAB_MODEL`, `LAB_FAST`, `LAB_BASE_URL`
and `LAB_LABBOOK`, then the default. The environment is there because nbval cannot change a cell.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

DEFAULT_MODEL = "smollm2-135m"
NAMES = ("MODEL", "FAST", "BASE_URL", "LABBOOK")

_YES, _NO = ("1", "true", "yes", "on"), ("0", "false", "no", "off", "")


class ParameterError(ValueError):
    """A parameter has a value that makes no sense; the message names it."""


@dataclass(frozen=True)
class Parameters:
    """`base_url` empty: the notebook starts the engine itself. `model` is a name that the server knows."""

    model: str
    fast: bool
    base_url: str
    labbook: Path

    @property
    def starts_engine(self) -> bool:
        return not self.base_url

    @property
    def model_or_only(self) -> str | None:
        """The model to ask for. None on a server of yours, when none was named: it may list exactly one."""
        return None if self.base_url and self.model == DEFAULT_MODEL else self.model

    def choose(self, *, fast: int, full: int) -> int:
        """A size for this run: smaller in fast mode."""
        return fast if self.fast else full


def resolve(
    model: str = DEFAULT_MODEL,
    fast: bool | str = False,
    base_url: str = "",
    labbook: str = "",
    environment: Mapping[str, str] | None = None,
) -> Parameters:
    """The parameters of this run. Raises ParameterError."""
    surroundings = os.environ if environment is None else environment
    is_fast = _flag("FAST", fast) or _flag("LAB_FAST", surroundings.get("LAB_FAST", ""))
    model = model if model != DEFAULT_MODEL else surroundings.get("LAB_MODEL") or model
    if not isinstance(model, str) or not model.strip():
        raise ParameterError(f"MODEL is {model!r}: give a name such as {DEFAULT_MODEL}, a folder, or a Hub id")
    return Parameters(
        model=model.strip(),
        fast=is_fast,
        base_url=(base_url or surroundings.get("LAB_BASE_URL", "")).strip(),
        labbook=_labbook(labbook, surroundings),
    )


def checkout() -> Path:
    """The folder that holds `labs`: the top of the checkout, or of the installation."""
    return Path(__file__).resolve().parents[2]


def default_labbook(environment: Mapping[str, str] | None = None) -> Path:
    """`LABBOOK` of the environment, else `labbook.md` at the top of the checkout, else in the current folder."""
    surroundings = os.environ if environment is None else environment
    if chosen := surroundings.get("LABBOOK"):
        return Path(chosen).expanduser().absolute()
    top = checkout()
    return (top if (top / "pyproject.toml").is_file() else Path.cwd()) / "labbook.md"


def _labbook(named: str, surroundings: Mapping[str, str]) -> Path:
    chosen = named or surroundings.get("LAB_LABBOOK", "")
    return Path(chosen).expanduser().absolute() if chosen else default_labbook(surroundings)


def _flag(name: str, value: object) -> bool:
    """True or False; papermill's `-p FAST false` arrives as a string."""
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word in _YES:
        return True
    if word in _NO:
        return False
    raise ParameterError(f"{name} is {value!r}: give True or False")
