"""What a slot file must survive: every changed byte, every cut, another identity, and a kill at every instruction."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from labs.kit.exercises.killing import killed_while
from labs.kit.exercises.part import Answer, Check, Part, Wrong

IDENTITY = {"model": "tiny", "page_size": "2"}
OLD, NEW = ([1, 2], b"old keys"), ([1, 2, 3, 49_151], bytes(range(64)))
MAX_INSTRUCTIONS = 3_000


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="lab-10-") as name:
        yield Path(name)


def read(answer: Answer, path: Path, identity: dict[str, str]) -> Any:
    """What restore gives, or the message of its refusal; any other error is the learner's crash."""
    try:
        token_ids, payload = answer.restore(path, identity)
    except Exception as error:
        if type(error).__name__ == "SlotFileError":
            return f"SlotFileError: {error}"
        raise
    return list(token_ids), bytes(payload)


def refused(result: Any) -> bool:
    return isinstance(result, str)


def examples(answer: Answer) -> None:
    with folder() as place:
        path = place / "a.slot"
        for saved in (OLD, NEW, ([], b"")):
            answer.save(path, IDENTITY, *saved)
            result = read(answer, path, IDENTITY)
            if result != saved:
                raise Wrong("what was saved does not come back", expected=saved, actual=result)


def another_identity_is_refused(answer: Answer) -> None:
    with folder() as place:
        path = place / "a.slot"
        answer.save(path, IDENTITY, *NEW)
        for name, other in (
            ("page_size", {**IDENTITY, "page_size": "4"}),
            ("model", {**IDENTITY, "model": "tinier"}),
            ("salt", {**IDENTITY, "salt": "a"}),
            ("page_size", {"model": "tiny"}),
        ):
            result = read(answer, path, other)
            drawing = f"saved as     {IDENTITY}\nrestored as  {other}"
            if not refused(result):
                raise Wrong(
                    "a file of another identity is restored", drawing=drawing, expected="SlotFileError", actual=result
                )
            if name not in result:
                raise Wrong(
                    "the message does not say what differs",
                    drawing=drawing,
                    expected=f"a sentence with {name!r} in it",
                    actual=result,
                )


def with_content(answer: Answer, change: Callable[[bytes], Iterator[tuple[str, bytes]]]) -> None:
    """Save once, put each changed content in its place, and restore: refused, and by no other error."""
    with folder() as place:
        path = place / "a.slot"
        answer.save(path, IDENTITY, *NEW)
        for told, content in change(path.read_bytes()):
            path.write_bytes(content)
            try:
                result = read(answer, path, IDENTITY)
            except NotImplementedError:
                raise
            except Exception as error:
                raise Wrong(
                    f"{told}: another error than SlotFileError",
                    expected="SlotFileError",
                    actual=f"{type(error).__name__}: {error}",
                ) from None
            if not refused(result):
                raise Wrong(
                    f"{told}, and the file is restored",
                    expected="SlotFileError",
                    actual="the tokens and keys that were saved" if result == NEW else result,
                )


def every_changed_byte_is_noticed(answer: Answer) -> None:
    def changed(content: bytes) -> Iterator[tuple[str, bytes]]:
        for place in range(len(content)):
            for bit in (0x01, 0x80):
                yield (
                    f"byte {place} of {len(content)} is changed",
                    content[:place] + bytes([content[place] ^ bit]) + content[place + 1 :],
                )

    with_content(answer, changed)


def every_length_is_noticed(answer: Answer) -> None:
    def cut(content: bytes) -> Iterator[tuple[str, bytes]]:
        for length in range(len(content)):
            yield f"only {length} of {len(content)} bytes are there", content[:length]
        yield "a zero byte follows the end", content + b"\x00"
        yield "a second file follows the first", content + content

    with_content(answer, cut)


def what_is_no_slot_file_is_refused(answer: Answer) -> None:
    def others(content: bytes) -> Iterator[tuple[str, bytes]]:
        yield "a text file", b"Dear diary,\n"
        yield "JSON of something else", b'{"cells": []}\n'
        yield "zeros", bytes(len(content))

    with_content(answer, others)
    with folder() as place:
        try:
            result = read(answer, place / "missing.slot", IDENTITY)
        except OSError as error:
            raise Wrong(
                "no file: another error than SlotFileError", expected="SlotFileError", actual=type(error).__name__
            ) from None
        if not refused(result):
            raise Wrong("a file that is not there is restored", expected="SlotFileError", actual=result)


