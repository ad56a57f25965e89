#!/usr/bin/env python3
"""Make build/site: the notebooks, as they were run, as HTML pages that open from a file and need no network.

    .venv/bin/python scripts/build-site.py        # what `make site` runs

Exit status 0: written. 1: something in a notebook cannot be shown, or a link leads nowhere; then nothing is changed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from labbook.progress import progress
from scripts.build_site.build import INDEX, LINKS_ELSEWHERE, build_site
from scripts.build_site.problems import BrokenSite

ROOT = Path(__file__).resolve().parent.parent
DESTINATION = ROOT / "build" / "site"
BROKEN, INTERRUPTED = 1, 130


def main(arguments: Sequence[str] | None = None) -> int:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args(arguments)  # fmt: skip
    try:
        with progress(len(list((ROOT / "notebooks").glob("*.ipynb"))), "notebook") as step:
            site = build_site(ROOT, DESTINATION, step)
    except BrokenSite as broken:
        for sentence in broken.problems:
            print(sentence, file=sys.stderr)
        print(f"Error: {len(broken.problems)} to mend; {DESTINATION} is as it was.", file=sys.stderr)
        return BROKEN
    except OSError as error:
        print(f"Error: the site cannot be written: {error}.", file=sys.stderr)
        return BROKEN
    except KeyboardInterrupt:
        print("\nInterrupted: the same command starts over.", file=sys.stderr)
        return INTERRUPTED
    print(f"{len(site.pages)} pages: {DESTINATION / INDEX}")
    print(f"{len(site.elsewhere)} links lead elsewhere and were not asked: {DESTINATION / LINKS_ELSEWHERE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
