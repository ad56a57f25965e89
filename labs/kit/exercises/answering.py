"""From a file, or from objects in a notebook, to outcomes: the one way in which answers are checked."""

from __future__ import annotations

import difflib
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from labs.kit.exercises.judge import CHECK_LIMIT_S, TimeIsUp, judge, limited
from labs.kit.exercises.lab import Lab, LabError, all_labs
from labs.kit.exercises.loading import load_files
from labs.kit.exercises.outcome import Outcome
from labs.kit.exercises.part import Answer, Part


def check_file(lab: Lab, paths: Sequence[Path], labbook: Path) -> list[Outcome]:
    """Every part of a lab against a file; of several files, later ones replace names of earlier ones."""
    try:
        with limited(CHECK_LIMIT_S):
            module = load_files(paths, f"lab_{lab.number}_answer")
    except (Exception, SystemExit, TimeIsUp) as error:  # a learner's file may do anything
        return [_not_loaded(part, paths[-1], error) for part in lab.parts]
    return check_objects(lab, lab.parts, vars(module), labbook)


def check_objects(lab: Lab, parts: Sequence[Part], objects: Mapping[str, Any], labbook: Path) -> list[Outcome]:
    """These parts against objects by name."""
    return [judge(part, Answer(objects, labbook)) for part in parts]


def find_part(objects: Sequence[Any]) -> tuple[Lab, Part]:
    """The lab and the part that ask for objects of these names. Raises LabError with the names there are."""
    names = {getattr(thing, "__name__", repr(thing)) for thing in objects}
    for lab in all_labs():
        if (part := lab.part_of(names)) is not None:
            return lab, part
    raise LabError(_closest(names))


def _closest(names: set[str]) -> str:
    """What the caller may have meant: objects that are checked together, a name that is nearly right, or the list."""
    parts = [(lab, part) for lab in all_labs() for part in lab.parts]
    for lab, part in parts:
        if names & set(part.names):
            return f"lab {lab.key} checks these together: check({part.title})"
    known = [name for _, part in parts for name in part.names]
    asked = ", ".join(sorted(names))
    if near := difflib.get_close_matches(asked, known, n=1):
        return f"no lab asks for {asked}; is it {near[0]}?"
    listed = "; ".join(f"{lab.key}: {' and '.join(part.title for part in lab.parts)}" for lab in all_labs())
    return f"no lab asks for {asked}; the labs ask for these: {listed}"


def _not_loaded(part: Part, path: Path, error: BaseException) -> Outcome:
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    for frame in own:
        frame.filename = path.name
    shown = "".join([*traceback.format_list(own), *traceback.format_exception_only(error)]).replace(
        str(path), path.name
    )
    return Outcome(part.title, "crashed", message=f"{path.name} cannot be loaded", detail=shown)
