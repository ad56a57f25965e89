"""Make `.venv` at the top of the checkout and install this distribution with the named extras.

The Makefile runs this with a Python of the system, whatever the state of `.venv`; it needs the standard
library alone. When everything is there it only looks, and needs no network. What it writes lies in `.venv`
and in pip's cache, which is kept in MINIVLLM_HOME.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import fcntl
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from minivllm.home import home  # noqa: E402  (needs nothing that is yet to be installed)

DISTRIBUTION = "prefix-cache-lab"
AGAIN = "then run the same command again"
DISK_FULL = re.compile(r"No space left on device|Disk quota exceeded|\[Errno (28|122)\]")
UNREACHABLE = re.compile(
    r"NewConnectionError|NameResolutionError|Failed to establish a new connection|ConnectTimeoutError"
    r"|ReadTimeoutError|Read timed out|Connection (refused|reset|aborted)|ProxyError|SSLError"
    r"|Network is unreachable|Max retries"
)
NO_VERSION = re.compile(r"satisfies the requirement (\S+).*\(from versions: none\)")
# Modules without which an extra is not there: somebody, or a full disk, may have removed a part of .venv.
ENGINE_MODULES = ("mlx.core", "mlx_lm", "transformers", "fastapi", "uvicorn")
MODULES = {
    "engine": ENGINE_MODULES,
    "cuda": ENGINE_MODULES,
    "encryption": ("cryptography",),
    "plot": ("matplotlib", "numpy"),
    "lab": ("matplotlib", "numpy", "jupyterlab", "ipywidgets", "nbval", "papermill", "nbconvert", "latex2mathml"),
    "browser": ("playwright",),
    "test": ("pytest", "pytest_timeout", "hypothesis", "httpx", "openai", "yaml", "mypy", "ruff"),
}
ALWAYS_MODULES = ("pip", "prometheus_client", "requests", "tqdm")
OUTPUT: dict[str, Any] = {  # standard output and error as one text
    "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "encoding": "utf-8", "errors": "replace"
}  # fmt: skip


class SetupError(Exception):
    """What went wrong, and what to do, in one sentence for the person at the terminal."""


@dataclass(frozen=True)
class Stamp:
    """What `.venv` holds, kept inside it. `complete` is False while an installation is under way."""

    checkout: str
    python: str
    inputs_sha256: str
    extras: tuple[str, ...]
    complete: bool

    @classmethod
    def read(cls, venv: Path) -> Stamp | None:
        try:
            fields = json.loads((venv / "setup.json").read_text(encoding="utf-8"))
            return cls(**{**fields, "extras": tuple(fields["extras"])})
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def write(self, venv: Path) -> None:
        part = venv / "setup.json.part"
        part.write_text(json.dumps(asdict(self)), encoding="utf-8")
        part.replace(venv / "setup.json")


def ensure(root: Path, extras: Sequence[str], same_version: bool = False) -> None:
    """Bring `root/.venv` to hold `extras`; `same_version`: it must be of the running Python's version.

    Raises SetupError. Whatever it interrupts or finds half-made is rebuilt by the next call.
    """
    venv = root / ".venv"
    with only_one_at_a_time(root):
        stamp = Stamp.read(venv)
        reason = reason_to_rebuild(root, stamp, extras, same_version)
        if reason:
            remove(venv, reason)
            stamp = None
        python = stamp.python if stamp else python_version()
        wanted = Stamp(str(root), python, inputs_sha256(root), together(stamp, extras), complete=True)
        if wanted == stamp:
            return
        check_free_space(root, wanted.extras)
        if stamp is None:
            make_venv(venv)
        install(root, venv, before=stamp, wanted=wanted)


def reason_to_rebuild(root: Path, stamp: Stamp | None, extras: Sequence[str], same_version: bool) -> str | None:
    """Why the environment cannot be built upon, or None; an absent one needs a build and gives no reason."""
    venv = root / ".venv"
    if not os.path.lexists(venv):
        return None
    if stamp is None:
        return "it was not finished, or not made by make"
    if not stamp.complete:
        return "its last installation did not finish"
    if stamp.checkout != str(root):
        return f"it was made for {stamp.checkout}"
    if same_version and stamp.python != python_version():
        return f"it has Python {stamp.python}, and {python_version()} was asked for"
    if "cuda" in extras and "engine" in stamp.extras:
        return "MLX's CUDA build takes the place of the CPU build"
    if not works(venv, set(extras) & set(stamp.extras)):
        return "its Python or its packages are gone"
    return None


def together(stamp: Stamp | None, extras: Sequence[str]) -> tuple[str, ...]:
    """What is there and what is wanted. Where `cuda` is, it stands for `engine`: both bring a libmlx.so."""
    union = {*extras, *(stamp.extras if stamp else ())}
    return tuple(sorted(union - {"engine"} if "cuda" in union else union))


def inputs_sha256(root: Path) -> str:
    """A digest of what decides which packages are installed: of contents, because git sets file times."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    decides = json.dumps([project["build-system"], project["project"]], sort_keys=True)
    return hashlib.sha256(decides.encode() + (root / "constraints.txt").read_bytes()).hexdigest()


def python_version() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def works(venv: Path, extras: Collection[str]) -> bool:
    """Whether its Python runs and finds this distribution and the main packages of `extras`; imports none of them."""
    modules = sorted({*ALWAYS_MODULES, *(module for extra in extras for module in MODULES.get(extra, ()))})
    question = (
        "import importlib.metadata, importlib.util, sys; "
        f"importlib.metadata.distribution('{DISTRIBUTION}'); "
        f"specs = map(importlib.util.find_spec, {modules}); "
        "sys.exit(any(spec is None or spec.origin is None for spec in specs))"  # without origin: a folder, emptied
    )
    try:
        return subprocess.run([venv / "bin" / "python", "-I", "-c", question], capture_output=True).returncode == 0
    except OSError:
        return False