def a_kill_in_mid_save_costs_nothing(answer: Answer) -> None:
    """The saving process is killed before its first, second, ... call; the old or the new file is there."""
    if not hasattr(os, "fork"):
        return
    with folder() as place:
        path = place / "a.slot"
        for number in range(1, MAX_INSTRUCTIONS):
            answer.save(path, IDENTITY, *OLD)
            if not killed_while(lambda: answer.save(path, IDENTITY, *NEW), number):
                return
            result = read(answer, path, IDENTITY)
            if result not in (OLD, NEW):
                raise Wrong(
                    f"the process is killed at instruction {number} of save, and the old file is gone",
                    expected="what was saved before, or what was being saved",
                    actual=result,
                )
        raise Wrong(
            f"save takes more than {MAX_INSTRUCTIONS} calls for 64 bytes", expected="a few dozen", actual="more"
        )


class Stop(OSError):
    pass


def nothing_is_lost_when_it_fails(answer: Answer) -> None:
    """The disk is full, or the folder is gone, at the moment of the rename."""

    def fail(*arguments: Any, **options: Any) -> None:
        raise Stop("no space left on device")

    with folder() as place:
        path = place / "a.slot"
        answer.save(path, IDENTITY, *OLD)
        with contextlib.suppress(Stop), mock.patch("os.replace", fail), mock.patch("os.rename", fail):
            answer.save(path, IDENTITY, *NEW)
            raise Wrong(
                "save never gives a complete new file the old one's name", expected="one os.replace", actual="none"
            )
        result, left = read(answer, path, IDENTITY), sorted(file.name for file in place.iterdir())
        if result != OLD:
            raise Wrong("the rename failed, and the old file is not there any more", expected=OLD, actual=result)
        if left != ["a.slot"]:
            raise Wrong("the rename failed, and something else is left behind", expected=["a.slot"], actual=left)


def it_is_on_the_disk_before_it_has_the_name(answer: Answer) -> None:
    told: list[str] = []
    real_sync, real_replace, real_rename = os.fsync, os.replace, os.rename

    def sync(*arguments: Any) -> None:
        told.append("fsync")
        real_sync(*arguments)

    def moving(real: Callable[..., None]) -> Callable[..., None]:
        def move(*arguments: Any, **options: Any) -> None:
            told.append("replace")
            real(*arguments, **options)

        return move

    with (
        folder() as place,
        mock.patch("os.fsync", sync),
        mock.patch("os.replace", moving(real_replace)),
        mock.patch("os.rename", moving(real_rename)),
    ):
        answer.save(place / "a.slot", IDENTITY, *NEW)
    if told[:2] != ["fsync", "replace"]:
        raise Wrong(
            "a power cut after the rename can leave an empty file",
            expected="fsync, then replace",
            actual=", ".join(told) or "neither",
        )


def nobody_else_may_read_it(answer: Answer) -> None:
    """Also not for the moment in which it is being written."""
    seen: dict[str, int] = {}
    real = os.fsync

    def look(*arguments: Any) -> None:
        seen.update({file.name: stat.S_IMODE(file.stat().st_mode) for file in place.iterdir()})
        real(*arguments)

    before = os.umask(0)
    try:
        with folder() as place, mock.patch("os.fsync", look):
            answer.save(place / "a.slot", IDENTITY, *NEW)
            seen["a.slot"] = stat.S_IMODE((place / "a.slot").stat().st_mode)
    finally:
        os.umask(before)
    for name, mode in seen.items():
        if os.name == "posix" and mode & 0o077:
            what = "the file" if name == "a.slot" else "the file that is being written"
            raise Wrong(f"others may read {what}", expected="mode 0600", actual=f"mode {mode:04o}")


PARTS = (
    Part(
        ("save", "restore"),
        (
            Check(
                "the README's example",
                examples,
                "Something was lost on the way: an empty list, an empty payload, or bytes that are no text.",
            ),
            Check(
                "another identity is refused",
                another_identity_is_refused,
                "Only some names are compared, or only those that the file has.",
            ),
            Check(
                "every changed byte is noticed",
                every_changed_byte_is_noticed,
                "A part of the file is in no digest, or is believed before the digest is compared.",
            ),
            Check(
                "every length is noticed",
                every_length_is_noticed,
                "Cut or extra bytes pass because only the expected number of bytes is looked at.",
            ),
            Check(
                "what is no slot file is refused",
                what_is_no_slot_file_is_refused,
                "An error of reading or parsing passes through as it is.",
            ),
            Check(
                "a kill in mid-save costs nothing",
                a_kill_in_mid_save_costs_nothing,
                "The old file is opened for writing, or removed, before the new one is complete.",
            ),
            Check(
                "nothing is lost when it fails",
                nothing_is_lost_when_it_fails,
                "The temporary file stays behind after an error, or the old file is touched first.",
            ),
            Check(
                "it is on the disk before it has the name",
                it_is_on_the_disk_before_it_has_the_name,
                "Flush and os.fsync the new file before os.replace.",
            ),
            Check(
                "nobody else may read it",
                nobody_else_may_read_it,
                "open() makes files that others can read, and chmod afterwards comes too late.",
            ),
        ),
        "A restored conversation is either exactly the saved one or none. llama-server's slot files check much less.",
    ),
)
