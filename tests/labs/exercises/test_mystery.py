"""Lab 11: six servers of one process, told apart by what `measure-prefix-cache` recorded of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from labbook.book import Labbook
from labbook.measure import measure
from labbook.record import Record
from labs.cli import main
from labs.kit.exercises.lab import find_lab
from labs.kit.mystery import troupe
from labs.kit.mystery.cast import LETTERS, SETTINGS, SUSPECTS, who_is_who
from labs.kit.mystery.evidence import RULES

WORDS = 60


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, troupe.Troupe]]:
    folder = tmp_path_factory.mktemp("mystery")
    known = troupe.start(folder, seed=7)
    try:
        yield folder, known
    finally:
        troupe.stop(folder)


@pytest.fixture(scope="module")
def records(running: tuple[Path, troupe.Troupe]) -> dict[str, list[Record]]:
    """Per letter a pair, and what is left after one and after six other prompts."""
    options = {"prefix_words": WORDS, "questions": 1, "repeats": 1}
    return {
        letter: [
            measure(url, **options),
            measure(url, experiment="eviction", competitors=1, **options),
            measure(url, experiment="eviction", competitors=6, **options),
        ]
        for letter, url in running[1].base_urls.items()
    }


def test_every_server_is_told_from_all_others_by_its_records(records: dict[str, list[Record]]) -> None:
    for letter, truth in who_is_who(7).items():
        assert [name for name, rule in RULES.items() if rule(records[letter]) is None] == [truth], letter


def test_servers_say_nothing_that_tells_them_apart(
    running: tuple[Path, troupe.Troupe], records: dict[str, list[Record]]
) -> None:
    names = {(pair[0]["engine"], pair[0]["engine_version"], pair[0]["model"]) for pair in records.values()}
    assert len(names) == 1
    assert list(running[1].base_urls) == list(LETTERS)
    assert all(url.startswith("http://127.0.0.1:") for url in running[1].base_urls.values())


def test_what_is_running_is_not_started_again(running: tuple[Path, troupe.Troupe]) -> None:
    folder, known = running
    assert troupe.is_running(folder) and troupe.read(folder) == known
    with pytest.raises(troupe.MysteryError, match="running already"):
        troupe.start(folder)


def test_each_learner_has_an_order_of_their_own() -> None:
    orders = {tuple(who_is_who(seed).values()) for seed in range(50)}
    assert len(orders) > 40 and all(set(order) == set(SUSPECTS) for order in orders)


def test_every_diagnosis_has_a_setting_that_mends_it() -> None:
    assert {suspect.setting for suspect in SUSPECTS.values()} == set(SETTINGS)
    assert set(RULES) == set(SUSPECTS)


def test_the_readme_tells_every_word_of_the_answer_sheet() -> None:
    readme = (find_lab("11").folder / "README.md").read_text(encoding="utf-8")
    assert all(f"`{word}`" in readme for word in (*SUSPECTS, *SETTINGS))


def test_nothing_runs_before_it_is_started(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mystery", "status", "--folder", str(tmp_path)]) == 0
    assert "no servers have been started" in capsys.readouterr().out
    assert main(["mystery", "down", "--folder", str(tmp_path)]) == 0
    assert "no servers were running" in capsys.readouterr().out


def test_a_damaged_state_is_told_and_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = tmp_path / "11_mystery_servers" / "servers.json"
    state.parent.mkdir()
    state.write_text("{", encoding="utf-8")
    assert main(["mystery", "status", "--folder", str(tmp_path)]) == 1
    assert "is damaged" in capsys.readouterr().err and state.read_text(encoding="utf-8") == "{"


def test_the_example_of_the_course_is_a_real_measurement_of_each() -> None:
    folder = find_lab("11").folder / "example"
    base_urls = json.loads((folder / "servers.json").read_text(encoding="utf-8"))["base_urls"]
    measured = [record["base_url"] for record in Labbook(folder / "labbook.md").records(strict=True)]
    assert measured == [url for url in base_urls.values() for _ in range(3)]
