"""Starting and stopping the six: one process of its own, on loopback, that holds a lock while it serves."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from labbook.errors import LabbookError
from labs.kit.mystery.cast import ENGINE, FLAGS, LETTERS, SUSPECTS, who_is_who
from labs.kit.parameters import checkout

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

STATE, LOG = "servers.json", "servers.log"
FIRST_PORT = 8101
READY_TIMEOUT_S, STOP_TIMEOUT_S = 120.0, 20.0


class MysteryError(LabbookError):
    """The servers cannot be started or stopped; the message says why and what to do."""


@dataclass(frozen=True)
class Troupe:
    """What is known of servers that were started: `base_urls` by letter. `seed` says who is who."""

    seed: int
    base_urls: dict[str, str]
    process_id: int

    def letter_of(self, base_url: str) -> str | None:
        return next((letter for letter, url in self.base_urls.items() if url == base_url), None)


def read(folder: Path) -> Troupe | None:
    """The servers that were last started from this folder, running or not. Raises MysteryError for a damaged file."""
    path = folder / STATE
    if not path.is_file():
        return None
    try:
        return Troupe(**json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise MysteryError(f"{path} is damaged ({error}): remove it, and start the servers anew") from None


def is_running(folder: Path) -> bool:
    """Whether the process that serves is alive: it holds the lock."""
    path = folder / STATE
    if fcntl is None or not path.is_file():
        return False
    with open(path, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def start(folder: Path, seed: int | None = None) -> Troupe:
    """Start all six and wait until they answer. The order is kept when they are started again. Raises MysteryError."""
    if is_running(folder):
        raise MysteryError("the servers are running already: `labs mystery down` stops them")
    folder.mkdir(parents=True, exist_ok=True)
    before = read(folder)
    if seed is None:
        seed = before.seed if before else secrets.randbelow(2**31)
    log_path = folder / LOG
    with open(log_path, "wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "labs.kit.mystery.troupe", str(folder), str(seed)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(checkout()), os.environ.get("PYTHONPATH", "")])},
            start_new_session=True,  # the terminal or notebook that started them may go
        )
    return _when_ready(folder, process, log_path)


def stop(folder: Path) -> bool:
    """Stop the servers; False when none were running. Raises MysteryError when they do not end."""
    troupe = read(folder)
    if troupe is None or not is_running(folder):
        return False
    os.kill(troupe.process_id, signal.SIGTERM)
    deadline_s = time.monotonic() + STOP_TIMEOUT_S
    while is_running(folder):
        if time.monotonic() > deadline_s:
            raise MysteryError(f"the servers (process {troupe.process_id}) have not ended after {STOP_TIMEOUT_S:g} s")
        time.sleep(0.05)
    return True


def _when_ready(folder: Path, process: subprocess.Popen[bytes], log_path: Path) -> Troupe:
    deadline_s = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < deadline_s:
        troupe = read(folder)
        if troupe is not None and troupe.process_id == process.pid:
            return troupe
        if process.poll() is not None:
            break
        time.sleep(0.05)
    process.terminate()
    lines = log_path.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    raise MysteryError(f"the servers did not start: {lines[-1] if lines else 'they said nothing'}")


def serve(folder: Path, seed: int) -> None:
    """All six in this process, until it is told to end."""
    with contextlib.ExitStack() as stack:
        base_urls = {letter: stack.enter_context(_one(letter, seed)) for letter in LETTERS}
        stack.enter_context(_announced(folder, Troupe(seed, base_urls, os.getpid())))
        signal.sigwait({signal.SIGTERM, signal.SIGINT})


@contextlib.contextmanager
def _one(letter: str, seed: int) -> Iterator[str]:
    from labs.kit.doubles import DoubleError, double  # loads an engine, which only the serving process needs
    from labs.kit.doubles.presets import faults_of

    faults = faults_of([SUSPECTS[who_is_who(seed)[letter]].fault])
    port = FIRST_PORT + LETTERS.index(letter)
    with contextlib.ExitStack() as stack:
        try:
            server = stack.enter_context(double(ENGINE, faults=faults, flags=FLAGS, port=port))
        except (DoubleError, OSError):  # the port is taken
            server = stack.enter_context(double(ENGINE, faults=faults, flags=FLAGS))
        yield server.base_url


@contextlib.contextmanager
def _announced(folder: Path, troupe: Troupe) -> Iterator[None]:
    """The state file, whole and locked from the moment it has its name."""
    beside = folder / f"{STATE}.{os.getpid()}"
    with open(beside, "w", encoding="utf-8") as file:
        json.dump(asdict(troupe), file)
        file.flush()
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)
        os.replace(beside, folder / STATE)
        yield


def main() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})  # threads that follow inherit it
    serve(Path(sys.argv[1]), int(sys.argv[2]))


if __name__ == "__main__":
    main()