def remove(venv: Path, reason: str) -> None:
    say(f"Making .venv anew: {reason}.")
    if venv.is_symlink() or not venv.is_dir():
        venv.unlink()
        return
    (venv / "setup.json").unlink(
        missing_ok=True
    )  # first, so that a half-removed environment is not taken for a whole one
    shutil.rmtree(venv)


def check_free_space(root: Path, extras: Sequence[str]) -> None:
    needed_mb = 1500 if "lab" in extras or "test" in extras else 900
    if "cuda" in extras:
        needed_mb += 5000
    free_mb = shutil.disk_usage(root).free // 1_000_000
    if free_mb < needed_mb:
        raise SetupError(
            f"only {free_mb:,} MB are free on the disk of {root}, and the set-up needs about "
            f"{needed_mb:,} MB: free some space, {AGAIN}"
        )


def make_venv(venv: Path) -> None:
    if any(importlib.util.find_spec(module) is None for module in ("venv", "ensurepip")):
        raise SetupError(
            f"Python {python_version()} at {sys.executable} cannot make virtual environments (no venv or no "
            f"ensurepip module): on Debian and Ubuntu run 'apt-get install python{python_version()}-venv', "
            f"{AGAIN}"
        )
    say(f"Making .venv with Python {python_version()}.")
    made = subprocess.run([sys.executable, "-m", "venv", str(venv)], **OUTPUT)
    if made.returncode != 0:
        raise SetupError(explain_failure(made.stdout, "making the virtual environment"))


def install(root: Path, venv: Path, before: Stamp | None, wanted: Stamp) -> None:
    """Run pip; the stamp says that an installation is under way until it has succeeded."""
    replace(wanted, complete=False).write(venv)
    say(f"Installing {', '.join(wanted.extras)} into .venv; the first time it takes a minute or more.")
    log = venv / "setup.log"
    status = run_pip(root, venv, wanted.extras, log)
    if status == 0:
        wanted.write(venv)
        return
    output = log.read_text(encoding="utf-8", errors="replace")
    if before and "Installing collected packages" not in output:  # pip had not begun to change anything
        before.write(venv)
    if status < 0:
        raise SetupError(f"pip was ended by signal {-status} (is memory short?): run the same command again")
    raise SetupError(explain_failure(output, f"pip's messages are in {log}"))


def run_pip(root: Path, venv: Path, extras: Sequence[str], log: Path) -> int:
    """Install the checkout, editable, with `extras`. pip's output goes to `log`, its steps to a terminal."""
    command = [str(venv / "bin" / "python"), "-I", "-m", "pip", "install", "--progress-bar", "off"]
    command += ["-c", "constraints.txt", "-e", f".[{','.join(extras)}]"]
    with (
        open(log, "w", encoding="utf-8") as stream,
        subprocess.Popen(command, cwd=root, env=pip_environment(), stdin=subprocess.DEVNULL, **OUTPUT) as pip,
    ):
        assert pip.stdout is not None
        for line in pip.stdout:
            stream.write(line)
            show_step(line)
    show_step("")
    return pip.returncode


def pip_environment() -> dict[str, str]:
    """The caller's environment, less what makes pip install elsewhere, with its cache in MINIVLLM_HOME."""
    elsewhere = {"PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PYTHONHOME", "PYTHONPATH"}
    kept = {name: value for name, value in os.environ.items() if name not in elsewhere}
    fixed = {"PIP_USER": "0", "PIP_NO_INPUT": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    fixed["PIP_RETRIES"] = "3"  # pip names a failed connection only when it tries again
    return {"PIP_CACHE_DIR": str(home() / "pip"), **kept, **fixed}


def show_step(line: str) -> None:
    """One line on a terminal that pip's steps pass through; an empty one clears it."""
    if sys.stderr.isatty() and (not line or line.lstrip().startswith(("Collecting", "Downloading", "Installing"))):
        width = shutil.get_terminal_size().columns - 3
        print("\r\033[K" + (f"  {line.strip()}"[:width] if line else ""), end="", file=sys.stderr, flush=True)


def explain_failure(output: str, what: str) -> str:
    """What went wrong and what to do, from what `what` printed."""
    if DISK_FULL.search(output):
        return f"the disk is full, or your quota of it: free some space, {AGAIN}"
    remedy = f"check the network and the proxy settings, {AGAIN}; {what}"
    if UNREACHABLE.search(output):
        return f"the package registry cannot be reached: {remedy}"
    if missing := NO_VERSION.search(output):
        return f"the package registry cannot be reached or has no {missing[1]} for this machine: {remedy}"
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")] or lines[-1:]
    first = errors[0].removeprefix("ERROR: ").rstrip(".") if errors else "it gave no reason"
    return f"{what}: {textwrap.shorten(first, 300)}"


@contextlib.contextmanager
def only_one_at_a_time(root: Path) -> Iterator[None]:
    """Hold a lock on the checkout's own folder, so that nothing has to be written for it."""
    folder = os.open(root, os.O_RDONLY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Waiting for another set-up of this checkout to end.")
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("extras", nargs="+", metavar="EXTRA", help="an extra of pyproject.toml")
    parser.add_argument("--same-version", action="store_true", help="rebuild a .venv of another version")
    options = parser.parse_args(arguments)
    try:
        ensure(ROOT, options.extras, options.same_version)
    except SetupError as error:
        say(f"Error: {error}.")
        return 1
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        say(f"Error: {explain_failure('[Errno 28]' if full else str(error), 'the set-up')}.")
        return 1
    except KeyboardInterrupt:
        say("\nInterrupted: the same command starts over.")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
