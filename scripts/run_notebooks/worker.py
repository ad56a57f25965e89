"""One notebook through papermill: `python -m scripts.run_notebooks.worker`, with the job as the first line of standard
input. It tells each cell on standard output, one JSON object a line, and ends when its starter does.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any, TextIO

import papermill
from nbclient.exceptions import DeadKernelError
from papermill.exceptions import PapermillExecutionError
from papermill.iorw import LocalHandler, papermill_io

from labbook.tap.masking import masked
from scripts.run_notebooks.leftovers import MARKER, end_processes_of

_SCHEME = "masked:"
_KERNEL = "python3"


class Cells:
    """What happened to the cells, told to the starter as it happens."""

    def __init__(self, told: TextIO) -> None:
        self._told = told
        self._begun_s = 0.0

    def tell(self, **event: Any) -> None:
        print(json.dumps(event), file=self._told, flush=True)

    def begin(self, cell: Any, cell_index: int) -> None:
        self._begun_s = time.monotonic()
        if not _is_injected(cell):
            self.tell(begun=cell.id)

    def end(self, cell: Any, cell_index: int, execute_reply: Any) -> None:
        if not _is_injected(cell):
            self.tell(cell=cell.id, seconds=time.monotonic() - self._begun_s)


class MaskedCopies(LocalHandler):
    """Where papermill writes a notebook, after every cell. No secret reaches the file."""

    def __init__(self, secrets: list[str]) -> None:
        super().__init__()
        self._secrets = secrets

    def write(self, buf: str, path: str) -> None:
        Path(path.removeprefix(_SCHEME)).write_text(masked(buf, self._secrets), encoding="utf-8")


def main() -> None:
    job = json.loads(sys.stdin.readline())
    cells = Cells(os.fdopen(os.dup(1), "w", encoding="utf-8"))
    os.dup2(2, 1)  # whatever else is printed is no event
    threading.Thread(target=_end_with_starter, name="tether", daemon=True).start()
    papermill_io.register(_SCHEME, MaskedCopies(job["secrets"]))
    try:
        _execute(job, cells)
    except PapermillExecutionError as error:
        cells.tell(error=error.ename, message=error.evalue)
    except DeadKernelError:
        cells.tell(died=True)
    else:
        cells.tell(passed=True)


def _execute(job: dict[str, Any], cells: Cells) -> None:
    papermill.execute_notebook(
        _without_fields(job["notebook"]),
        _without_fields(_SCHEME + job["copy"]),
        job["parameters"],
        kernel_name=_KERNEL,
        language="python",  # which the metadata of a file may leave out
        progress_bar=False,
        cwd=str(Path(job["notebook"]).parent),
        on_cell_execute=cells.begin,
        on_cell_executed=cells.end,
    )


def _without_fields(path: str) -> str:
    """papermill formats a path with the parameters."""
    return path.replace("{", "{{").replace("}", "}}")


def _is_injected(cell: Any) -> bool:
    return "injected-parameters" in cell.metadata.get("tags", [])


def _end_with_starter() -> None:
    """The starter holds the other end of standard input, however it ends."""
    while os.read(0, 4096):
        pass
    end_processes_of(os.environ[MARKER], spare=(os.getpid(),))
    os._exit(1)


if __name__ == "__main__":
    main()
