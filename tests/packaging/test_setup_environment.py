"""scripts/setup-environment.py brings .venv up to date from any state, or says in one sentence why it cannot.

`Checkout` stands for a checkout whose venv and pip are played: tested is what the script decides and says.
"""

from __future__ import annotations

import dataclasses
import errno
import importlib.util
import shutil
import venv
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

PYPROJECT = '[build-system]\nrequires = []\n[project]\nname = "lab"\n[tool.ruff]\nline-length = 110\n'
UNREACHABLE = """\
Collecting matplotlib>=3.10
WARNING: Retrying (Retry(total=4, connect=None, read=None, redirect=None, status=None)) after connection
broken by 'NewConnectionError('<pip._vendor.urllib3.connection.HTTPSConnection>: Failed to establish a new
connection: [Errno -3] Temporary failure in name resolution')': /simple/matplotlib/
ERROR: Could not find a version that satisfies the requirement matplotlib>=3.10 (from versions: none)
ERROR: No matching distribution found for matplotlib>=3.10
"""
DISK_FULL = """\
Installing collected packages: numpy
ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device
"""
CONFLICT = """\
ERROR: Cannot install lab because these package versions have conflicting dependencies.
ERROR: ResolutionImpossible: for help visit https://pip.pypa.io/
"""


class Checkout:
    """A folder with the two files that decide what is installed. Counts environments made and runs of pip."""

    def __init__(self, root: Path, script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.script, self.venv = root, script, root / ".venv"
        self.made: int = 0
        self.installed: list[tuple[str, ...]] = []
        self.pip_answers: tuple[int, str] = (0, "")
        self.free_bytes = 10**12
        root.mkdir()
        (root / "pyproject.toml").write_text(PYPROJECT)
        (root / "constraints.txt").write_text("numpy==2.4.6\n")
        monkeypatch.setattr(script, "make_venv", self.make_venv)
        monkeypatch.setattr(script, "run_pip", self.run_pip)
        monkeypatch.setattr(script, "works", lambda venv, extras: (venv / "bin" / "python").is_file())
        monkeypatch.setattr(script.shutil, "disk_usage", lambda path: SimpleNamespace(free=self.free_bytes))
        monkeypatch.setattr(script, "ROOT", root)

    def make_venv(self, venv: Path) -> None:
        self.made += 1
        (venv / "bin").mkdir(parents=True)
        (venv / "bin" / "python").touch()

    def run_pip(self, root: Path, venv: Path, extras: Sequence[str], log: Path) -> int:
        status, output = self.pip_answers
        log.write_text(output)
        self.installed.append(tuple(extras))
        return status

    def setup(self, *arguments: str) -> int:
        return int(self.script.main(arguments))


@pytest.fixture
def checkout(tmp_path: Path, setup_environment: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    return Checkout(tmp_path / "checkout", setup_environment, monkeypatch)


def error(capsys: pytest.CaptureFixture[str]) -> str:
    """The one line that begins with Error; it is a sentence."""
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("Error")]
    assert line.endswith(".")
    return line


def test_a_second_run_does_nothing(checkout: Checkout) -> None:
    assert checkout.setup("engine", "plot") == 0
    assert checkout.setup("engine", "plot") == 0
    assert checkout.setup("plot") == 0
    assert (checkout.made, checkout.installed) == (1, [("engine", "plot")])


def test_further_extras_are_added_to_what_is_there(checkout: Checkout) -> None:
    checkout.setup("engine", "plot")
    checkout.setup("lab", "test")
    assert (checkout.made, checkout.installed[-1]) == (1, ("engine", "lab", "plot", "test"))


def test_new_constraints_are_installed_and_new_file_times_are_not(checkout: Checkout) -> None:
    checkout.setup("plot")
    (checkout.root / "constraints.txt").touch()
    checkout.setup("plot")
    assert len(checkout.installed) == 1
    (checkout.root / "constraints.txt").write_text("numpy==2.5.5\n")
    checkout.setup("plot")
    assert (checkout.made, len(checkout.installed)) == (1, 2)


def test_the_settings_of_a_tool_in_pyproject_install_nothing_anew(checkout: Checkout) -> None:
    checkout.setup("plot")
    (checkout.root / "pyproject.toml").write_text(PYPROJECT.replace("110", "100"))
    checkout.setup("plot")
    assert len(checkout.installed) == 1


@pytest.mark.parametrize(
    "damage", ["no stamp", "torn stamp", "python gone", "a file", "a dangling link", "an empty folder"]
)
def test_a_half_made_environment_is_made_anew(checkout: Checkout, damage: str) -> None:
    checkout.setup("plot")
    match damage:
        case "no stamp":
            (checkout.venv / "setup.json").unlink()
        case "torn stamp":
            (checkout.venv / "setup.json").write_text('{"checkout": "/ho')
        case "python gone":
            (checkout.venv / "bin" / "python").unlink()
        case "a file":
            shutil.rmtree(checkout.venv)
            checkout.venv.touch()
        case "a dangling link":
            shutil.rmtree(checkout.venv)
            checkout.venv.symlink_to("nowhere")
        case "an empty folder":
            shutil.rmtree(checkout.venv)
            checkout.venv.mkdir()
    assert checkout.setup("plot") == 0
    assert (checkout.made, len(checkout.installed)) == (2, 2)
    assert checkout.setup("plot") == 0
    assert checkout.made == 2


def test_what_a_link_leads_to_is_left_alone(checkout: Checkout, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "precious").touch()
    checkout.venv.symlink_to(elsewhere)
    assert checkout.setup("plot") == 0
    assert (elsewhere / "precious").is_file() and not checkout.venv.is_symlink()


def test_an_interrupted_installation_starts_over(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as during:
        during.setattr(checkout.script, "run_pip", interrupted)
        assert checkout.setup("plot") == 130
    assert "Interrupted" in capsys.readouterr().err
    assert checkout.setup("plot") == 0
    assert checkout.made == 2


def test_a_moved_checkout_is_made_anew_because_its_scripts_name_the_old_place(
    checkout: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    checkout.setup("plot")
    moved = checkout.root.rename(tmp_path / "moved")
    monkeypatch.setattr(checkout.script, "ROOT", moved)
    assert checkout.setup("plot") == 0
    assert checkout.made == 2
    assert f"it was made for {checkout.root}" in capsys.readouterr().err


def test_another_python_version_is_kept_unless_one_was_asked_for(checkout: Checkout) -> None:
    checkout.setup("plot")
    stamp = checkout.script.Stamp.read(checkout.venv)
    dataclasses.replace(stamp, python="3.99").write(checkout.venv)
    checkout.setup("plot")
    assert checkout.made == 1
    checkout.setup("plot", "--same-version")
    assert checkout.made == 2


def test_the_cuda_build_takes_the_place_of_the_cpu_build_and_stays(checkout: Checkout) -> None:
    checkout.setup("engine", "plot")
    checkout.setup("cuda", "plot")
    assert (checkout.made, checkout.installed[-1]) == (2, ("cuda", "plot"))
    checkout.setup("engine", "plot", "test")
    assert (checkout.made, checkout.installed[-1]) == (2, ("cuda", "plot", "test"))


def test_an_unreachable_registry_is_one_sentence_that_says_what_to_do(
    checkout: Checkout, capsys: pytest.CaptureFixture[str]
) -> None:
    checkout.pip_answers = (1, UNREACHABLE)
    assert checkout.setup("plot") == 1
    assert "the package registry cannot be reached" in error(capsys)
    assert (checkout.venv / "setup.log").read_text() == UNREACHABLE


def test_an_unreachable_registry_leaves_what_was_installed_in_use(checkout: Checkout) -> None:
    checkout.setup("engine", "plot")
    checkout.pip_answers = (1, UNREACHABLE)
    assert checkout.setup("engine", "plot", "test") == 1
    assert checkout.setup("engine", "plot") == 0
    assert (checkout.made, len(checkout.installed)) == (1, 2)


def test_too_little_space_is_said_before_anything_is_made(
    checkout: Checkout, capsys: pytest.CaptureFixture[str]
) -> None:
    checkout.free_bytes = 312_000_000
    assert checkout.setup("engine", "lab", "plot", "test") == 1
    assert f"only 312 MB are free on the disk of {checkout.root}, and the set-up needs about 1,500 MB" in error(capsys)
    assert not checkout.venv.exists()


def test_too_little_space_does_not_matter_when_everything_is_there(checkout: Checkout) -> None:
    checkout.setup("plot")
    checkout.free_bytes = 0
    assert checkout.setup("plot") == 0


def test_a_disk_that_fills_up_during_the_installation_is_named(
    checkout: Checkout, capsys: pytest.CaptureFixture[str]
) -> None:
    checkout.pip_answers = (1, UNREACHABLE + DISK_FULL)
    assert checkout.setup("plot") == 1
    assert "the disk is full" in error(capsys)
    checkout.pip_answers = (0, "")
    assert checkout.setup("plot") == 0
    assert checkout.made == 2


def test_a_disk_that_is_full_when_the_stamp_is_written_is_named(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(checkout.script, "make_venv", full)
    assert checkout.setup("plot") == 1
    assert "the disk is full" in error(capsys)


def test_a_registry_without_a_package_is_named_with_the_package(
    checkout: Checkout, capsys: pytest.CaptureFixture[str]
) -> None:
    checkout.pip_answers = (1, "".join(UNREACHABLE.splitlines(keepends=True)[-2:]))
    assert checkout.setup("plot") == 1
    assert "cannot be reached or has no matplotlib>=3.10 for this machine" in error(capsys)


def test_a_pip_that_was_killed_is_said_to_be(checkout: Checkout, capsys: pytest.CaptureFixture[str]) -> None:
    checkout.pip_answers = (-9, "Installing collected packages: numpy\n")
    assert checkout.setup("plot") == 1
    assert "pip was ended by signal 9" in error(capsys)
    assert not checkout.script.Stamp.read(checkout.venv).complete


def test_another_failure_of_pip_is_told_in_its_own_words(
    checkout: Checkout, capsys: pytest.CaptureFixture[str]
) -> None:
    checkout.pip_answers = (1, CONFLICT)
    assert checkout.setup("plot") == 1
    assert "conflicting dependencies" in error(capsys)


def test_a_folder_that_cannot_be_written_is_named(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(venv: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(venv))

    monkeypatch.setattr(checkout.script, "make_venv", refused)
    assert checkout.setup("plot") == 1
    message = error(capsys)
    assert "Permission denied" in message and str(checkout.venv) in message


def test_a_python_without_ensurepip_names_the_package_to_install(
    tmp_path: Path, setup_environment: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "ensurepip" else found(name))
    with pytest.raises(setup_environment.SetupError, match=r"apt-get install python3\.\d+-venv"):
        setup_environment.make_venv(tmp_path / ".venv")


def test_pip_cannot_be_sent_to_install_elsewhere(
    setup_environment: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PYTHONPATH"):
        monkeypatch.setenv(name, "/elsewhere")
    monkeypatch.setenv("PIP_USER", "1")
    environment = setup_environment.pip_environment()
    assert "/elsewhere" not in environment.values()
    assert environment["PIP_USER"] == "0"


def test_pip_keeps_its_downloads_in_minivllm_home(
    setup_environment: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MINIVLLM_HOME", str(tmp_path))
    monkeypatch.delenv("PIP_CACHE_DIR", raising=False)
    assert setup_environment.pip_environment()["PIP_CACHE_DIR"] == str(tmp_path / "pip")


def test_a_real_pip_that_finds_no_registry_is_told_from_other_failures(
    tmp_path: Path,
    setup_environment: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The real venv and pip, with a registry on a port of the loopback where nothing listens."""
    root = tmp_path / "checkout"
    root.mkdir()
    (root / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "x"\n[project]\nname = "lab"\n'
    )
    (root / "constraints.txt").touch()
    settings = {
        "PIP_CONFIG_FILE": "/dev/null",
        "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
        "PIP_RETRIES": "0",
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    for name in (
        "PIP_EXTRA_INDEX_URL",
        "PIP_FIND_LINKS",
        "PIP_CONSTRAINT",
        "http_proxy",
        "HTTP_PROXY",
        "ALL_PROXY",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(setup_environment, "ROOT", root)
    assert setup_environment.main(["plot"]) == 1
    assert "the package registry cannot be reached" in error(capsys)


@pytest.fixture
def small_venv(tmp_path: Path, setup_environment: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A real environment without pip, with folders in the place of the packages of `plot` and of this distribution."""
    monkeypatch.setattr(setup_environment, "ALWAYS_MODULES", ("requests",))
    venv.create(tmp_path / ".venv", with_pip=False, symlinks=True)
    (packages,) = (tmp_path / ".venv" / "lib").glob("python*/site-packages")
    for name in ("requests", "matplotlib", "numpy"):
        (packages / name).mkdir()
        (packages / name / "__init__.py").write_text("raise SystemExit('was imported')")
    (packages / "prefix_cache_lab-0.1.0.dist-info").mkdir()
    (packages / "prefix_cache_lab-0.1.0.dist-info" / "METADATA").write_text("Name: prefix-cache-lab\nVersion: 0.1.0\n")
    return packages


def test_an_environment_with_the_packages_of_an_extra_works_for_that_extra_alone(
    small_venv: Path, tmp_path: Path, setup_environment: ModuleType
) -> None:
    assert setup_environment.works(tmp_path / ".venv", ["plot"])
    assert not setup_environment.works(tmp_path / ".venv", ["plot", "test"])
    assert not setup_environment.works(tmp_path / ".venv", ["engine"])


@pytest.mark.parametrize("gone", ["matplotlib", "numpy/__init__.py", "requests", "prefix_cache_lab-0.1.0.dist-info"])
def test_an_environment_that_lost_a_part_does_not_work(
    small_venv: Path, tmp_path: Path, setup_environment: ModuleType, gone: str
) -> None:
    lost = small_venv / gone
    shutil.rmtree(lost) if lost.is_dir() else lost.unlink()
    assert not setup_environment.works(tmp_path / ".venv", ["plot"])


def test_packages_that_are_gone_make_the_environment_anew_when_they_are_asked_for(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    checkout.setup("plot", "test")
    monkeypatch.setattr(checkout.script, "works", lambda venv, extras: "test" not in extras)
    assert checkout.setup("plot") == 0
    assert checkout.made == 1
    assert checkout.setup("test") == 0
    assert checkout.made == 2
    assert "its Python or its packages are gone" in capsys.readouterr().err


def test_every_extra_that_brings_packages_is_looked_after(setup_environment: ModuleType, project: dict) -> None:
    assert set(setup_environment.MODULES) == set(project["optional-dependencies"]) - {"engine-common", "router"}
