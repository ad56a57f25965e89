"""Public traces: read one line at a time, refused with the line and the value, and written from known traffic."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minivllm.policies.access import Access
from minivllm.policies.trace import Trace, TraceError, open_trace
from minivllm.policies.trace_writer import BlockNumbers, write_trace
from minivllm.policies.traffic import make

LINE = {"timestamp": 0, "input_length": 700, "output_length": 5, "hash_ids": [0, 1]}


def request(**changed: Any) -> str:
    return json.dumps({**LINE, **changed})


def written(folder: Path, lines: Iterable[str | bytes], name: str = "trace.jsonl") -> Path:
    path = folder / name
    path.write_bytes(b"".join((line.encode() if isinstance(line, str) else line) + b"\n" for line in lines))
    return path


def refusal(folder: Path, *lines: str | bytes, block_tokens: int | None = 512) -> str:
    with pytest.raises(TraceError) as refused:
        list(open_trace(written(folder, lines), block_tokens))
    return str(refused.value)


def test_a_line_of_a_public_trace_is_one_access(tmp_path: Path) -> None:
    lines = [request(), request(timestamp=1500, input_length=1024, output_length=0, hash_ids=[0, 7], extra="ignored")]
    assert list(open_trace(written(tmp_path, lines))) == [
        Access((0, 1), 700, num_output_tokens=5, arrived_s=0.0, unit_tokens=512),
        Access((0, 7), 1024, num_output_tokens=0, arrived_s=1.5, unit_tokens=512),
    ]


def test_timestamps_may_be_seconds(tmp_path: Path) -> None:
    path = written(tmp_path, [request(timestamp=61.114)])
    assert next(iter(open_trace(path, 512, timestamp_unit_s=1.0))).arrived_s == 61.114


@pytest.mark.parametrize(
    ("lengths", "block_tokens"),
    [
        ([(700, 2)], 512),  # 350 to 699 tokens a block would fit: a published size is taken
        ([(33, 3)], 16),
        ([(1, 1), (521, 33), (32, 2)], 16),
        ([(65, 3), (64, 2)], 32),  # no published size: the only power of two
        ([(30, 3), (11, 2)], 10),
    ],
)
def test_the_block_size_is_inferred_from_lengths(
    tmp_path: Path, lengths: list[tuple[int, int]], block_tokens: int
) -> None:
    lines = [request(input_length=length, hash_ids=list(range(num_blocks))) for length, num_blocks in lengths]
    assert open_trace(written(tmp_path, lines)).block_tokens == block_tokens


def test_a_block_size_that_more_than_one_number_could_be_has_to_be_given(tmp_path: Path) -> None:
    path = written(tmp_path, [request(input_length=9, hash_ids=[0])])  # a block of 16 fits it, and so does one of 512
    with pytest.raises(TraceError, match="give the block size"):
        open_trace(path)
    assert open_trace(path, 16).block_tokens == 16


def test_lines_of_two_block_sizes_fit_none(tmp_path: Path) -> None:
    lines = [request(), request(input_length=700, hash_ids=list(range(44)))]
    assert "line 2: 44 hash_ids for input_length 700 fit no block size" in refusal(tmp_path, *lines, block_tokens=None)


def test_every_line_is_held_to_the_block_size(tmp_path: Path) -> None:
    said = refusal(tmp_path, request(), request(hash_ids=[0, 1, 2]))
    assert "line 2: input_length 700 makes 2 blocks of 512 tokens, and hash_ids has 3" in said


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"timestamp": 0, "input_length": 700', "line 2: Expecting"),
        ("[1, 2]", "line 2: a JSON list is no request"),
        ('{"timestamp": 0, "input_length": 700, "hash_ids": [0, 1]}', "line 2: output_length is missing"),
        ("{}", "line 2: timestamp is missing; the line has nothing"),
        ('{"timestamp": NaN}', "line 2: NaN is no JSON number"),
        (request(timestamp=-1), "line 2: timestamp is -1: a number from 0"),
        ('{"timestamp": 1e999}', "line 2: timestamp is inf"),
        (request(timestamp=True), "line 2: timestamp is True"),
        (request(timestamp="12"), "line 2: timestamp is '12'"),
        (request(input_length=True), "line 2: input_length is True: a whole number"),
        (request(input_length=700.0), "line 2: input_length is 700.0"),
        (request(input_length=-5), "line 2: input_length is -5"),
        (request(input_length=10**30), "line 2: input_length is 1000000"),
        (request(output_length=None), "line 2: output_length is None"),
        (request(hash_ids=5), "line 2: hash_ids is 5: a list"),
        (request(hash_ids=[0, True]), "line 2: hash_ids holds True"),
        (request(hash_ids=[0, 1.0]), "line 2: hash_ids holds 1.0"),
        (request(hash_ids=[0, None]), "line 2: hash_ids holds None"),
        (request(hash_ids=[]), "line 2: input_length 700 makes 2 blocks"),
        (b'{"timestamp": "\xff"}', "line 2: 'utf-8' codec"),
        ("[" * 100_000, "line 2: "),
        (f'{{"timestamp": {"9" * 5000}}}', "line 2: "),
    ],
)
def test_a_line_that_is_no_request_is_named_with_its_value(tmp_path: Path, line: str | bytes, said: str) -> None:
    message = refusal(tmp_path, request(), line)
    assert said in message
    assert len(message) < 500


def test_time_does_not_run_backwards(tmp_path: Path) -> None:
    said = refusal(tmp_path, request(timestamp=20), "", request(timestamp=10))
    assert "line 3: timestamp is 10 after 20: sort the trace" in said


def test_blank_lines_and_a_byte_order_mark_and_foreign_line_ends_are_passed_over(tmp_path: Path) -> None:
    path = written(tmp_path, [b"\xef\xbb\xbf" + request().encode() + b"\r", "", "   ", request(), ""])
    assert len(list(open_trace(path))) == 2


def test_an_overlong_line_is_refused_and_not_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("minivllm.policies.trace_line.MAX_LINE_BYTES", 100)
    assert "line 2: it is longer than 100 bytes" in refusal(tmp_path, request(), " " * 10_000 + request())


@pytest.mark.parametrize("lines", [[], ["", " "], [request(input_length=0, hash_ids=[])]])
def test_an_empty_trace_is_told(tmp_path: Path, lines: list[str]) -> None:
    with pytest.raises(TraceError, match="holds no request"):
        open_trace(written(tmp_path, lines))


def test_a_folder_or_a_missing_file_is_no_trace(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "absent.jsonl"):
        with pytest.raises(TraceError, match="there is no trace file at"):
            open_trace(path)


def test_a_trace_may_be_gzipped_whatever_its_name(tmp_path: Path) -> None:
    plain = written(tmp_path, [request(), request(timestamp=3)])
    packed = tmp_path / "packed.jsonl"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert list(open_trace(packed)) == list(open_trace(plain))


def test_a_gzipped_trace_that_is_cut_short_gives_what_it_holds_and_tells_where_it_ended(tmp_path: Path) -> None:
    whole = gzip.compress(b"".join(request(timestamp=n).encode() + b"\n" for n in range(2000)))
    cut = tmp_path / "cut.jsonl.gz"
    cut.write_bytes(whole[: len(whole) // 2])
    read = []
    with pytest.raises(TraceError, match=r"cannot be read after line \d+"):
        for access in Trace(cut, 512, timestamp_unit_s=1.0):
            read.append(access.arrived_s)
    assert read == list(range(len(read)))
    assert read


def test_progress_is_told_in_bytes_of_the_file(tmp_path: Path) -> None:
    told: list[int] = []
    trace = open_trace(written(tmp_path, [request(), "", request()]))
    assert len(list(trace.accesses(told.append))) == 2
    assert sum(told) == trace.num_bytes


def test_memory_does_not_grow_with_the_trace(tmp_path: Path) -> None:
    def peak_bytes(num_lines: int) -> int:
        path = written(tmp_path, (request(timestamp=n, hash_ids=[n, n + 1]) for n in range(num_lines)))
        tracemalloc.start()
        for _ in open_trace(path):
            pass
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    assert peak_bytes(8000) < 1.2 * peak_bytes(1000)


@pytest.mark.parametrize(
    "changed", [{"block_tokens": 0}, {"timestamp_unit_s": 0.0}, {"timestamp_unit_s": float("nan")}]
)
def test_a_trace_of_impossible_units_is_refused(tmp_path: Path, changed: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(changed))):
        Trace(**{"path": tmp_path, "block_tokens": 512, **changed})


@pytest.mark.parametrize("name", ["trace.jsonl", "trace.jsonl.gz"])
def test_traffic_that_was_written_is_read_back_with_its_lengths_times_and_blocks(tmp_path: Path, name: str) -> None:
    accesses = list(make("chat", sessions=3))
    assert write_trace(tmp_path / name, accesses, block_tokens=16) == len(accesses)
    trace = open_trace(tmp_path / name)
    assert trace.block_tokens == 16
    for read, known in zip(trace, accesses, strict=True):
        assert read.num_input_tokens == known.num_input_tokens
        assert read.num_output_tokens == known.num_output_tokens
        assert abs(read.arrived_s - known.arrived_s) <= 0.0005
        assert len(read.unit_ids) == -(-known.num_input_tokens // 16)


def test_the_same_traffic_makes_the_same_file(tmp_path: Path) -> None:
    for name in ("one.jsonl.gz", "two.jsonl.gz"):
        write_trace(tmp_path / name, make("few-shot", requests=5))
    assert (tmp_path / "one.jsonl.gz").read_bytes() == (tmp_path / "two.jsonl.gz").read_bytes()


def test_blocks_are_numbered_by_everything_before_them() -> None:
    numbers = BlockNumbers(block_tokens=2)
    assert numbers.of(prompt(1, 1, 7, 7)) == [0, 1]
    assert numbers.of(prompt(2, 2, 7, 7)) == [2, 3], "equal tokens behind another block are another prefix"
    assert numbers.of(prompt(1, 1, 7)) == [0, 4], "a partial block is not the whole one"
    assert numbers.of(prompt(1, 1, 7, 7, 9)) == [0, 1, 5]


def test_tenants_have_blocks_of_their_own() -> None:
    numbers = BlockNumbers(block_tokens=2)
    assert [numbers.of(prompt(1, 1, salt=salt)) for salt in (None, "a", "b", "a")] == [[0], [1], [2], [1]]


def test_only_traffic_of_single_tokens_can_be_cut_into_blocks(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="units of 512 tokens"):
        write_trace(tmp_path / "again.jsonl", open_trace(written(tmp_path, [request()])))
    with pytest.raises(ValueError, match="block_tokens is 0"):
        BlockNumbers(0)


def prompt(*tokens: int, salt: str | None = None) -> Access:
    return Access(tokens, len(tokens), salt=salt)


tokens = st.lists(st.integers(0, 2), min_size=1, max_size=12).map(tuple)


@given(tokens, tokens, st.integers(1, 4))
def test_two_prompts_share_as_many_numbers_as_they_share_whole_blocks(
    first: tuple[int, ...], second: tuple[int, ...], block_tokens: int
) -> None:
    numbers = BlockNumbers(block_tokens)
    one, two = numbers.of(prompt(*first)), numbers.of(prompt(*second))
    starts = range(0, max(len(first), len(second)), block_tokens)
    same = [first[: start + block_tokens] == second[: start + block_tokens] for start in starts]
    assert [a == b for a, b in zip(one, two, strict=False)] == same[: min(len(one), len(two))]
