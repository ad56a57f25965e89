"""The lab notebook file: fixtures N-2 a to h, and LB-01 to LB-09."""

import json
import multiprocessing
from pathlib import Path

import pytest

from labbook.book import HEADING, Labbook
from labbook.errors import LabbookError
from labbook.record import RecordError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "labbook.md"


def test_a_torn_last_line_costs_only_itself(path: Path) -> None:
    path.write_bytes(b'{"id":1}\n{"id":')
    book = Labbook(path)
    book.append({"id": 3})
    assert book.records() == [{"id": 1}, {"id": 3}]
    assert [problem.line_number for problem in book.problems] == [2]
    assert path.read_bytes().startswith(b'{"id":1}\n{"id":\n')


def test_byte_order_mark_and_crlf_are_read(path: Path) -> None:
    path.write_bytes(b'\xef\xbb\xbf{"id":1}\r\n{"id":2}\r\n')
    assert Labbook(path).records(strict=True) == [{"id": 1}, {"id": 2}]


def test_a_byte_order_mark_inside_a_joined_file_is_read(path: Path) -> None:
    path.write_bytes(b'{"id":1}\n\xef\xbb\xbf{"id":2}\n')
    assert Labbook(path).records() == [{"id": 1}, {"id": 2}]


def test_lone_carriage_returns_end_lines(path: Path) -> None:
    path.write_bytes(b'# Title\r\r{"id":1}\r{"id":2}\r')
    book = Labbook(path)
    book.append({"id": 3})
    assert book.records(strict=True) == [{"id": 1}, {"id": 2}, {"id": 3}]
    assert book.read().line_numbers == [3, 4, 5]


def test_a_bare_nan_is_refused_on_append_and_reported_on_reading(path: Path) -> None:
    book = Labbook(path)
    with pytest.raises(RecordError, match=r"record\.ratio is nan"):
        book.append({"ratio": float("nan")})
    assert not path.exists()
    path.write_text('{"ratio": NaN}\n{"id":2}\n', encoding="utf-8")
    assert book.records() == [{"id": 2}]
    assert [str(problem) for problem in book.problems] == [
        "line 1: NaN is not JSON: write null and say why the number is missing"
    ]


def test_a_line_separator_inside_a_string_ends_no_line(path: Path) -> None:
    record = {"note": "one\u2028two\u2029three\x85four"}
    book = Labbook(path)
    book.append(record)
    path.write_bytes(path.read_bytes() + '{"note": "by hand\u2028"}\n'.encode())
    assert book.records(strict=True) == [record, {"note": "by hand\u2028"}]
    assert "\u2028" not in path.read_text(encoding="utf-8").splitlines()[-3]


def test_markdown_with_fenced_json_and_prose_survives(path: Path) -> None:
    written = '# Title\n\n```json\n{\n  "id": 7,\n  "list": [1]\n}\n```\n{ not json\n{"id":1}\nand {"a": 1} too\n'
    path.write_text(written, encoding="utf-8")
    book = Labbook(path)
    assert book.records(strict=True) == [{"id": 1}]
    book.append({"id": 2})
    assert path.read_text(encoding="utf-8") == written + '{"id": 2}\n'


def test_an_object_opened_in_a_fence_is_prose_and_outside_it_a_problem(path: Path) -> None:
    path.write_text('```json\n{"id": 7,\n"b": 1}\n```\n{"id": 8,\n', encoding="utf-8")
    assert [problem.line_number for problem in Labbook(path).problems] == [5]


@pytest.mark.parametrize(
    "block",
    [
        '~~~\n{"id": 7,\n~~~',
        '````\n```\n{"id": 7,\n```\n````',
        '   ```json title\n{"id": 7,\n```  ',
        '- a list:\n\n      ```\n      {"id": 7,\n      ```',
        '~~~ `a`\n```\n{"id": 7,\n~~~~',
    ],
)
def test_every_form_of_a_code_block_may_hold_an_example(block: str, path: Path) -> None:
    path.write_text(f'{block}\n{{"id": 8,\n{{"id": 9}}\n', encoding="utf-8")
    book = Labbook(path)
    assert book.records() == [{"id": 9}]
    assert [problem.line_number for problem in book.problems] == [block.count("\n") + 2]


def test_back_ticks_within_a_line_open_no_block(path: Path) -> None:
    path.write_text('```{"a": 1}``` is a record\n{"id":\n', encoding="utf-8")
    assert [problem.line_number for problem in Labbook(path).problems] == [2]


def test_a_line_cut_off_within_a_character_costs_only_itself(path: Path) -> None:
    path.write_bytes('{"id": 1}\n{"label": "ü'.encode()[:-1])
    book = Labbook(path)
    book.append({"id": 2})
    assert book.records() == [{"id": 1}, {"id": 2}]
    assert [problem.line_number for problem in book.problems] == [2]


