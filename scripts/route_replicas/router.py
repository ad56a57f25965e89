"""A router from PyPI: found where it is installed, started in front of servers on loopback, and stopped surely."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import BinaryIO

from scripts.route_replicas import tether

LOOPBACK = "127.0.0.1"
READY_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 15.0
_POLL_S = 0.1
_LOG_TAIL_LINES = 12
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")

# How each router is started; both go on with the same flags. The policies named in this example exist in both.
_FIRST_WORDS: dict[str, tuple[str, ...]] = {"vllm-router": (), "sglang-router": ("launch",)}
ROUTERS = tuple(_FIRST_WORDS)
INSTALL = ".venv/bin/python -m pip install -c constraints.txt -e '.[router]'"


class RouterError(RuntimeError):
    """There is no router, or it did not start; the message says what to do, or ends with its log."""


@dataclass(frozen=True)
class Router:
    """An installed router: the name of its package, its program, and its version where the package tells."""

    name: str
    program: Path
    version: str | None

    def command(self, policy: str, worker_urls: Sequence[str], port: int, metrics_port: int) -> list[str]:
        """Every port is bound on loopback; left alone, sglang-router shows its metrics to the whole network."""
        return [
            str(self.program),
            *_FIRST_WORDS[self.name],
            *("--host", LOOPBACK, "--port", str(port)),
            *("--prometheus-host", LOOPBACK, "--prometheus-port", str(metrics_port)),
            *("--policy", policy, "--worker-urls", *worker_urls),
        ]


def find_router(named: str | None = None) -> Router:
    """The router at the path or of the name that is given, else the first of ROUTERS that is installed.

    Looks beside the running Python first, then on PATH. Raises RouterError.
    """
    for name in [named] if named else ROUTERS:
        program = _program(name)
        if program is None:
            continue
        if program.name not in ROUTERS:
            raise RouterError(f"{named} is none of the routers known here: {' or '.join(ROUTERS)}")
        return Router(program.name, program, _version(program))
    sought = named or " or ".join(ROUTERS)
    raise RouterError(f"{sought} is not installed; at the top of the checkout: {INSTALL}")


@contextmanager
def running_router(router: Router, policy: str, worker_urls: Sequence[str]) -> Iterator[str]:
    """The base URL of the router once all workers are healthy behind it; stopped at the end, errors included."""
    port, metrics_port = _free_ports(2)
    url = f"http://{LOOPBACK}:{port}"
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [sys.executable, tether.__file__, *router.command(policy, worker_urls, port, metrics_port)],
            stdin=subprocess.PIPE,  # never written to: its end tells the tether that this process has ended
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # an interrupt reaches this process alone, which then stops the router
        )
        try:
            _wait_for_workers(process, url, len(worker_urls), lambda: f"{router.name} said:\n{_tail(log)}")
            yield f"{url}/v1"
        finally:
            _stop(process)


def _wait_for_workers(process: subprocess.Popen[bytes], url: str, num_workers: int, said: Callable[[], str]) -> None:
    deadline_s = time.monotonic() + READY_TIMEOUT_S
    while _num_healthy_workers(url) < num_workers:
        if process.poll() is not None:
            raise RouterError(f"the router ended with status {process.returncode} before it was ready; {said()}")
        if time.monotonic() > deadline_s:
            raise RouterError(f"the router was not ready after {READY_TIMEOUT_S:g} s; {said()}")
        time.sleep(_POLL_S)


def _num_healthy_workers(url: str) -> int:
    """As /readiness tells it in both routers; 0 as long as nobody answers."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # loopback never goes through a proxy
    try:
        with direct.open(f"{url}/readiness", timeout=5) as answer:
            return int(json.load(answer)["healthy_workers"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def _stop(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _tail(log: BinaryIO) -> str:
    log.seek(0)
    text = _COLOURS.sub("", log.read().decode("utf-8", errors="replace"))
    return "\n".join(f"    {line}" for line in text.splitlines()[-_LOG_TAIL_LINES:]) or "    nothing"


def _free_ports(num_ports: int) -> list[int]:
    """Ports that were free a moment ago: neither router can be asked to choose one."""
    listeners = [socket.create_server((LOOPBACK, 0)) for _ in range(num_ports)]
    ports = [listener.getsockname()[1] for listener in listeners]
    for listener in listeners:
        listener.close()
    return ports


def _program(name: str) -> Path | None:
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.is_file() else shutil.which(name)
    return Path(found) if found else None


def _version(program: Path) -> str | None:
    """From the package beside the program: neither router tells its version."""
    places = [str(place) for place in program.resolve().parent.parent.glob("lib/python3*/site-packages")]
    found = [one.version for one in metadata.distributions(name=program.name, path=places)]
    return found[0] if found else None
