"""Finding a compiler, keeping what it made, and saying how to get one."""

from __future__ import annotations

from pathlib import Path

import pytest

from minivllm.metal import compiler as compilers
from minivllm.metal.compiler import Compiler, find_compiler, kernel_library
from minivllm.metal.errors import CompilerMissing


def test_a_kernel_is_compiled_once_for_all_processes(
    compiler: Compiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINIVLLM_HOME", str(tmp_path))
    unit = '#include "kernel.h"\nextern "C" void mr_entry() {}\n'
    library = kernel_library(compiler, unit, is_checked=False)
    assert tmp_path in library.parents
    written = library.stat().st_mtime_ns
    assert kernel_library(compiler, unit, is_checked=False).stat().st_mtime_ns == written
    assert kernel_library(compiler, unit, is_checked=True) != library


def test_a_home_that_cannot_be_written_costs_only_time(
    compiler: Compiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MINIVLLM_HOME", str(tmp_path / "file" / "home"))
    unit = '#include "kernel.h"\nextern "C" void mr_entry() { }\n'
    assert kernel_library(compiler, unit, is_checked=False).is_file()


def test_without_a_compiler_the_error_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(compilers.OVERRIDE, raising=False)
    monkeypatch.setattr(compilers.shutil, "which", lambda _: None)
    monkeypatch.setattr(compilers, "zig_program", lambda: None)
    find_compiler.cache_clear()
    try:
        with pytest.raises(CompilerMissing, match=r"pip install ziglang.*apt install g\+\+.*xcode-select"):
            find_compiler()
    finally:
        find_compiler.cache_clear()


def test_a_compiler_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(compilers.OVERRIDE, "/no/such/compiler")
    find_compiler.cache_clear()
    try:
        with pytest.raises(CompilerMissing, match="/no/such/compiler is no program"):
            find_compiler()
    finally:
        find_compiler.cache_clear()
