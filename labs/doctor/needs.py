"""What pyproject.toml asks for, and what of it is installed in which version. Imports none of it."""

from __future__ import annotations

import importlib.metadata
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement

DISTRIBUTION = "prefix-cache-lab"
BASE = ""
Lines = Mapping[str, list[str]]


@dataclass(frozen=True)
class Need:
    """A requirement as it is written, without its marker, and the version that is installed; None when none is."""

    name: str
    requirement: str
    extra: str
    installed: str | None
    is_met: bool

    @property
    def versions(self) -> str:
        return str(Requirement(self.requirement).specifier) or "any version"


def needs(lines: Lines, extras: list[str]) -> list[Need]:
    """One entry for each package that these extras need on this machine, the first extra that names it counts."""
    found: dict[str, Need] = {}
    for extra in (BASE, *extras):
        for requirement in _requirements(lines, extra):
            found.setdefault(requirement.name, _need(requirement, extra))
    return list(found.values())


def lines_of_project(top: Path) -> dict[str, list[str]]:
    """Requirements by extra from `pyproject.toml`, or from the installed distribution where there is no checkout.

    The base stands under the empty name. Raises PackageNotFoundError when neither is there.
    """
    pyproject = top / "pyproject.toml"
    if pyproject.is_file():
        project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
        return {BASE: project["dependencies"], **project["optional-dependencies"]}
    about = importlib.metadata.metadata(DISTRIBUTION)
    written = [Requirement(line) for line in importlib.metadata.requires(DISTRIBUTION) or ()]
    extras = (BASE, *(about.get_all("Provides-Extra") or ()))
    return {extra: [_unmarked(one) for one in written if _belongs(one, extra)] for extra in extras}


def version_of(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _requirements(lines: Lines, extra: str) -> Iterator[Requirement]:
    for requirement in map(Requirement, lines[extra]):
        if requirement.marker is not None and not requirement.marker.evaluate():
            continue
        if requirement.name == DISTRIBUTION:
            for other in sorted(requirement.extras):
                yield from _requirements(lines, other)
            continue
        yield requirement
        yield from _of_extras(requirement)


def _of_extras(requirement: Requirement) -> Iterator[Requirement]:
    """What `mlx[cpu]` needs beyond `mlx`: on Linux, plain mlx has no backend."""
    if requirement.extras and version_of(requirement.name):
        further = [Requirement(line) for line in importlib.metadata.requires(requirement.name) or ()]
        yield from (one for extra in sorted(requirement.extras) for one in further if _belongs(one, extra))


def _belongs(requirement: Requirement, extra: str) -> bool:
    """Whether it is asked for by this extra and by nothing less."""
    if requirement.marker is None or "extra" not in str(requirement.marker):
        return extra == BASE and (requirement.marker is None or requirement.marker.evaluate())
    return extra != BASE and requirement.marker.evaluate({"extra": extra})


def _need(requirement: Requirement, extra: str) -> Need:
    installed = version_of(requirement.name)
    is_met = installed is not None and requirement.specifier.contains(installed, prereleases=True)
    return Need(requirement.name, _unmarked(requirement), extra, installed, is_met)


def _unmarked(requirement: Requirement) -> str:
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    return f"{requirement.name}{extras}{requirement.specifier}"
