"""A real `mlx_lm.server` on a model of the registry, started here and stopped surely."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from labs.kit.parameters import checkout
from labs.kit.serving import READY_TIMEOUT_S, Server, ServingError

_POLL_S = 0.2
_LOG_TAIL_CHARACTERS = 1500


def float32_folder(name: str) -> Path:
    """The folder of a registered model with float32 weights, which mlx-lm computes fast on a CPU.

    Made once by `mlx_lm convert -d --dtype float32`, in MINIVLLM_HOME. Weights that are not quantized stay as they are.
    """
    from minivllm.home import folder_made_once, home
    from minivllm.models.registry import resolve

    source = Path(resolve(name))
    config = json.loads((source / "config.json").read_text(encoding="utf-8"))
    if "quantization" not in config:
        return source
    return folder_made_once(home() / "models" / f"{source.name}-float32", lambda folder: _convert(source, folder))


def _convert(source: Path, folder: Path) -> None:
    target = folder / "converted"  # mlx_lm refuses a folder that is there
    command = [sys.executable, "-m", "mlx_lm", "convert", "--hf-path", str(source), "--mlx-path", str(target)]
    done = subprocess.run([*command, "-d", "--dtype", "float32"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise ServingError(f"mlx_lm could not convert {source}: {done.stderr[-_LOG_TAIL_CHARACTERS:]}")
    for path in target.iterdir():
        path.rename(folder / path.name)
    target.rmdir()


@contextmanager
def running_mlx_server(model: str, flags: Sequence[str] = ()) -> Iterator[Server]:
    """`with running_mlx_server("tiny", ["--prompt-cache-size", "0"]) as server:`; raises ServingError."""
    folder = float32_folder(model)
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    log_handle, log_name = tempfile.mkstemp(prefix="mlx-lm-", suffix=".log")
    arguments = ["--model", str(folder), "--host", "127.0.0.1", "--port", str(port), *flags]
    with open(log_handle, "wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "labs.kit.mlx_launcher", *arguments],
            stdin=subprocess.PIPE,  # the tether: closed when this process ends
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(checkout()), *_python_path()])},
            start_new_session=True,
        )
    server = Server(f"http://127.0.0.1:{port}/v1", str(folder), Path(log_name), process)
    try:
        _wait_until_healthy(server, f"http://127.0.0.1:{port}/health")
        yield server
    finally:
        server.stop()


def _python_path() -> list[str]:
    return [place for place in [os.environ.get("PYTHONPATH")] if place]


def _wait_until_healthy(server: Server, health_url: str) -> None:
    assert server.process is not None and server.log_path is not None
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # loopback never goes through a proxy
    deadline_s = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < deadline_s:
        if server.process.poll() is not None:
            said = server.log_path.read_text(encoding="utf-8", errors="replace")[-_LOG_TAIL_CHARACTERS:]
            raise ServingError(f"mlx_lm.server ended with status {server.process.returncode}:\n{said}")
        try:
            with direct.open(health_url, timeout=5) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(_POLL_S)
    raise ServingError(f"mlx_lm.server was not healthy after {READY_TIMEOUT_S:g} s")
