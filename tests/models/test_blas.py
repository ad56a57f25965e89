"""Which BLAS is loaded before MLX, and that trying one cannot end this process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from minivllm import blas, probe
from minivllm.blas import BlasError, load_blas

pytestmark = pytest.mark.usefixtures("own_home")

choose = load_blas.__wrapped__  # without the memory of the choice that this process made


@pytest.fixture(autouse=True)
def linux_before_mlx(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Linux process that has not imported MLX yet."""
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delitem(sys.modules, "mlx.core", raising=False)
    monkeypatch.delenv("MINIVLLM_BLAS", raising=False)
    monkeypatch.setattr(blas, "_mlx_has_cuda", lambda: False)


@pytest.fixture
def library(tmp_path: Path) -> Path:
    path = tmp_path / "libopenblas.so"
    path.write_bytes(b"")
    return path


def use_candidates(monkeypatch: pytest.MonkeyPatch, verdicts: dict[Path, str | None]) -> list[Path]:
    """Make these the libraries found, with these reasons against them; returns the list of those loaded."""
    loaded: list[Path] = []

    def load(source: str, path: Path) -> blas.Blas:
        loaded.append(path)
        return blas.Blas(path, f"OpenBLAS 0.3 ({source}), 2 threads")

    monkeypatch.setattr(blas, "_places", lambda: iter([("system", path) for path in verdicts]))
    monkeypatch.setattr(blas, "openblas_verdict", lambda path: {"version": None, "reason": verdicts[path]})
    monkeypatch.setattr(blas, "_load", load)
    return loaded


def test_the_first_library_that_works_is_loaded_and_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    crashing, good, better = (tmp_path / name for name in ("crashing", "good", "better"))
    for path in (crashing, good, better):
        path.write_bytes(b"")
    loaded = use_candidates(monkeypatch, {crashing: "ended with signal 4", good: None, better: None})
    assert choose().path == good and loaded == [good]
    assert capsys.readouterr().err == "minivllm: matrix products by OpenBLAS 0.3 (system), 2 threads\n"


def test_without_a_library_it_says_why_and_what_to_install(
    library: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use_candidates(monkeypatch, {library: "ended with signal 4"})
    assert choose().path is None
    said = capsys.readouterr().err
    assert f"{library}: ended with signal 4" in said
    assert "pip install ngsolve-openblas" in said and "apt install libopenblas0" in said


def test_it_can_be_switched_off(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("MINIVLLM_BLAS", "off")
    assert choose().path is None
    assert "MINIVLLM_BLAS=off" in capsys.readouterr().err


def test_a_chosen_library_that_cannot_be_used_is_an_error(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINIVLLM_BLAS", str(library))
    with pytest.raises(BlasError, match=r"cannot be used: OSError.*name another libopenblas or 'off'"):
        choose()
    monkeypatch.setenv("MINIVLLM_BLAS", str(library) + ".absent")
    with pytest.raises(BlasError, match="is not a file"):
        choose()


def test_an_mlx_that_was_imported_first_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "mlx.core", sys)
    assert choose().path is None
    assert "import minivllm.backend before it" in capsys.readouterr().err


@pytest.mark.parametrize(("platform", "has_cuda"), [("darwin", False), ("linux", True)])
def test_there_is_nothing_to_do_where_mlx_has_a_gpu(
    platform: str, has_cuda: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(blas, "_mlx_has_cuda", lambda: has_cuda)
    assert choose().path is None and capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import os; os.kill(os.getpid(), 4)", "signal 4"),
        ("import time; time.sleep(600)", "no answer within"),
        ("raise OSError('libgfortran.so.5: cannot open')", "OSError: libgfortran.so.5"),
        ("import os; os._exit(3)", "no message"),
    ],
)
def test_a_library_that_fails_in_the_child_is_a_reason_here(
    code: str, reason: str, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "_SGEMM", code)
    monkeypatch.setattr(probe, "PROBE_TIMEOUT_S", 2.0)
    assert reason in str(probe.openblas_verdict(library)["reason"])


def test_a_verdict_is_remembered_until_the_library_changes(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reasons: Iterator[str] = iter(["ended with signal 4", "ended with signal 11"])
    monkeypatch.setattr(probe, "_try_openblas", lambda path: {"version": None, "reason": next(reasons)})
    assert probe.openblas_verdict(library) == probe.openblas_verdict(library)
    library.write_bytes(b"newer")
    assert probe.openblas_verdict(library)["reason"] == "ended with signal 11"


def test_a_library_that_lacks_another_is_tried_again_next_time(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reasons: Iterator[str | None] = iter(["OSError: libgfortran.so.5", None])
    monkeypatch.setattr(probe, "_try_openblas", lambda path: {"version": "OpenBLAS 0.3", "reason": next(reasons)})
    assert [probe.openblas_verdict(library)["reason"] for _ in range(2)] == ["OSError: libgfortran.so.5", None]


@pytest.mark.parametrize(("code", "works"), [("pass", True), ("raise RuntimeError", False)])
def test_whether_mx_compile_works_is_found_out_in_a_child(
    code: str, works: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "_COMPILE", code)
    assert probe.compile_verdict() is works


def test_without_mlx_the_error_says_what_to_install() -> None:
    code = "import sys; sys.modules['mlx.core'] = None; import minivllm; import minivllm.backend"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert child.returncode == 1 and 'pip install "mlx' in child.stderr


def test_importing_the_package_imports_no_array_library() -> None:
    code = "import sys, minivllm; print([name for name in ('mlx', 'numpy', 'transformers') if name in sys.modules])"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert child.stdout == "[]\n"
