"""`labbook on-off ON OFF`: judge two recorded measurements, the cache on and off, and append the verdict."""

from __future__ import annotations

import argparse
import json
import sys

from labbook.book import Labbook
from labbook.on_off import judge_on_off, last_labelled
from labbook.output import printable
from labbook.verdict import WORDS

DONE, NOT_AS_EXPECTED = 0, 3


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser], shared: argparse.ArgumentParser) -> None:
    parser = commands.add_parser("on-off", parents=[shared], help="judge two measurements: cache on and cache off")
    parser.add_argument("on", metavar="ON", help="the label that was measured with the cache on")
    parser.add_argument("off", metavar="OFF", help="the label that was measured with it off")
    parser.add_argument("--force", action="store_true", help="even when more than the switch differs")
    parser.add_argument("--expect", choices=WORDS, help="exit with status 3 unless this is the verdict")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    book = Labbook(options.labbook)
    on, off = last_labelled(book, options.on), last_labelled(book, options.off)
    record = book.append(judge_on_off(on, off, despite_differences=options.force))
    if options.json:
        print(json.dumps(record))
    else:
        print(printable(f"verdict: {record['verdict']}. {record['verdict_reason']}."))
        for difference in record["differences"]:
            print(printable(f"  differs: {difference}"))
        print(printable(f"record appended to {book.path}"))
    if options.expect and options.expect != record["verdict"]:
        print(f"labbook: expected the verdict {options.expect}, judged {record['verdict']}", file=sys.stderr)
        return NOT_AS_EXPECTED
    return DONE
