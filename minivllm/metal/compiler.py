"""The C++ compiler that turns kernels into libraries, and the cache of what it made.

Kernels are cached under MINIVLLM_HOME by what went into them. They use no instruction that only this machine has.
"""

from __future__ import annotations

import atexit
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from minivllm.home import HomeError, folder_made_once, home, remembered
from minivllm.metal.errors import CompilerMissing, KernelCompileError

CPP_FOLDER = Path(__file__).parent / "cpp"
OVERRIDE = "MINIVLLM_METAL_CXX"
INSTALL_HINT = (
    "install one: `pip install ziglang` anywhere, `apt install g++` on Debian or Ubuntu, "
    f"`xcode-select --install` on a Mac; or name one in {OVERRIDE}"
)
_COMPILE_TIMEOUT_S = 300.0  # zig builds its own libraries at the first call
_COMMON = (
    "-std=c++17",
    "-fPIC",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-threadsafe-statics",
    "-U_FORTIFY_SOURCE",
)
_KERNEL = (
    "-O2",
    "-g1",
    "-gdwarf-4",  # addr2line of 2022 mistakes the first file of version 5
    "-ffp-contract=off",
    "-fwrapv",
    "-fsigned-char",
    "-fno-strict-aliasing",
    "-fstack-clash-protection",
    "-nostdinc",
    "-nostdinc++",
    f"-I{CPP_FOLDER}",
)
_OF_FAMILY = {
    "gcc": (
        *("-fsingle-precision-constant", "-fmax-errors=5", "-fno-diagnostics-show-caret"),
        *("-Wno-attributes", "-Wno-literal-suffix"),
    ),
    "clang": (
        *("-Xclang", "-cl-single-precision-constant", "-ferror-limit=5", "-fno-caret-diagnostics"),
        *("-Wno-unknown-attributes", "-Wno-ignored-attributes", "-Wno-unused-command-line-argument"),
        *("-Wno-user-defined-literals", "-Wno-reserved-user-defined-literal"),
    ),
}
_CHECKED = {
    "gcc": ("-fsanitize=thread", "-fsanitize=bounds"),
    # Clang reports no access wider than 16 bytes, so it must not make any.
    "clang": ("-fsanitize=thread", "-fsanitize=bounds", "-fno-vectorize", "-fno-slp-vectorize"),
}
# A newer clang for x86 keeps half in float between operations unless told not to; an older one lacks the option.
_CLANG_VARIANTS = (("-Xclang", "-ffloat16-excess-precision=none"), ())
_RUNTIME_PARTS = ("scheduler.cpp", "attributes.cpp", "arena.cpp", "windows.cpp", "faults.cpp", "checks.cpp")
_PROBE = '#include "kernel.h"\nextern "C" void probe(half* h, float* f, int i) { h[i] = half(f[i]) * 2.0h; }\n'


@dataclass(frozen=True, slots=True)
class Compiler:
    """`command` compiles C++ with `options`; `family` ("gcc" or "clang") says which others it takes."""

    command: tuple[str, ...]
    family: str
    identity: str
    options: tuple[str, ...] = ()

    def run(self, arguments: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.command, *arguments],
            cwd=folder,
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=_COMPILE_TIMEOUT_S,
            env={**os.environ, "LC_ALL": "C"},
        )


@cache
def find_compiler() -> Compiler:
    """clang++, else g++, else ziglang's clang: the first that compiles a kernel. Raises `CompilerMissing`."""
    failures = []
    for candidate in candidates():
        for options in _CLANG_VARIANTS if candidate.family == "clang" else ((),):
            compiler = replace(candidate, options=options)
            reason = _verdict(compiler)
            if reason is None:
                return compiler
        failures.append(f"{' '.join(compiler.command)}: {reason}")
    tried = f" (tried {'; '.join(failures)})" if failures else ""
    raise CompilerMissing(f"a Metal kernel on a CPU needs a C++ compiler, and none was found{tried}; {INSTALL_HINT}")


def candidates() -> Iterator[Compiler]:
    chosen = os.environ.get(OVERRIDE)
    if chosen:
        path = shutil.which(chosen)
        if path is None:
            raise CompilerMissing(f"{OVERRIDE}={chosen} is no program on PATH; name a C++ compiler")
        yield compiler_at((path,), "clang" if "clang" in Path(path).name else "gcc")
        return
    # On a Mac g++ is another name of clang++.
    for name, family in (("clang++", "clang"), ("g++", "clang" if sys.platform == "darwin" else "gcc")):
        if path := shutil.which(name):
            yield compiler_at((path,), family)
    if zig := zig_program():
        yield compiler_at((str(zig), "c++"), "clang")


def zig_program() -> Path | None:
    """The zig of PyPI's `ziglang`, which carries a clang."""
    spec = importlib.util.find_spec("ziglang")
    folders = spec.submodule_search_locations if spec else None
    for folder in folders or ():
        if (Path(folder) / "zig").is_file():
            return Path(folder) / "zig"
    return None


