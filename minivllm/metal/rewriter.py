"""From the text of a Metal kernel to C++ for the CPU: few changes, and none that moves a line.

A C++ compiler reads Metal's words for address spaces as empty macros. Only the storage of a threadgroup must be found
in the text: `threadgroup float sums[2][32];` becomes a reference into memory that all threads of a threadgroup share.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from minivllm.metal.errors import KernelCompileError
from minivllm.metal.signature import THREAD_ATTRIBUTES, KernelTexts, Signature

# Names of the texts in `#line` directives, and so in every message.
HEADER, SIGNATURE, SOURCE = "header", "signature", "source"

_TOKEN = re.compile(
    r"""
    (?P<blank> \s+ | //[^\n]* | /\*.*?\*/ )
  | (?P<string> "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' )
  | (?P<directive> ^[ \t]*\#(?:\\\n|[^\n])* )
  | (?P<word> [A-Za-z_]\w* )
  | (?P<other> . )
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_METAL_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"]metal_\w+[>\"][^\n]*", re.MULTILINE)
_QUALIFIERS = frozenset({"const", "volatile", "static", "alignas", "threadgroup"})
_TYPE_WORDS = frozenset({"unsigned", "signed", "int", "short", "long", "char"})


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class Storage:
    """A declaration `threadgroup TYPE a[..], b;` and where it stands. `variables` holds names and dimensions."""

    start: int
    end: int
    cpp_type: str
    variables: tuple[tuple[str, str], ...]


def kernel_unit(texts: KernelTexts, signature: Signature) -> str:
    """A C++ file: MLX's text with the learner's own line numbers, and an entry that the runtime calls."""
    refuse_storage_in_header(texts.header)
    header = without_metal_includes(texts.header)
    return "\n".join(
        (
            '#include "kernel.h"',
            f'#line 1 "{HEADER}"',
            header,
            f'#line 1 "{SIGNATURE}"',
            signature.before_source.removesuffix("\n"),
            f'#line 1 "{SOURCE}"',
            shared_storage(without_metal_includes(texts.source)),
            f'#line 1 "{SIGNATURE}"',
            "}",  # without the instantiation for the GPU; the entry has its own
            _entry(signature),
        )
    )


def without_metal_includes(text: str) -> str:
    """Metal's own headers are always there; their lines become empty."""
    return _METAL_INCLUDE.sub("", text)


def shared_storage(source: str) -> str:
    """`source` with every threadgroup variable turned into a reference."""
    parts, done = [], 0
    for storage in storage_declarations(source):
        parts += [source[done : storage.start], _references(storage)]
        done = storage.end
    return "".join((*parts, source[done:]))


def refuse_storage_in_header(header: str) -> None:
    for storage in storage_declarations(header):
        line = header.count("\n", 0, storage.start) + 1
        raise KernelCompileError(
            f"{HEADER} line {line}: `threadgroup {storage.cpp_type} {storage.variables[0][0]}` reserves threadgroup "
            "memory outside a kernel; declare it in `source` and pass a `threadgroup` pointer to the function"
        )


def storage_declarations(text: str) -> Iterator[Storage]:
    """Declarations of threadgroup variables, not of pointers or references to them."""
    tokens = [token for token in _tokens(text) if token.kind != "blank"]
    depth, i = 0, 0
    while i < len(tokens):
        token = tokens[i]
        if token.text in "([":
            depth += 1
        elif token.text in ")]":
            depth -= 1
        elif token.text == "threadgroup" and depth == 0 and (found := _storage(text, tokens, i)):
            storage, i = found
            yield storage
        i += 1


def _tokens(text: str) -> Iterator[Token]:
    for match in _TOKEN.finditer(text):
        yield Token(str(match.lastgroup), match.group(), match.start())


def _storage(text: str, tokens: list[Token], i: int) -> tuple[Storage, int] | None:
    """The declaration at tokens[i] and the index of its semicolon, or None for anything else."""
    start = tokens[i].start
    if i and tokens[i - 1].text in _QUALIFIERS:
        start = tokens[i - 1].start
    type_end = _after_type(tokens, i + 1)
    if type_end is None or type_end >= len(tokens) or tokens[type_end].kind != "word":
        return None
    cpp_type = text[tokens[i + 1].start : tokens[type_end - 1].end].replace("threadgroup", "").strip()
    variables, j = [], type_end
    while True:
        after = _after_dimensions(tokens, j + 1)
        if after >= len(tokens) or tokens[j].kind != "word":
            return None
        dimensions = text[tokens[j].end : tokens[after].start] if after > j + 1 else ""
        variables.append((tokens[j].text, dimensions))
        if tokens[after].text == ";":
            return Storage(start, tokens[after].end, cpp_type, tuple(variables)), after
        if tokens[after].text == "=":
            line = text.count("\n", 0, tokens[j].start) + 1
            raise KernelCompileError(
                f"line {line}: threadgroup variable `{tokens[j].text}` has an initial value, which Metal does not "
                "allow; let one thread write it and put a threadgroup_barrier behind"
            )
        if tokens[after].text != ",":
            return None
        j = after + 1


def _after_type(tokens: list[Token], i: int) -> int | None:
    """The index behind a type such as `const metal::vec<T, 4>` or `unsigned int`."""
    while i < len(tokens) and tokens[i].text in _QUALIFIERS:
        i += 1
    if i >= len(tokens) or tokens[i].kind != "word":
        return None
    if tokens[i].text in _TYPE_WORDS:
        while i < len(tokens) and tokens[i].text in _TYPE_WORDS:
            i += 1
        return i
    i += 1
    while i + 2 < len(tokens) and tokens[i].text == ":" and tokens[i + 1].text == ":":
        i += 3
    if i < len(tokens) and tokens[i].text == "<":
        depth = 0
        while i < len(tokens):
            depth += {"<": 1, ">": -1}.get(tokens[i].text, 0)
            i += 1
            if depth == 0:
                break
    while i < len(tokens) and tokens[i].text in _QUALIFIERS:
        i += 1
    return i


def _after_dimensions(tokens: list[Token], i: int) -> int:
    while i < len(tokens) and tokens[i].text == "[":
        depth = 0
        while i < len(tokens):
            depth += {"[": 1, "]": -1}.get(tokens[i].text, 0)
            i += 1
            if depth == 0:
                break
    return i


def _references(storage: Storage) -> str:
    """C++ on as many lines as the declaration had."""
    parts = []
    for number, (name, dimensions) in enumerate(storage.variables):
        alias = f"mr_{name}_{storage.start}_{number}"
        parts.append(
            f"typedef {storage.cpp_type} {alias}{dimensions}; {alias}& {name} = *static_cast<{alias}*>"
            f"(mr_threadgroup_variable(sizeof({alias}), alignof({alias}), {storage.start * 64 + number}, "
            f'"{name}", __builtin_LINE(), __builtin_FILE()));'
        )
    return " ".join(parts)


def _entry(signature: Signature) -> str:
    arguments = []
    for i, parameter in enumerate(signature.parameters):
        const = "" if parameter.is_output else "const "
        pointer = f"static_cast<{const}{parameter.cpp_type}*>(buffers[{i}])"
        arguments.append(f"*{pointer}" if parameter.is_reference else pointer)
    for name in signature.attributes:
        triple = ", ".join(f"uint(a->{name}[{i}])" for i in range(3))  # copies: checked code sees its own stack only
        arguments.append(f"uint3({triple})" if THREAD_ATTRIBUTES[name] == "uint3" else f"a->{name}")
    joined = ",\n        ".join(arguments)
    return (
        '#line 1 "entry"\n'
        'extern "C" MR_UNCHECKED void mr_entry(void* const* buffers, const mr_attributes* a) {\n'
        f"    (void)a;\n    {signature.specialisation}(\n        {joined});\n}}\n"
    )
