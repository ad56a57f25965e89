"""A server to measure: yours when there is a base URL, else the mini engine, started here and stopped surely."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from labs.kit.parameters import checkout

READY_TIMEOUT_S = 600.0
STOP_TIMEOUT_S = 15.0
_POLL_S = 0.1
_LOG_TAIL_LINES = 15
_ADDRESS = re.compile(r"minivllm loading .*?; (http://\S+?)/health")


class ServingError(RuntimeError):
    """The server did not start; the message says why, or that its log stands above."""


@dataclass
class Server:
    """A server that answers. `log_path` and `process` are None for a server of yours, which nobody stops."""

    base_url: str
    model: str | None
    log_path: Path | None = None
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def is_ours(self) -> bool:
        return self.process is not None

    def stop(self) -> None:
        """End the engine that was started here, and remove its log. May be called twice."""
        if self.process is not None:
            end_process(self.process)
        if self.log_path is not None:
            self.log_path.unlink(missing_ok=True)


@contextmanager
def running_server(
    model: str | None, base_url: str = "", flags: Sequence[str] = (), *, is_quiet: bool = False
) -> Iterator[Server]:
    """`with running_server("tiny") as server:` measures `server.base_url`; stopped at the end, errors included."""
    server = start_server(model, base_url, flags, is_quiet=is_quiet)
    try:
        yield server
    finally:
        server.stop()


def start_server(model: str | None, base_url: str = "", flags: Sequence[str] = (), *, is_quiet: bool = False) -> Server:
    """The server at `base_url`, or the mini engine with `model` and `flags` on a free loopback port.

    Returns when it can answer; what the engine says meanwhile goes to standard error, unless `is_quiet`. It ends with
    this process at the latest. Raises ServingError when it does not start.
    """
    if base_url:
        return Server(base_url, model)
    if not model:
        raise ServingError("no model was named: the engine needs one, for instance smollm2-135m")
    log_handle, log_name = tempfile.mkstemp(prefix="minivllm-", suffix=".log")
    log_path = Path(log_name)
    with open(log_handle, "wb") as log:
        process = _spawn(["serve", "--model", model, "--host", "127.0.0.1", "--port", "0", *flags], log)
    try:
        url = _wait_until_ready(process, log_path, is_quiet)
    except BaseException:  # an interrupt by the learner, too, must leave no server behind
        Server("", model, log_path, process).stop()
        raise
    return Server(f"{url}/v1", model, log_path, process)


def _spawn(arguments: Sequence[str], log: BinaryIO) -> subprocess.Popen[bytes]:
    places = [str(checkout()), *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.Popen(
        [sys.executable, "-m", "labs.kit.tether", *arguments],
        stdin=subprocess.PIPE,  # the tether: never written to, closed when this process ends
        stdout=log,
        stderr=subprocess.STDOUT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(places)},
        start_new_session=True,  # interrupting a notebook's cell must not interrupt the server
    )


def _wait_until_ready(process: subprocess.Popen[bytes], log_path: Path, is_quiet: bool) -> str:
    deadline_s = time.monotonic() + READY_TIMEOUT_S
    num_shown = 0
    while time.monotonic() < deadline_s:
        has_ended = process.poll() is not None
        said = log_path.read_text(encoding="utf-8", errors="replace")
        if not is_quiet and len(said) > num_shown:
            print(said[num_shown:], end="", file=sys.stderr, flush=True)
            num_shown = len(said)
        if has_ended:
            why = f"the server ended with status {process.returncode} before it was ready"
            raise ServingError(f"{why}; {_last_words(said, is_quiet)}")
        address = _ADDRESS.search(said)
        if address and _is_healthy(address[1]):
            return address[1]
        time.sleep(_POLL_S)
    raise ServingError(f"the server was not ready after {READY_TIMEOUT_S:g} s; {_last_words(said, is_quiet)}")


def _is_healthy(url: str) -> bool:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # loopback never goes through a proxy
    try:
        with direct.open(f"{url}/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def end_process(process: subprocess.Popen[bytes], timeout_s: float = STOP_TIMEOUT_S) -> None:
    """Ask a process to end, and after a while make it."""
    if process.stdin is not None:
        process.stdin.close()
    process.terminate()
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _last_words(log: str, is_quiet: bool) -> str:
    if not is_quiet:
        return "what it said stands above"
    lines = log.splitlines()[-_LOG_TAIL_LINES:]
    return "the end of its log:\n" + "\n".join(f"    {line}" for line in lines) if lines else "it said nothing"
