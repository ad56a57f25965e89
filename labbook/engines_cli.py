"""`labbook engines`: print the engine table as text, JSON or the Markdown of docs/engines.md."""

from __future__ import annotations

import argparse
import json
import textwrap
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from labbook.engines import SOURCES, Engine, Option, engine, engines

_WIDTH = 110
_SOURCE_MEANS = {
    "captured": "seen in answers of a server of this version",
    "measured": "its effect was measured here",
    "sources": "read in the published sources of this version",
    "documented": "read in the engine's own documentation",
    "unverified": "told elsewhere: try it before you rely on it",
}
_INTRODUCTION = """\
# Engines: what to switch on, off, enlarge or quantize

Made from `labbook/engines.toml` by `labbook engines --markdown > docs/engines.md`; change it there.

Each option says where it is known from:
"""


def add_parser(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Add `engines` to the subcommands of `labbook`; `shared` brings --json."""
    parser = commands.add_parser(
        "engines", parents=[shared], help="what to switch on, off, enlarge or quantize, by engine"
    )
    parser.add_argument("name", nargs="?", help="one engine, such as vllm; all of them when left out")
    parser.add_argument("--markdown", action="store_true", help="print the text of docs/engines.md")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the table. Raises UsageError for an engine that is not in it."""
    chosen = engines() if options.name is None else (engine(options.name),)
    if options.json:
        print(json.dumps([asdict(row) for row in chosen]))
    else:
        print(markdown(chosen) if options.markdown else as_text(chosen), end="")
    return 0


def as_text(rows: Iterable[Engine]) -> str:
    return "\n".join(_text_of(row) for row in rows)


def markdown(rows: Iterable[Engine]) -> str:
    """The page for readers, one section an engine."""
    legend = "".join(f"- {source}: {_SOURCE_MEANS[source]}\n" for source in SOURCES)
    return f"{_INTRODUCTION}\n{legend}" + "".join(f"\n{_section(row)}" for row in rows)


def _text_of(row: Engine) -> str:
    lines = [f"{row.name}: {row.title}, {row.version}; {row.start}"]
    for label, text in (("reuse", row.reuse), ("counters", row.counters), ("usage", row.usage)):
        lines += _wrapped(f"  {label:<10}", text)
    for option in row.options:
        lines += [f"  {option.name}  [{option.turn}; default {option.default}; {option.source}]"]
        lines += _wrapped("      ", f"{option.what} {option.effect}")
    return "\n".join(lines) + "\n"


def _wrapped(head: str, text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=head, subsequent_indent=" " * len(head))


def _section(row: Engine) -> str:
    page = f"[{row.page}]({row.page})" if row.page.startswith("https:") else f"[{row.page}](../{row.page})"
    return "\n".join(
        [
            f"## {row.title}",
            "",
            f"Known for {row.version}. Started with `{row.start}`. More: {page}.",
            "",
            f"- Reuse: {row.reuse}",
            f"- Counters: {row.counters}",
            f"- Usage: {row.usage}",
            "",
            "| option | turns | what it does | default | effect on a measurement | known from |",
            "|---|---|---|---|---|---|",
            *(_line(option) for option in row.options),
            "",
        ]
    )


def _line(option: Option) -> str:
    kind = "" if option.kind == "flag" else f" ({option.kind})"
    cells = [f"`{option.name}`{kind}", option.turn, option.what, option.default, option.effect, option.source]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
