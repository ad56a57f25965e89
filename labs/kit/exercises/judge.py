"""An answer against the checks of a part. Whatever the answer does, judging it ends, and ends with an outcome."""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import signal
import threading
import traceback
from collections.abc import Iterator
from types import FrameType
from typing import Any

from labs.kit.exercises.outcome import Outcome
from labs.kit.exercises.part import NOT_TOLD, Answer, Check, Part, Wrong

CHECK_LIMIT_S = 30
_MAX_SHOWN, _MAX_SHOWN_BYTES = 400, 16
_MAX_FRAMES, _MAX_PRINTED = 8, 5


class TimeIsUp(BaseException):
    """An answer that does not come to an end. No Exception: nothing on the way may take it for a failure and go on."""


def judge(part: Part, answer: Answer) -> Outcome:
    """Run the checks in order and stop at the first that fails."""
    missing = [name for name in part.names if name not in answer.objects]
    if missing:
        return Outcome(part.title, "not attempted", message=f"{', '.join(missing)} is not there")
    for check in part.checks:
        if (failed := judge_check(part, check, answer)) is not None:
            return failed
    return Outcome(part.title, "passed", why_it_matters=part.why_it_matters)


def judge_check(part: Part, check: Check, answer: Answer) -> Outcome | None:
    """One check alone; None when it holds."""
    printed = io.StringIO()
    try:
        with limited(CHECK_LIMIT_S), contextlib.redirect_stdout(printed):
            check.run(answer)
    except Wrong as wrong:
        return Outcome(
            part.title,
            "wrong",
            check.name,
            wrong.message,
            None if wrong.expected is NOT_TOLD else _shown(wrong.expected),
            None if wrong.actual is NOT_TOLD else _shown(wrong.actual),
            wrong.drawing,
            check.usual_cause,
            printed=_last_lines(printed.getvalue()),
        )
    except NotImplementedError as error:
        return Outcome(part.title, "not attempted", message=str(error) or "it still raises NotImplementedError")
    except (Exception, SystemExit, TimeIsUp) as error:
        return _crashed(part, check, answer, error, _last_lines(printed.getvalue()))
    return None


def _crashed(part: Part, check: Check, answer: Answer, error: BaseException, printed: str) -> Outcome:
    frames = traceback.extract_tb(error.__traceback__)
    files = {file for name in part.names for file in _files_of(answer.objects[name])}
    first = next((place for place, frame in enumerate(frames) if frame.filename in files), None)
    if first is None and not isinstance(error, TimeIsUp):
        message = f"the check itself failed, which is a fault of the course: {type(error).__name__}: {error}"
        return Outcome(
            part.title, "crashed", check.name, message, detail="".join(traceback.format_tb(error.__traceback__))
        )
    own = [frame for frame in frames[first or 0 :] if frame.filename != __file__][:_MAX_FRAMES]
    for frame in own:
        frame.filename = _short(frame.filename)
    last = "" if isinstance(error, TimeIsUp) else "".join(traceback.format_exception_only(error))
    detail = "".join(traceback.format_list(own)) + last
    return Outcome(part.title, "crashed", check.name, _what_happened(error), detail=detail, printed=printed)


def _what_happened(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return "your code called exit(): a check needs it to go on"
    return str(error) if isinstance(error, TimeIsUp) else f"your code raised {type(error).__name__}"


@contextlib.contextmanager
def limited(limit_s: float) -> Iterator[None]:
    """What never returns is stopped by TimeIsUp, where the system can: in the main thread of a POSIX system."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeIsUp(f"stopped after {limit_s:g} s: is there a loop that never ends? It was here")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _files_of(thing: Any) -> Iterator[str]:
    """The files that hold the code of a function or of a class's methods."""
    members = vars(thing).values() if inspect.isclass(thing) else [thing]
    for member in members:
        inner = inspect.unwrap(getattr(member, "__func__", getattr(member, "fget", member) or member))
        if (code := getattr(inner, "__code__", None)) is not None:
            yield code.co_filename


def _last_lines(text: str) -> str:
    """What the learner's code printed: the end of it, because a check asks many times."""
    lines = text.splitlines()
    dropped = [f"... ({len(lines) - _MAX_PRINTED} lines before)"] if len(lines) > _MAX_PRINTED else []
    return "\n".join(dropped + lines[-_MAX_PRINTED:])


def _short(path: str) -> str:
    """As seen from here, when that is shorter: a traceback is about the learner's file, not about the machine."""
    with contextlib.suppress(ValueError):
        return min(os.path.relpath(path), path, key=len)
    return path


def _shown(value: object) -> str:
    if isinstance(value, bytes) and len(value) > _MAX_SHOWN_BYTES:
        return f"{value[:_MAX_SHOWN_BYTES].hex(' ')} ... ({len(value)} bytes)"
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}... ({len(text)} characters)"
