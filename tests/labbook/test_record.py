"""A record is one line of strict JSON, whatever its strings hold."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labbook.record import RecordError, environment_stamp, from_line, to_line

ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=40)


@given(label=ANY_TEXT)
def test_any_label_comes_back_equal_from_one_line(label: str) -> None:
    line = to_line({"label": label})
    assert len(line.splitlines()) == 1
    assert from_line(line) == {"label": label}
    line.encode("utf-8")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_number_that_json_lacks_is_refused_by_the_name_of_its_field(value: float) -> None:
    with pytest.raises(RecordError, match=r"record\.warm_s\.p50 is"):
        to_line({"warm_s": {"p50": value}})
    with pytest.raises(RecordError, match=r"record\.runs\[1\]"):
        to_line({"runs": [1.0, value]})


@pytest.mark.parametrize("line", ['{"a": NaN}', '{"a": -Infinity}', '{"a": 1e999}'])
def test_a_number_that_json_lacks_is_no_record_when_read(line: str) -> None:
    with pytest.raises(RecordError):
        from_line(line)


@pytest.mark.parametrize("line", ["", "7", "[1]", '"text"', "null", '{"a":1} {"b":2}', "{'a': 1}"])
def test_what_is_not_one_json_object_is_no_record(line: str) -> None:
    with pytest.raises(RecordError):
        from_line(line)


def test_what_json_lacks_is_refused_with_its_type() -> None:
    with pytest.raises(RecordError, match=r"record\.path is a set"):
        to_line({"path": {1, 2}})
    with pytest.raises(RecordError, match="keys"):
        to_line({"a": {1: 2}})
    with pytest.raises(RecordError, match="not list"):
        to_line([1])  # type: ignore[arg-type]


def test_the_environment_names_no_host_and_no_path() -> None:
    import getpass
    import socket

    stamp = str(environment_stamp())
    assert socket.gethostname() not in stamp or len(socket.gethostname()) < 3
    assert getpass.getuser() not in stamp.split()
    assert "/" not in stamp
