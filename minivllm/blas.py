"""Find an OpenBLAS on a Linux CPU and load it before MLX.

MLX's Linux wheel ships the reference BLAS, about 70 times slower than OpenBLAS in a matrix product. A library
with the standard `cblas_sgemm` name that is loaded globally first is the one that MLX's own calls find.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import hashlib
import importlib.metadata
import importlib.util
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from minivllm.home import folder_made_once, home
from minivllm.probe import openblas_verdict

INSTALL_HINT = (
    "install one with `pip install ngsolve-openblas` (x86-64), `apt install libopenblas0` or from conda-forge"
)
_REFERENCE = "MLX's reference BLAS, which is slow"
_SYSTEM_FOLDERS = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/lib",
)
_SYSTEM_NAMES = (
    "libopenblas.so.0",
    "openblas-pthread/libopenblas.so.0",
    "libopenblasp.so.0",
    "libopenblas.so",
)

# A worker that has nothing to do spins for 2**26 cycles before it sleeps, unless told otherwise. Two processes that did
# so on two cores prefilled 44 tokens/s each, and 220 when their workers slept early. Alone it makes no difference.
_SPIN_LOG2_CYCLES = "14"


class BlasError(RuntimeError):
    """The library that MINIVLLM_BLAS names cannot be used."""


@dataclass(frozen=True)
class Blas:
    """The BLAS behind MLX's products: `path` is None for MLX's own, and `advice` is how to get a faster one."""

    path: Path | None
    description: str
    advice: str = ""


@cache
def load_blas() -> Blas:
    """Load the first OpenBLAS that works and say which on stderr; nothing to do on macOS and with CUDA."""
    if sys.platform != "linux" or _mlx_has_cuda():
        return Blas(None, "MLX's own")
    if os.environ.get("MINIVLLM_BLAS") == "off":
        return _say(Blas(None, f"{_REFERENCE} (MINIVLLM_BLAS=off)"))
    if "mlx.core" in sys.modules:
        return _say(Blas(None, _REFERENCE, "mlx.core was imported first; import minivllm.backend before it"))
    failures: list[str] = []
    for source, path in _candidates():
        reason = openblas_verdict(path)["reason"]
        if reason is None:
            return _say(_load(source, path))
        if source == "MINIVLLM_BLAS":
            raise BlasError(f"MINIVLLM_BLAS={path} cannot be used: {reason}; name another libopenblas or 'off'")
        failures.append(f"{path}: {reason}")
    tried = f" (tried {'; '.join(failures)})" if failures else ""
    return _say(Blas(None, _REFERENCE, f"no usable OpenBLAS found{tried}; {INSTALL_HINT}"))


def _candidates() -> Iterator[tuple[str, Path]]:
    """Libraries to try as (source, path), each once, those we know best first."""
    seen: set[Path] = set()
    for source, path in _places():
        if path.is_file() and path.absolute() not in seen:
            seen.add(path.absolute())
            yield source, path


def _places() -> Iterator[tuple[str, Path]]:
    chosen = os.environ.get("MINIVLLM_BLAS")
    if chosen:
        if not Path(chosen).is_file():
            raise BlasError(f"MINIVLLM_BLAS={chosen} is not a file; name a libopenblas or 'off'")
        yield "MINIVLLM_BLAS", Path(chosen)
    for library in _package_files("ngsolve_openblas", "libopenblas*.so*"):
        yield "ngsolve-openblas", _beside_fortran(library)
        yield "ngsolve-openblas", library
    yield "conda", Path(sys.prefix) / "lib" / "libopenblas.so"
    yield "conda", Path(sys.prefix) / "lib" / "libopenblas.so.0"
    for folder in _SYSTEM_FOLDERS:
        for name in _SYSTEM_NAMES:
            yield "system", Path(folder) / name
    found = ctypes.util.find_library("openblas")
    if found:
        yield "system", Path(found)


def _package_files(package: str, pattern: str) -> list[Path]:
    """Files of an installed package, without importing it."""
    spec = importlib.util.find_spec(package)
    folders = spec.submodule_search_locations if spec else None
    return sorted(file for folder in folders or () for file in Path(folder).glob(pattern))


def _beside_fortran(library: Path) -> Path:
    """`library` beside the Fortran runtime that it needs, which a plain machine has only inside MLX's wheel.

    The library looks for its dependencies beside itself ($ORIGIN), so three symbolic links are enough.
    """
    runtimes = [file for folder in _package_files("mlx", "../mlx_cpu.libs") for file in folder.glob("lib*.so*")]
    fortran = [file for file in runtimes if file.name.startswith("libgfortran")]
    if not fortran:
        return library
    links = {"libopenblas.so": library, "libgfortran.so.5": fortran[0].resolve()}
    links |= {file.name: file.resolve() for file in runtimes if file.name.startswith("libquadmath")}
    key = hashlib.sha256("\n".join(f"{name} {target}" for name, target in links.items()).encode()).hexdigest()[:16]

    def fill(folder: Path) -> None:
        for name, target in links.items():
            (folder / name).symlink_to(target)

    try:
        return folder_made_once(home() / "blas" / key, fill) / "libopenblas.so"
    except OSError:  # an unwritable home leaves the other candidates
        return library


def _load(source: str, path: Path) -> Blas:
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", _SPIN_LOG2_CYCLES)  # read when the library is loaded
    library = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    threads = int(library.openblas_get_num_threads())
    if "OPENBLAS_NUM_THREADS" not in os.environ and threads > _usable_cpus():
        threads = _usable_cpus()
        library.openblas_set_num_threads(threads)
    version = (openblas_verdict(path)["version"] or "OpenBLAS").split()[:2]
    return Blas(path, f"{' '.join(version)} ({source}), {threads} thread{'s' * (threads != 1)}")


def _usable_cpus() -> int:
    """CPUs that this process may use: its affinity and, in a container, the quota of its control group."""
    cpus = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return max(1, min(cpus, int(quota) // int(period)))
    except (OSError, ValueError):  # no control group, or the quota "max"
        return cpus


def _mlx_has_cuda() -> bool:
    return any(_installed(name) for name in ("mlx-cuda", "mlx-cuda-12", "mlx-cuda-13"))


def _installed(distribution: str) -> bool:
    try:
        importlib.metadata.distribution(distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _say(blas: Blas) -> Blas:
    advice = f": {blas.advice}" if blas.advice else ""
    print(f"minivllm: matrix products by {blas.description}{advice}", file=sys.stderr)
    return blas
