"""`labs`: the commands of the course. Each comes from a module with `add_parser`; its `run` returns the exit status."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from labbook.errors import LabbookError, UsageError
from labbook.output import show_everything
from labs.doctor import command as doctor
from labs.kit.exercises import commands as exercises
from labs.kit.mystery import commands as mystery

FAILED, WRONG_USAGE, INTERRUPTED = 1, 2, 130
COMMANDS = (doctor, exercises, mystery)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status: 0, 1 (not all is well), 2 (wrong usage)."""
    options = _parser().parse_args(arguments)
    show_everything()
    try:
        return int(options.run(options))
    except LabbookError as error:
        print(f"labs: {error}", file=sys.stderr)
        return WRONG_USAGE if isinstance(error, UsageError) else FAILED
    except KeyboardInterrupt:
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="labs", description="The course about prefix caching, at the terminal.")
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add_parser(commands, shared)
    return parser


if __name__ == "__main__":
    sys.exit(main())
