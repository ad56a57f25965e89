"""The lab notebook: a Markdown file that people write in, where a line that is one JSON object is a record.

Records are appended, one write each, under a lock; nothing already in the file is ever rewritten.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from labbook.errors import LabbookError
from labbook.fence import FenceReader
from labbook.places import check_regular, check_writable
from labbook.record import Record, RecordError, from_line, to_line

try:
    import fcntl
except ImportError:  # Windows has no flock; a single O_APPEND write is what protects a record there
    fcntl = None  # type: ignore[assignment]

HEADING = """# Lab notebook

Write in this file as you like. Every line that is one JSON object is a record that an instrument appended;
`labbook list` shows them in a table. Nothing that stands here is ever rewritten.

"""

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
# A line that sets out to be an object with a name in it. Prose such as "{ not json" does not.
_MEANT_AS_RECORD = re.compile(r'\s*\{\s*"')


@dataclass(frozen=True)
class Problem:
    """A line that was meant as a record and is not one; `line_number` counts from 1."""

    line_number: int
    reason: str

    def __str__(self) -> str:
        return f"line {self.line_number}: {self.reason}"


@dataclass(frozen=True)
class Reading:
    """What one look at the file found: records and their line numbers, and what was not readable."""

    records: list[Record] = field(default_factory=list)
    line_numbers: list[int] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


class Labbook:
    """A lab notebook at `path`. The file is made by the first append."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def append(self, record: Record) -> Record:
        """Add one record and return it. Raises RecordError (not JSON) or LabbookError (file not writable)."""
        line = (to_line(record) + "\n").encode("utf-8")
        self.check_writable_place()
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
        try:
            descriptor = os.open(self.path, flags, 0o666)
        except OSError as error:
            raise LabbookError(f"cannot write the lab notebook {self.path}: {error.strerror}") from None
        try:
            with _locked(descriptor, exclusive=True):
                _write_once(descriptor, _what_must_come_first(descriptor) + line)
        except OSError as error:
            raise LabbookError(f"the record was not written to {self.path}: {error.strerror}") from None
        finally:
            os.close(descriptor)
        return record

    def check_writable_place(self) -> None:
        """Raise LabbookError unless a file can stand at this path; makes nothing."""
        check_writable(self.path, "the lab notebook")

    def read(self) -> Reading:
        """Everything in the file, leniently. Raises LabbookError when there is no file to read."""
        return read_lines(self.content())

    def records(self, strict: bool = False) -> list[Record]:
        """All records in file order. With `strict`, a line that was meant as a record and is not raises."""
        reading = self.read()
        if strict and reading.problems:
            listed = "; ".join(str(problem) for problem in reading.problems)
            raise LabbookError(f"{self.path} has {len(reading.problems)} unreadable record(s): {listed}")
        return reading.records

    @property
    def problems(self) -> list[Problem]:
        """The lines that were meant as records and are not; they stay in the file."""
        return self.read().problems

    def select(self, **wanted: object) -> list[Record]:
        """Records whose fields equal all the given values, as in `select(lab="prefix-cache", verdict="reused")`."""
        missing = object()
        return [
            record
            for record in self.records()
            if all(record.get(name, missing) == value for name, value in wanted.items())
        ]

    def content(self) -> bytes:
        """The whole file, between two appends. Raises LabbookError when there is no file to read."""
        check_regular(self.path, "the lab notebook")  # opening a FIFO would hang
        try:
            with open(self.path, "rb") as file, _locked(file.fileno(), exclusive=False):
                return file.read()
        except FileNotFoundError:
            raise LabbookError(
                f"there is no labbook at {self.path}: measure something first, "
                "or name the file with --labbook or LABBOOK"
            ) from None
        except OSError as error:
            raise LabbookError(f"cannot read the lab notebook {self.path}: {error.strerror}") from None


def default_name() -> str:
    """Where the learner's notebook is: the environment's LABBOOK, else labbook.md in the current folder."""
    return os.environ.get("LABBOOK") or "labbook.md"


def split_lines(content: bytes) -> list[bytes]:
    """The lines of a notebook without their ends, whichever of the three kinds each has."""
    return _LINE_END.split(content)


def read_lines(content: bytes) -> Reading:
    """Records and problems of a notebook's bytes, leniently."""
    reading = Reading()
    if content.startswith(_UTF_16_MARKS):
        reading.problems.append(Problem(1, "the file is UTF-16, so none of its records can be read: save it as UTF-8"))
    fence = FenceReader()
    for number, raw in enumerate(split_lines(content), start=1):
        raw = raw.removeprefix(_BYTE_ORDER_MARK)
        fence.feed(number, raw)
        if b"{" not in raw:
            continue
        try:
            reading.records.append(_record_on(raw))
            reading.line_numbers.append(number)
        except RecordError as error:
            # An example object spread over the lines of a fenced block is prose, not a torn record.
            if fence.opened_at is None and _MEANT_AS_RECORD.match(raw.decode("utf-8", errors="replace")):
                reading.problems.append(Problem(number, str(error)))
    return reading


def _record_on(raw: bytes) -> Record:
    try:
        return from_line(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise RecordError(f"not UTF-8 at byte {error.start} of the line") from None


def _what_must_come_first(descriptor: int) -> bytes:
    """A heading in a new file; a newline after a torn last line, so that it costs only itself."""
    size_bytes = os.fstat(descriptor).st_size
    if size_bytes == 0:
        return HEADING.encode("utf-8")
    os.lseek(descriptor, size_bytes - 1, os.SEEK_SET)
    return b"" if os.read(descriptor, 1) in (b"\n", b"\r") else b"\n"


def _write_once(descriptor: int, data: bytes) -> None:
    written = os.write(descriptor, data)
    if written < len(data):
        raise LabbookError(
            f"only {written} of {len(data)} bytes were written: is the disk full? "
            "The torn line stays and will be reported; append the record again"
        )


@contextmanager
def _locked(descriptor: int, *, exclusive: bool) -> Iterator[None]:
    if fcntl is None:
        yield
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
    except OSError:  # some network file systems have no locks; the single write still holds
        yield
        return
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