def runtime_library(compiler: Compiler) -> Path:
    """The library that schedules threads and catches faults, built once for this machine."""

    def fill(folder: Path) -> None:
        sources = [str(CPP_FOLDER / part) for part in _RUNTIME_PARTS]
        arguments = [*_COMMON, "-O2", *_linking(compiler), "-o", "runtime.so", *sources, *_SYSTEM_LIBRARIES]
        done = compiler.run(arguments, folder)
        if done.returncode:
            raise CompilerMissing(
                f"{' '.join(compiler.command)} cannot build the kernel runner: {_first_lines(done.stderr)}"
            )

    return _cached(_key(compiler, _cpp_text()), fill) / "runtime.so"


def kernel_library(compiler: Compiler, unit: str, *, is_checked: bool) -> Path:
    """`unit` as a library. Raises `KernelCompileError` with the compiler's lines."""
    checks = _CHECKED[compiler.family] if is_checked else ()

    def fill(folder: Path) -> None:
        (folder / "kernel.cpp").write_text(unit, encoding="utf-8")
        flags = [*_COMMON, *_KERNEL, *_OF_FAMILY[compiler.family], *compiler.options, *checks]
        done = compiler.run([*flags, "-c", "kernel.cpp", "-o", "kernel.o"], folder)
        if done.returncode:
            raise KernelCompileError(compiler_lines(done.stderr))
        done = compiler.run([*_linking(compiler), "-o", "kernel.so", "kernel.o", "-lm"], folder)
        if done.returncode:
            raise KernelCompileError(_first_lines(done.stderr))
        (folder / "kernel.o").unlink()

    return _cached(_key(compiler, _cpp_text(), unit, *checks), fill) / "kernel.so"


def cached_text(compiler: Compiler, inputs: Sequence[str], compute: Callable[[Path], str]) -> str:
    """`compute(a folder to work in)`, kept like a library."""

    def fill(folder: Path) -> None:
        (folder / "answer.txt").write_text(compute(folder), encoding="utf-8")

    return (_cached(_key(compiler, _cpp_text(), *inputs), fill) / "answer.txt").read_text(encoding="utf-8")


def compiler_lines(stderr: str) -> str:
    """The errors among a compiler's messages, as `source line 3: ...`."""
    found = re.findall(r"^(?:.*/)?(\w+)(?:\.\w+)?:(\d+):(?:\d+:)? (?:fatal )?error: (.*)$", stderr, re.MULTILINE)
    lines = dict.fromkeys(f"{text} line {number}: {message}" for text, number, message in found)
    return "\n".join(lines) or _first_lines(stderr)


# Zig would link a bounds handler of its own that aborts. To other clangs this says nothing.
_ZIG_LINKING = ("-O2", "-fno-sanitize=undefined")
_SYSTEM_LIBRARIES = ("-lpthread", "-ldl") if sys.platform == "linux" else ()


def _linking(compiler: Compiler) -> tuple[str, ...]:
    # Nothing of ours needs the C++ library, and zig would build its own.
    without_library = ("-nostdlib++", *_ZIG_LINKING) if compiler.family == "clang" else ()
    if sys.platform == "darwin":
        return ("-dynamiclib", "-undefined", "dynamic_lookup", *without_library)
    return ("-shared", *without_library)


def compiler_at(command: tuple[str, ...], family: str) -> Compiler:
    """A compiler and what its results depend on."""
    program = Path(command[0]).resolve()
    stat = program.stat()
    return Compiler(command, family, f"{program} {stat.st_size} {stat.st_mtime_ns}")


def _verdict(compiler: Compiler) -> str | None:
    """Why the compiler cannot be used, or None."""
    key = _key(compiler, _cpp_text(), _PROBE)
    verdict: str = remembered("metal-compilers", key, lambda: _try_compiler(compiler), keep=lambda reason: not reason)
    return verdict or None


def _try_compiler(compiler: Compiler) -> str:
    try:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "probe.cpp").write_text(_PROBE)
            family = compiler.family
            flags = [*_COMMON, *_KERNEL, *_OF_FAMILY[family], *compiler.options, *_CHECKED[family]]
            done = compiler.run([*flags, "-c", "probe.cpp", "-o", "probe.o"], Path(folder))
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    return _first_lines(compiler_lines(done.stderr), 1) if done.returncode else ""


def _key(compiler: Compiler, *texts: str) -> str:
    flags = (*_COMMON, *_KERNEL, *_OF_FAMILY[compiler.family], *compiler.options, *_linking(compiler))
    digest = hashlib.sha256("\0".join((compiler.identity, *compiler.command, *flags, *texts)).encode())
    return digest.hexdigest()[:32]


@cache
def _cpp_text() -> str:
    return "\0".join(path.read_text(encoding="utf-8") for path in sorted(CPP_FOLDER.iterdir()) if path.is_file())


def _cached(key: str, fill: Callable[[Path], None]) -> Path:
    try:
        return folder_made_once(home() / "metal" / key, fill)
    except HomeError:  # a home that cannot be written costs a compile in every process
        return folder_made_once(_process_folder() / key, fill)


@cache
def _process_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="minivllm-metal-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _first_lines(text: str, count: int = 8) -> str:
    return "\n".join(text.strip().splitlines()[:count])
