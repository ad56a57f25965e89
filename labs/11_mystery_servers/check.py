"""A diagnosis counts when the records of the labbook prove it, on the server that it names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from labbook.book import Labbook
from labbook.record import Record
from labs.kit.exercises import workbook
from labs.kit.exercises.part import Answer, Check, Part, Wrong
from labs.kit.mystery import troupe
from labs.kit.mystery.cast import LETTERS, SETTINGS, SUSPECTS, who_is_who
from labs.kit.mystery.evidence import RULES

FOLDER = Path(__file__).parent.name


def servers(answer: Answer) -> troupe.Troupe:
    """Those that lie beside the labbook (the example of the course), else the learner's own."""
    known = troupe.read(answer.labbook.parent) or troupe.read(workbook.default_folder() / FOLDER)
    if known is None:
        raise Wrong(
            "no servers have been started here",
            expected="`labs mystery up`, and measurements of A to F",
            actual="nothing",
        )
    return known


def sheet(answer: Answer) -> dict[str, Any]:
    given = answer.diagnoses()
    if not isinstance(given, dict):
        raise Wrong(
            "diagnoses returns no dictionary", expected='{"A": Diagnosis(...), ...}', actual=type(given).__name__
        )
    return given


def words_are_known(answer: Answer) -> None:
    for letter, told in sheet(answer).items():
        if letter not in LETTERS:
            raise Wrong(f"there is no server {letter!r}", expected="letters from A to F", actual=letter)
        if getattr(told, "name", None) not in SUSPECTS:
            raise Wrong(
                f"server {letter}: this is no diagnosis of the table",
                expected=", ".join(SUSPECTS),
                actual=getattr(told, "name", told),
            )
        if told.setting not in SETTINGS:
            raise Wrong(
                f"server {letter}: this is no setting of the table",
                expected=", ".join(SETTINGS),
                actual=told.setting or "none",
            )


def evidence_is_given(answer: Answer) -> None:
    for letter, told in sorted(sheet(answer).items()):
        if not told.records:
            raise Wrong(
                f"server {letter}: a diagnosis without a record",
                expected="the numbers of the records that prove it",
                actual="none",
            )
        records_of(answer, letter, told.records)


def records_of(answer: Answer, letter: str, numbers: list[int]) -> list[Record]:
    """The records with these numbers, all of them measurements of this server."""
    known, records = servers(answer), Labbook(answer.labbook).records() if answer.labbook.exists() else []
    chosen = []
    for number in numbers:
        if not 1 <= number <= len(records):
            raise Wrong(f"server {letter}: there is no record {number}", expected=f"1 to {len(records)}", actual=number)
        record = records[number - 1]
        if record.get("base_url") != known.base_urls[letter]:
            raise Wrong(
                f"server {letter}: record {number} is about something else",
                expected=known.base_urls[letter],
                actual=record.get("base_url") or record.get("experiment"),
            )
        chosen.append(record)
    return chosen


def records_prove_it(answer: Answer) -> None:
    for letter, told in sorted(sheet(answer).items()):
        missing = RULES[told.name](records_of(answer, letter, told.records))
        if missing:
            raise Wrong(
                f"server {letter}: these records do not prove {told.name}",
                expected=f"records in which {SUSPECTS[told.name].about}",
                actual=missing,
            )


def each_is_right(answer: Answer) -> None:
    """What the records prove could be proven of two servers: then one of them has another trouble as well."""
    truth = who_is_who(servers(answer).seed)
    wrong = [letter for letter, told in sorted(sheet(answer).items()) if told.name != truth[letter]]
    if wrong:
        raise Wrong(
            f"{len(wrong)} of the diagnoses are not right",
            expected="each server has another trouble",
            actual="measure again what you have not looked at",
        )


def the_setting_mends_it(answer: Answer) -> None:
    for letter, told in sorted(sheet(answer).items()):
        if told.setting != SUSPECTS[told.name].setting:
            raise Wrong(
                f"server {letter}: {told.setting} would not mend {told.name}",
                expected="what causes it is changed",
                actual=SETTINGS[told.setting],
            )


def all_six(answer: Answer) -> None:
    missing = [letter for letter in LETTERS if letter not in sheet(answer)]
    if missing:
        raise Wrong("right so far, and not all six", expected="A to F", actual=f"no diagnosis of {', '.join(missing)}")


PARTS = (
    Part(
        ("diagnoses",),
        (
            Check("words of the tables", words_are_known, "A name was misspelt, or a setting was left out."),
            Check(
                "evidence is given",
                evidence_is_given,
                "Give the numbers of `labbook list`, of measurements of this very server.",
            ),
            Check(
                "records prove it",
                records_prove_it,
                "The measurement does not tell this trouble from another one that looks like it.",
            ),
            Check(
                "each is right",
                each_is_right,
                "Two troubles can look alike in a pair: which measurement tells them apart?",
            ),
            Check(
                "the setting mends it",
                the_setting_mends_it,
                "Ask what the server does wrong, and what decides about that.",
            ),
            Check("all six", all_six, "Go on with the next one."),
        ),
        "A cache that is off, one that is never hit and one that lies look the same from a distance. Now you can tell.",
    ),
)
