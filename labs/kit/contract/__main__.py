"""`python -m labs.kit.contract [--fix] FILE...`: exit status 0 when all notebooks keep the contract, else 1."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import nbformat

from labs.kit.contract import broken_rules
from labs.kit.contract.canonical import canonical_text


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m labs.kit.contract", description="Check notebooks.")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--fix", action="store_true", help="first write each file in canonical form")
    options = parser.parse_args(arguments)
    num_broken = 0
    for path in options.files:
        if options.fix:
            notebook = nbformat.read(path, as_version=4)
            path.write_text(canonical_text(notebook), encoding="utf-8")
        for sentence in broken_rules(path):
            num_broken += 1
            print(f"{path.name}: {sentence}", file=sys.stderr)
    return 1 if num_broken else 0


if __name__ == "__main__":
    sys.exit(main())
