"""Would Apple's compiler accept the pointers of a kernel? Asked of clang, which knows address spaces; g++ does not.

Metal keeps device, constant, threadgroup and thread memory apart: a pointer into one is no pointer into another. Clang
reads the kernel with these words as real address spaces, and only what it says about them counts.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from minivllm.metal.compiler import CPP_FOLDER, Compiler, cached_text, compiler_at, zig_program
from minivllm.metal.errors import AddressSpaceError
from minivllm.metal.rewriter import HEADER, SIGNATURE, SOURCE, storage_declarations, without_metal_includes
from minivllm.metal.signature import KernelTexts, Signature

_SPACES = {"1": "device", "2": "constant", "3": "threadgroup"}
_FLAGS = (
    "-std=c++17",
    "-fsyntax-only",
    "-ferror-limit=0",
    "-fno-caret-diagnostics",
    "-fno-color-diagnostics",
    "-nostdinc",
    "-nostdinc++",
    "-w",
    f"-I{CPP_FOLDER}",
    *("-Xclang", "-ast-dump", "-Xclang", "-ast-dump-filter=custom_kernel"),
)
_PROBE = f'''#include "address_spaces.h"
#line 1 "{SOURCE}"
void right(device float* p) {{ device float* q = p + 1; }}
void wrong(device float* p) {{ threadgroup float* q = p; }}
'''
_MESSAGE = re.compile(r"^(?:.*/)?([\w.]+):(\d+):\d+: (error|note): (.*)$", re.MULTILINE)
_POINTER = re.compile(r"'([^']*[*\[][^']*)'")
_ALSO_KNOWN = re.compile(r" \(aka '[^']*'\)")
_ATTRIBUTE = re.compile(r"__attribute__\(\(address_space\((\d)\)\)\)")
_LOCATION = re.compile(r"(?P<file>[\w./<>-]+):(?P<line>\d+):\d+")
_VECTOR_CALL = re.compile(r"\b((?:metal::)?vec<[\w\s:]+,[\w\s]+>)\s*\(")


def check_address_spaces(texts: KernelTexts, signature: Signature) -> None:
    """Raises `AddressSpaceError` for a pointer that changes its address space; does nothing without a clang."""
    clang = find_clang()
    if clang is None:
        return
    found = _judge(clang, address_space_unit(texts, signature))
    if found:
        raise AddressSpaceError(_with_lines(texts, found))


@cache
def find_clang() -> Compiler | None:
    """clang++ of any version since 14, else the clang of ziglang; it need not be able to run a kernel."""
    names = ("clang++", *(f"clang++-{version}" for version in range(30, 13, -1)))
    commands: list[tuple[str, ...]] = [(path,) for path in map(shutil.which, names) if path]
    if zig := zig_program():
        commands.append((str(zig), "c++"))
    clangs = (compiler_at(command, "clang") for command in commands)
    return next((clang for clang in clangs if _knows_spaces(clang)), None)


def _knows_spaces(clang: Compiler) -> bool:
    """It complains of the second of two lines; a clang that fails for another reason complains of none."""
    try:
        return _judge(clang, _PROBE).startswith(f"{SOURCE} line 2: ") and "\n" not in _judge(clang, _PROBE)
    except (OSError, subprocess.SubprocessError):
        return False


def _judge(clang: Compiler, unit: str) -> str:
    inputs = (unit, Path(__file__).read_text(encoding="utf-8"))  # what we make of clang's words may change too
    return cached_text(clang, inputs, lambda folder: "\n".join(_complaints(clang, unit, folder)))


def address_space_unit(texts: KernelTexts, signature: Signature) -> str:
    """A C++ file in which device, constant and threadgroup are address spaces."""
    return "\n".join(
        (
            '#include "address_spaces.h"',
            f'#line 1 "{HEADER}"',
            _vector_calls(without_metal_includes(texts.header)),
            f'#line 1 "{SIGNATURE}"',
            signature.before_source.removesuffix("\n"),
            f'#line 1 "{SOURCE}"',
            _vector_calls(_extern_storage(without_metal_includes(texts.source))),
            f'#line 1 "{SIGNATURE}"',
            "}",
            f"auto* instance = &{signature.specialisation};\n",
        )
    )


def _extern_storage(source: str) -> str:
    """A local variable in another address space cannot be on the stack, nor be constructed."""
    parts, done = [], 0
    for storage in storage_declarations(source):
        parts += [source[done : storage.start], "extern "]
        done = storage.start
    return "".join((*parts, source[done:]))


def _vector_calls(text: str) -> str:
    return _VECTOR_CALL.sub(r"mr_make<\1>(", text)


def _complaints(clang: Compiler, unit: str, folder: Path) -> Iterator[str]:
    (folder / "kernel.cpp").write_text(unit, encoding="utf-8")
    done = clang.run([*_FLAGS, "kernel.cpp"], folder)
    seen = set()
    for place, message in (*_messages(done.stderr), *_conversions(done.stdout)):
        if place not in seen:
            seen.add(place)
            yield f"{place}: {message}"


def _messages(stderr: str) -> Iterator[tuple[str, str]]:
    """Errors about address spaces as (place, message); a note explains the error before it."""
    place = ""
    for text, line, kind, message in _MESSAGE.findall(stderr):
        if kind == "error":
            place = f"{text} line {line}" if text in (SOURCE, HEADER) else ""
        if place and _is_about_spaces(message):
            yield place, _in_metals_words(message)


def _is_about_spaces(message: str) -> bool:
    """Clang says so, or names two pointer types that differ in their spaces."""
    if "address space" in _ATTRIBUTE.sub("", message):
        return True
    pointers = _POINTER.findall(_in_metals_words(message))
    spaces = [{word for word in _SPACES.values() if re.search(rf"\b{word}\b", each)} for each in pointers]
    return len(spaces) > 1 and spaces[0] != spaces[1]


def _in_metals_words(message: str) -> str:
    message = _ATTRIBUTE.sub(lambda found: _SPACES.get(found[1], "?"), _ALSO_KNOWN.sub("", message))
    message = re.sub(r"address space '(\d)'", lambda found: f"{_SPACES.get(found[1], '?')} memory", message)
    return message.replace("generic address space", "thread memory").replace("default address space", "thread memory")


def _conversions(tree: str) -> Iterator[tuple[str, str]]:
    """Casts between spaces in clang's syntax tree. A location there leaves out what it shares with the last one."""
    file, line = "", ""
    for row in tree.splitlines():
        for location in _LOCATION.finditer(row):
            if location["file"] != "line":
                file = location["file"].rsplit("/", 1)[-1]
            line = location["line"]
        if "AddressSpaceConversion" in row and file in (SOURCE, HEADER):
            yield f"{file} line {line}", "a cast turns a pointer into one to another address space"


def _with_lines(texts: KernelTexts, complaints: str) -> str:
    rows = []
    for complaint in complaints.splitlines():
        text, _, line = complaint.split(":")[0].split(" ")
        lines = (texts.header if text == HEADER else texts.source).split("\n")
        quoted = f" `{lines[int(line) - 1].strip()}`" if int(line) <= len(lines) else ""
        rows.append(complaint.replace(":", f"{quoted}:", 1))
    return "\n".join(rows) + (
        "\nA pointer must name the memory it points into (device, constant, threadgroup or thread) and keeps to it; "
        "declare it with the space of what is assigned to it, or copy the value"
    )
