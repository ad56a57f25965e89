"""Threadgroup variables are found in a text whatever stands around them, and no line moves."""

from __future__ import annotations

import pytest

from minivllm.metal.errors import KernelCompileError
from minivllm.metal.rewriter import shared_storage, storage_declarations, without_metal_includes


def found(source: str) -> list[tuple[str, tuple[tuple[str, str], ...]]]:
    return [(storage.cpp_type, storage.variables) for storage in storage_declarations(source)]


@pytest.mark.parametrize(
    ("source", "cpp_type", "variables"),
    [
        ("threadgroup float a;", "float", (("a", ""),)),
        ("threadgroup float a[2][32];", "float", (("a", "[2][32]"),)),
        ("threadgroup float a[N * (M + 1)], b;", "float", (("a", "[N * (M + 1)]"), ("b", ""))),
        ("threadgroup metal::vec<T, 4> a[8];", "metal::vec<T, 4>", (("a", "[8]"),)),
        ("threadgroup atomic<int> a;", "atomic<int>", (("a", ""),)),
        ("threadgroup unsigned int a[4];", "unsigned int", (("a", "[4]"),)),
        ("x = 1; threadgroup\n  half4\n  a[\n  4];", "half4", (("a", "[\n  4]"),)),
        ("if (x) { threadgroup T a[sizeof(T)]; }", "T", (("a", "[sizeof(T)]"),)),
    ],
)
def test_a_declaration_is_found(source: str, cpp_type: str, variables: tuple[tuple[str, str], ...]) -> None:
    assert found(source) == [(cpp_type, variables)]


@pytest.mark.parametrize(
    "source",
    [
        "threadgroup float* p = a;",
        "threadgroup float (&r)[4] = a;",
        "f((threadgroup float*)p);",
        "float f(threadgroup float a[4], threadgroup T* b);",
        "auto f = [](threadgroup float a[4]) {};",
        "// threadgroup float a[4];",
        "/* threadgroup float a[4]; */",
        'log("threadgroup float a;");',
        "#define TILE threadgroup float a[4];",
        "threadgroup_barrier(mem_flags::mem_threadgroup);",
        "threadgroup",
    ],
)
def test_what_only_looks_like_a_declaration_is_left_alone(source: str) -> None:
    assert found(source) == []
    assert shared_storage(source) == source


def test_no_line_moves() -> None:
    source = "// first\nthreadgroup float a[\n  4\n], b; int c;\nc = 1;\n"
    rewritten = shared_storage(source)
    assert rewritten.count("\n") == source.count("\n")
    assert rewritten.split("\n")[4] == "c = 1;"
    assert "int c;" in rewritten.split("\n")[3]


def test_an_initial_value_is_refused_with_its_line() -> None:
    with pytest.raises(KernelCompileError, match=r"line 2: threadgroup variable `n` has an initial value"):
        shared_storage("\nthreadgroup int n = 0;")


def test_metals_includes_become_empty_lines_and_others_stay() -> None:
    text = "#include <metal_stdlib>\n# include <metal_simdgroup>\n#include <cmath>\n"
    assert without_metal_includes(text) == "\n\n#include <cmath>\n"
