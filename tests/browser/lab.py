"""JupyterLab on a copy of the notebooks: nothing in the checkout changes, and records go to a labbook of its own."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import nbformat
import requests

from labbook.book import Labbook
from labs.kit.parameters import checkout
from labs.kit.serving import end_process

READY_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 10.0
# Asks nobody for news, and shows nothing over the page.
_SETTINGS = {
    "apputils-extension/notification": '{"fetchNews": "false", "checkForUpdates": false, "doNotDisturbMode": true}'
}


@dataclass(frozen=True)
class Lab:
    url: str
    token: str
    folder: Path
    labbook: Labbook

    def notebook_url(self, name: str) -> str:
        """In a workspace of its own: JupyterLab opens again what was open before in the same one."""
        return f"{self.url}lab/workspaces/{name}/tree/notebooks/{name}.ipynb?token={self.token}"

    def read_notebook(self, name: str) -> nbformat.NotebookNode:
        return nbformat.read(self.folder / "notebooks" / f"{name}.ipynb", as_version=4)

    def wait_for_kernel(self, name: str) -> None:
        """Until the kernel of a notebook is connected and idle. The page says idle before there is one."""
        until = time.monotonic() + READY_TIMEOUT_S
        while time.monotonic() < until:
            kernels = [one["kernel"] for one in self._ask("GET", "sessions").json() if one["name"] == f"{name}.ipynb"]
            if any(kernel["connections"] and kernel["execution_state"] == "idle" for kernel in kernels):
                return
            time.sleep(0.1)
        raise RuntimeError(f"the kernel of {name} was not idle within {READY_TIMEOUT_S:.0f} s")

    def stop_kernels(self) -> None:
        """A notebook that was run holds a model in memory until its kernel ends."""
        for session in self._ask("GET", "sessions").json():
            self._ask("DELETE", f"sessions/{session['id']}")

    def _ask(self, method: str, what: str) -> requests.Response:
        head = {"Authorization": f"token {self.token}"}
        return requests.request(method, f"{self.url}api/{what}", headers=head, timeout=30)


@contextmanager
def running_lab(folder: Path, log: Path) -> Iterator[Lab]:
    """`folder` takes the copy and all that Jupyter keeps, `log` what it says. Raises RuntimeError without an answer."""
    _copy_notebooks(folder / "notebooks")
    lab = Lab(f"http://127.0.0.1:{_free_port()}/", secrets.token_hex(16), folder, Labbook(folder / "labbook.md"))
    with open(log, "wb") as stream:
        process = subprocess.Popen(
            _command(lab), cwd=folder, env=_environment(lab), stdin=subprocess.DEVNULL, stdout=stream, stderr=stream
        )
    try:
        _wait_until_ready(lab, process, log)
        yield lab
        lab.stop_kernels()
    finally:
        end_process(process, STOP_TIMEOUT_S)


def _copy_notebooks(folder: Path) -> None:
    """Without outputs, so that what is seen later was made here."""
    folder.mkdir()
    for path in sorted((checkout() / "notebooks").glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = [], None
        nbformat.write(notebook, folder / path.name)


def _command(lab: Lab) -> list[str]:
    port = lab.url.rstrip("/").rpartition(":")[2]
    server = {
        "ip": "127.0.0.1",
        "port": port,
        "port_retries": "0",
        "root_dir": str(lab.folder),
        "open_browser": "False",
    }
    flags = [f"--ServerApp.{name}={value}" for name, value in server.items()]
    return [sys.executable, "-m", "jupyterlab", *flags, "--LabApp.extension_manager=readonly", "--allow-root"]


def _environment(lab: Lab) -> dict[str, str]:
    """Everything that Jupyter writes lies in the folder. The token goes where no list of processes shows it."""
    places = {
        name: str(lab.folder / name.lower())
        for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    }
    settings, workspaces = lab.folder / "settings", lab.folder / "workspaces"
    for name, content in _SETTINGS.items():
        path = settings / "@jupyterlab" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return {
        **os.environ,
        **places,
        "JUPYTERLAB_SETTINGS_DIR": str(settings),
        "JUPYTERLAB_WORKSPACES_DIR": str(workspaces),
        "JUPYTER_TOKEN": lab.token,
        "LAB_FAST": "1",
        "LAB_BASE_URL": "",
        "LAB_LABBOOK": str(lab.labbook.path),
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_ready(lab: Lab, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < until and process.poll() is None:
        try:
            if requests.get(f"{lab.url}api/status", params={"token": lab.token}, timeout=5).ok:
                return
        except requests.ConnectionError:
            pass
        time.sleep(0.1)
    said = log.read_text(encoding="utf-8", errors="replace")[-1500:]
    raise RuntimeError(f"JupyterLab did not answer in {READY_TIMEOUT_S:.0f} s; it said:\n{said}")
