"""One notebook in a process of its own, watched: it is over when it is over, or when its time is up."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from labbook.book import Labbook
from labbook.tap.masking import masked
from labs.kit.parameters import Parameters, checkout
from scripts.run_notebooks.leftovers import MARKER, end_processes_of
from scripts.run_notebooks.run import FirstError, Run, Status
from scripts.run_notebooks.secrets import secrets
from scripts.run_notebooks.settings import has_credentials, injected

_LAST_WORDS_S = 10.0  # for the worker to write down what a notebook printed before its kernel was ended
_MESSAGE_CHARACTERS = 500
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")

OnCell = Callable[[str], None]


@dataclass
class Heard:
    """What the worker has told so far."""

    running: str | None = None
    cell_seconds: dict[str, float] = field(default_factory=dict)
    last: dict[str, Any] = field(default_factory=dict)

    def hear(self, event: dict[str, Any]) -> None:
        self.last = event
        self.running = event.get("begun", self.running)
        if "cell" in event:
            self.cell_seconds[event["cell"]] = event["seconds"]


def run_notebook(notebook: Path, copy: Path, parameters: Parameters, timeout_s: float, on_cell: OnCell) -> Run:
    """Execute `notebook` into `copy`, and end whatever it leaves running.

    `on_cell(id)` is called as each cell begins.
    """
    hidden = secrets(os.environ, parameters.base_url)
    num_before = len(_records(parameters.labbook))
    heard, begun_s = Heard(), time.monotonic()
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
        with _worker(parameters, log) as (worker, run_id):
            has_expired = _expiry(timeout_s, worker, run_id)
            job = {"notebook": str(notebook.absolute()), "copy": str(copy.absolute()), "secrets": hidden}
            for event in _events(worker, {**job, "parameters": injected(parameters)}):
                heard.hear(event)
                if "begun" in event:
                    on_cell(event["begun"])
            worker.wait()
            seconds = time.monotonic() - begun_s
            is_late = has_expired()
        log.seek(0)
        status, error = _ending(heard, f"it took more than {timeout_s:g} s" if is_late else "", log.read())
    if error is not None:
        message = _shortened(masked(_COLOURS.sub("", error.message), hidden))
        error = FirstError(error.cell, error.name, message)
    added = [str(record.get("experiment", "no experiment")) for record in _records(parameters.labbook)[num_before:]]
    return Run(notebook.stem, status, seconds, heard.cell_seconds, error, added)


@contextlib.contextmanager
def _worker(parameters: Parameters, log: IO[str]) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A worker, and the word that marks everything it starts. Nothing of that is alive afterwards."""
    run_id = uuid.uuid4().hex
    worker = subprocess.Popen(
        [sys.executable, "-m", "scripts.run_notebooks.worker"],
        stdin=subprocess.PIPE,  # the tether: stays open as long as this process lives
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        encoding="utf-8",
        cwd=checkout(),
        env=_surroundings(parameters, run_id),
        start_new_session=True,  # Ctrl-C is ours to handle
    )
    try:
        yield worker, run_id
    finally:
        end_processes_of(run_id)
        worker.wait()
        for stream in (worker.stdin, worker.stdout):
            assert stream is not None
            stream.close()


def _surroundings(parameters: Parameters, run_id: str) -> dict[str, str]:
    """Ours, less LAB_*: all parameters are in the notebook, except a URL with a password."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LAB_")}
    path = os.pathsep.join([str(checkout()), *filter(None, [os.environ.get("PYTHONPATH")])])
    unwritten = {"LAB_BASE_URL": parameters.base_url} if has_credentials(parameters) else {}
    return {**kept, "PYTHONPATH": path, MARKER: run_id, **unwritten}


def _expiry(timeout_s: float, worker: subprocess.Popen[str], run_id: str) -> Callable[[], bool]:
    """End the run when its time is up. Returns a function that stops the watch, and says whether it came to that."""
    expired = threading.Event()

    def end() -> None:
        expired.set()
        end_processes_of(run_id, spare=(worker.pid,))
        try:
            worker.wait(_LAST_WORDS_S)
        except subprocess.TimeoutExpired:
            worker.kill()

    timer = threading.Timer(timeout_s, end)
    timer.daemon = True
    timer.start()

    def stop() -> bool:
        timer.cancel()
        return expired.is_set()

    return stop


def _events(worker: subprocess.Popen[str], job: dict[str, Any]) -> Iterator[dict[str, Any]]:
    assert worker.stdin is not None and worker.stdout is not None
    with contextlib.suppress(BrokenPipeError):  # it ended at once; its log says why
        worker.stdin.write(json.dumps(job) + "\n")
        worker.stdin.flush()
    yield from (json.loads(line) for line in worker.stdout if line.endswith("\n"))  # a torn line: it was killed


def _ending(heard: Heard, too_late: str, log: str) -> tuple[Status, FirstError | None]:
    if too_late:
        return "timed out", FirstError(heard.running, "TimeoutError", too_late)
    if "passed" in heard.last:
        return "passed", None
    if "died" in heard.last:
        return "kernel died", FirstError(heard.running, "DeadKernelError", "the kernel ended in the middle of the cell")
    if "error" in heard.last:
        return "failed", FirstError(heard.running, heard.last["error"], heard.last["message"])
    said = log.strip().splitlines()
    return "failed", FirstError(heard.running, "RuntimeError", said[-1] if said else "the worker ended without a word")


def _records(path: Path) -> Sequence[dict[str, Any]]:
    return Labbook(path).records() if path.exists() else []


def _shortened(message: str) -> str:
    return message if len(message) <= _MESSAGE_CHARACTERS else message[: _MESSAGE_CHARACTERS - 3] + "..."
