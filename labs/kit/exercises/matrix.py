"""Which check kills which mistake: every named wrong answer against every check of its part."""

from __future__ import annotations

import argparse
import ast
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from labs.kit.exercises.judge import judge_check
from labs.kit.exercises.lab import Lab, all_labs
from labs.kit.exercises.loading import load_files
from labs.kit.exercises.outcome import Kind
from labs.kit.exercises.part import Answer, Part
from labs.kit.parameters import checkout


@dataclass(frozen=True)
class Mistake:
    """One file of `wrong/`. Its docstring says the mistake, KILLED_BY names the check that is meant to notice it."""

    lab: Lab
    path: Path
    about: str
    killed_by: str
    part: str
    kinds: dict[str, Kind]
    """What each check of the part said: "passed", "wrong", "crashed" or "not attempted"."""
    message: str
    """What the learner is told by the first check that fails."""
    passes_examples: bool
    """Whether it gets through the examples of the README, which are the first check of every part."""

    @property
    def first_failure(self) -> str | None:
        return next((name for name, kind in self.kinds.items() if kind != "passed"), None)


def mistakes_of(lab: Lab, labbook: Path) -> Iterator[Mistake]:
    """Every wrong answer of a lab, judged by all checks of the part that it belongs to.

    `labbook` is for labs that bring no records of their own.
    """
    for path in lab.wrong_answers:
        yield _judged(lab, path, labbook)


def _judged(lab: Lab, path: Path, labbook: Path) -> Mistake:
    module = load_files([lab.solution, path], f"lab_{lab.number}_{path.stem}")
    killed_by = str(module.KILLED_BY)
    part = _part_of(lab, path, killed_by)
    answer = Answer(vars(module), lab.example_labbook or labbook)
    kinds: dict[str, Kind] = {}
    message = ""
    for check in part.checks:
        failed = judge_check(part, check, answer)
        kinds[check.name] = failed.kind if failed else "passed"
        message = message or (failed.message if failed else "")
    about = (module.__doc__ or "").strip().splitlines()[0]
    return Mistake(lab, path, about, killed_by, part.title, kinds, message, kinds[part.checks[0].name] == "passed")


def _part_of(lab: Lab, path: Path, check_name: str) -> Part:
    """The part whose object the file replaces; a file that replaces a helper belongs to the part with its check."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    replaced = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    having = [part for part in lab.parts if check_name in [check.name for check in part.checks]]
    return next((part for part in having if replaced & set(part.names)), having[0])


def as_markdown(mistakes: list[Mistake]) -> str:
    """A table for each part: mistakes down, checks across."""
    lines: list[str] = []
    for key in dict.fromkeys((mistake.lab.key, mistake.part) for mistake in mistakes):
        own = [mistake for mistake in mistakes if (mistake.lab.key, mistake.part) == key]
        checks = list(own[0].kinds)
        lines += [
            f"### {key[0]}: `{key[1]}`",
            "",
            f"| mistake | {' | '.join(checks)} |",
            "|---|" + "---|" * len(checks),
        ]
        lines += [f"| {one.about} | {' | '.join(_cell(one, check) for check in checks)} |" for one in own] + [""]
    return "\n".join(lines)


def _cell(mistake: Mistake, check: str) -> str:
    if mistake.kinds[check] == "passed":
        return ""
    return "**killed**" if check == mistake.first_failure else "killed"


def main() -> None:
    """Print the matrix, or with --write put it into docs/lab-matrix.md in the place of the old one."""
    parser = argparse.ArgumentParser(prog="python -m labs.kit.exercises.matrix", description=main.__doc__)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        labs = tqdm(all_labs(), unit="lab", disable=None)
        mistakes = [one for lab in labs for one in mistakes_of(lab, Path(folder) / "labbook.md")]
    if not options.write:
        print(as_markdown(mistakes))
        return
    path = checkout() / "docs" / "lab-matrix.md"
    head = path.read_text(encoding="utf-8").split("### ")[0]
    path.write_text(head + as_markdown(mistakes), encoding="utf-8")


if __name__ == "__main__":
    main()