def test_a_utf_16_file_is_told_and_not_taken_for_an_empty_one(path: Path) -> None:
    path.write_bytes('{"id": 1}\n'.encode("utf-16"))
    book = Labbook(path)
    book.append({"id": 2})
    assert "UTF-16" in str(book.problems[0])
    assert book.records() == [{"id": 2}]


def test_a_record_of_one_megabyte_is_one_line(path: Path) -> None:
    record = {"text": "x" * 1_000_000}
    Labbook(path).append(record)
    assert Labbook(path).records(strict=True) == [record]


def test_a_file_that_ends_without_newline_after_a_good_record_loses_nothing(path: Path) -> None:
    path.write_bytes(b'{"id":1}')
    book = Labbook(path)
    book.append({"id": 2})
    assert book.records(strict=True) == [{"id": 1}, {"id": 2}]


def test_bytes_that_are_not_utf8_are_reported_by_line(path: Path) -> None:
    path.write_bytes(b'{"a": "\xff"}\n{"id":2}\n')
    book = Labbook(path)
    assert book.records() == [{"id": 2}]
    assert "line 1: not UTF-8" in str(book.problems[0])


def test_strict_reading_names_every_line_that_is_broken(path: Path) -> None:
    path.write_bytes(b'{"a":\n{"id":2}\n{"b"\n')
    with pytest.raises(LabbookError, match=r"2 unreadable record.*line 1.*line 3"):
        Labbook(path).records(strict=True)


def test_the_first_append_explains_the_file_and_later_ones_only_add(path: Path) -> None:
    book = Labbook(path)
    assert book.append({"id": 1}) == {"id": 1}
    first = path.read_bytes()
    assert first == HEADING.encode() + b'{"id": 1}\n'
    book.append({"id": 2})
    assert path.read_bytes() == first + b'{"id": 2}\n'
    assert book.records(strict=True) == [{"id": 1}, {"id": 2}]


def test_each_append_is_one_write(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    sizes = []
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: sizes.append(len(data)) or real(fd, data))
    path.write_bytes(b'{"torn')
    Labbook(path).append({"id": 1})
    assert sizes == [len(b'\n{"id": 1}\n')]


def test_a_full_disk_is_told_and_costs_no_other_record(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    book = Labbook(path)
    book.append({"id": 1})
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:4]))
    with pytest.raises(LabbookError, match="disk full"):
        book.append({"id": 2})
    monkeypatch.undo()
    book.append({"id": 3})
    assert book.records() == [{"id": 1}, {"id": 3}]


def test_places_that_cannot_hold_a_notebook_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(LabbookError, match="does not exist: make it"):
        Labbook(tmp_path / "missing" / "labbook.md").append({"id": 1})
    with pytest.raises(LabbookError, match="is a folder"):
        Labbook(tmp_path).append({"id": 1})
    with pytest.raises(LabbookError, match="there is no labbook at"):
        Labbook(tmp_path / "none.md").records()


def test_records_are_selected_by_equal_fields(path: Path) -> None:
    book = Labbook(path)
    for number, label in enumerate(["on", "off", "on"]):
        book.append({"id": number, "label": label, "note": None})
    assert [record["id"] for record in book.select(label="on")] == [0, 2]
    assert book.select(label="on", id=1) == []
    assert book.select(missing=None) == []


def _write_many(path: str, writer: int, count: int) -> None:
    book = Labbook(path)
    for number in range(count):
        book.append({"writer": writer, "number": number, "filler": "x" * (writer * 3000)})


@pytest.mark.parametrize(
    ("before", "torn_lines"),
    [(None, []), (b'# Lab notebook\n{"id": 0}\n{"torn": ', [3])],
    ids=["new file", "torn last line"],
)
def test_six_processes_append_two_hundred_records_each_and_none_is_broken(
    before: bytes | None, torn_lines: list[int], path: Path
) -> None:
    if before is not None:
        path.write_bytes(before)
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_write_many, args=(str(path), writer, 200)) for writer in range(6)]
    for process in writers:
        process.start()
    book = Labbook(path)
    while any(process.is_alive() for process in writers):  # a reader in between never sees half a record
        if path.exists():
            assert [problem.line_number for problem in book.problems] == torn_lines
    for process in writers:
        process.join()
        assert process.exitcode == 0
    assert [problem.line_number for problem in book.problems] == torn_lines
    others = [record for record in book.records() if "writer" not in record]
    records = [record for record in book.records() if "writer" in record]
    assert others == ([] if before is None else [{"id": 0}]) and len(records) == 1200
    assert sorted((r["writer"], r["number"]) for r in records) == [(w, n) for w in range(6) for n in range(200)]
    assert path.read_text(encoding="utf-8").count("# Lab notebook") == 1


def test_records_keep_letters_that_people_can_read(path: Path) -> None:
    Labbook(path).append({"label": "große Übung"})
    assert "große Übung" in path.read_text(encoding="utf-8")
    assert json.loads(path.read_text(encoding="utf-8").splitlines()[-1])["label"] == "große Übung"
