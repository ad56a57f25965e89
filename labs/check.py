"""`check(my_function)` in a notebook: the same checks as `labs check`, on objects that were just defined."""

from __future__ import annotations

from typing import Any

from labs.kit.exercises import history
from labs.kit.exercises.answering import check_objects, find_part
from labs.kit.exercises.feedback import as_text
from labs.kit.exercises.outcome import Outcome
from labs.kit.parameters import default_labbook


def check(*objects: Any) -> Outcome:
    """Judge functions or classes by their names, print the feedback, and note the outcome in the labbook.

    Which lab asks for them is found by their names; parts of several objects get all of them: `check(save, restore)`.
    Raises LabError, with the names that the labs ask for, when none asks for these.
    """
    lab, part = find_part(objects)
    named = {thing.__name__: thing for thing in objects}
    outcome = check_objects(lab, [part], named, default_labbook())[0]
    history.note_outcomes(default_labbook(), lab, [outcome])
    print(as_text(outcome))
    return outcome
