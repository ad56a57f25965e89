"""Every lab: its stub is not attempted, its solution passes, each mistake is caught by the check meant for it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from labs.kit.exercises.answering import check_file
from labs.kit.exercises.lab import NUM_HINTS, Lab, all_labs
from labs.kit.exercises.matrix import Mistake, as_markdown, mistakes_of
from labs.kit.parameters import checkout

LABS = all_labs()
MIN_MISTAKES, MIN_PASSING_EXAMPLES = 4, 2
GIVEN = ("slow_", "wrong_")
"""What a stub only shows: a specification in slow plain Python, a builder as people write it."""


def labbook_of(lab: Lab, folder: Path) -> Path:
    return lab.example_labbook or folder / "labbook.md"


@pytest.fixture(scope="module")
def mistakes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Mistake]]:
    folder = tmp_path_factory.mktemp("mistakes")
    return {lab.key: list(mistakes_of(lab, labbook_of(lab, folder))) for lab in LABS}


def each(lab: Lab) -> str:
    return lab.key


def test_the_twelve_labs_are_there() -> None:
    assert [lab.number for lab in LABS] == [f"{number:02}" for number in range(1, 13)]


@pytest.mark.parametrize("lab", LABS, ids=each)
def test_a_stub_is_not_attempted_and_nothing_else(lab: Lab, tmp_path: Path) -> None:
    outcomes = check_file(lab, [lab.exercise], labbook_of(lab, tmp_path))
    assert {outcome.kind for outcome in outcomes} == {"not attempted"}
    assert all("is not written yet" in outcome.message for outcome in outcomes)


@pytest.mark.parametrize("lab", LABS, ids=each)
def test_the_solution_passes(lab: Lab, tmp_path: Path) -> None:
    for outcome in check_file(lab, [lab.solution], labbook_of(lab, tmp_path)):
        assert outcome.passed, outcome


@pytest.mark.parametrize("lab", LABS, ids=each)
def test_a_stub_and_its_solution_have_the_same_signatures(lab: Lab) -> None:
    asked, given = signatures(lab.exercise), signatures(lab.solution)
    written = {name: signature for name, signature in asked.items() if not name.startswith(GIVEN)}
    assert {name: given.get(name) for name in written} == written


@pytest.mark.parametrize("lab", LABS, ids=each)
def test_every_part_asks_for_what_the_stub_has(lab: Lab) -> None:
    assert {name for part in lab.parts for name in part.names} <= {
        name.split(".")[0] for name in signatures(lab.exercise)
    }


@pytest.mark.parametrize("lab", LABS, ids=each)
def test_a_lab_has_three_hints_and_says_its_commands(lab: Lab) -> None:
    assert len(lab.hints) == NUM_HINTS
    readme = (lab.folder / "README.md").read_text(encoding="utf-8")
    for heading in ("## The question", "## What you write", "## How it is checked"):
        assert heading in readme
    assert f"labs start {lab.number}" in readme and f"labs check {lab.number}" in readme


@pytest.mark.parametrize("lab", LABS, ids=each)
def test_each_mistake_is_caught_by_the_check_that_is_meant_for_it(lab: Lab, mistakes: dict[str, list[Mistake]]) -> None:
    for mistake in mistakes[lab.key]:
        assert mistake.first_failure == mistake.killed_by, (mistake.path.name, mistake.kinds)
        assert mistake.kinds[mistake.killed_by] == "wrong", f"{mistake.path.name} is caught by a crash only"


@pytest.mark.parametrize("lab", LABS, ids=each)
def test_a_lab_has_enough_mistakes_and_some_that_pass_its_first_examples(
    lab: Lab, mistakes: dict[str, list[Mistake]]
) -> None:
    assert len(mistakes[lab.key]) >= MIN_MISTAKES
    assert sum(mistake.passes_examples for mistake in mistakes[lab.key]) >= MIN_PASSING_EXAMPLES


@pytest.mark.parametrize("lab", LABS, ids=each)
def test_mistakes_have_messages_of_their_own(lab: Lab, mistakes: dict[str, list[Mistake]]) -> None:
    """Two mistakes may fail in one check; what the learner reads then differs in the example or the sentence."""
    assert all(mistake.about.endswith(".") and mistake.message for mistake in mistakes[lab.key])
    abouts = [mistake.about for mistake in mistakes[lab.key]]
    assert len(set(abouts)) == len(abouts)


def test_the_published_matrix_is_what_the_checks_say(mistakes: dict[str, list[Mistake]]) -> None:
    published = (checkout() / "docs" / "lab-matrix.md").read_text(encoding="utf-8")
    table = as_markdown([mistake for key in mistakes for mistake in mistakes[key]])
    assert table in published, "run: .venv/bin/python -m labs.kit.exercises.matrix --write"


def signatures(path: Path) -> dict[str, str]:
    """Name of each function and method, and its arguments and result as they are written."""
    found: dict[str, str] = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = f"({ast.unparse(node.args)}) -> {ast.unparse(node.returns or ast.Constant(None))}"
        elif isinstance(node, ast.ClassDef):
            found[node.name] = f"class({', '.join(map(ast.unparse, node.bases))})"
            for member in node.body:
                if isinstance(member, ast.FunctionDef):
                    result = ast.unparse(member.returns or ast.Constant(None))
                    found[f"{node.name}.{member.name}"] = f"({ast.unparse(member.args)}) -> {result}"
    return found
