#!/usr/bin/env python3
"""Put a router in front of two mini engines, and measure what each way of routing finds in their caches.

    .venv/bin/python -m pip install -c constraints.txt -e '.[router]'      # once; nothing else needs the router
    .venv/bin/python scripts/route-two-replicas.py                         # round robin against cache-aware

Readers ask questions about documents, in no order, several at a time. Each policy gets fresh replicas and a fresh
router, all on loopback, stopped at the end. One record for each policy goes to the labbook: both replicas' hit ratios
from their own /metrics, and how evenly they worked.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import sys
import uuid
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NoReturn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tqdm import tqdm

from labbook.book import Labbook, default_name
from labbook.errors import LabbookError, UsageError
from labbook.places import file_argument
from labbook.record import Record
from labs.kit.serving import ServingError, running_server
from scripts.route_replicas.drive import Sizes, run_traffic
from scripts.route_replicas.records import as_table, record_of, sentence
from scripts.route_replicas.router import Router, RouterError, find_router, running_router

FAILED, WRONG_USAGE, INTERRUPTED = 1, 2, 130
MODEL = "tiny"
POLICIES = ("round_robin", "cache_aware")


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        sizes = Sizes(**{field.name: getattr(options, field.name) for field in fields(Sizes)})
        book = Labbook(options.labbook)
        book.check_writable_place()
        router = find_router(options.router)
        records = _measure_all(router, options, sizes, book)
    except UsageError as error:
        return _fail(str(error), WRONG_USAGE)
    except (LabbookError, RouterError, ServingError) as error:
        return _fail(str(error), FAILED)
    except KeyboardInterrupt:
        return _fail("stopped; the policies that were finished are in the labbook", INTERRUPTED)
    _tell(records, book, as_json=options.json)
    return 0


def _measure_all(router: Router, options: argparse.Namespace, sizes: Sizes, book: Labbook) -> list[Record]:
    from minivllm.server.version import version

    conditions = {
        "run": uuid.uuid4().hex[:8],
        "label": options.label,
        "engine": "minivllm",
        "engine_version": version(),
        "model": options.model,
        "router": router.name,
        "router_version": router.version,
    }
    records = []
    total = sizes.questions * len(options.policies)
    with tqdm(total=total, unit="request", disable=not sys.stderr.isatty()) as bar:
        for policy in options.policies:
            bar.set_description_str(policy)
            records.append(book.append(_measure(router, policy, sizes, conditions, bar)))
    return records


def _measure(router: Router, policy: str, sizes: Sizes, conditions: dict[str, Any], bar: tqdm) -> Record:
    """One policy, on replicas that have seen nothing."""
    flags = ["--num-pages", str(sizes.pool_pages)]
    with contextlib.ExitStack() as running:
        replicas = [
            running.enter_context(running_server(conditions["model"], flags=flags, is_quiet=True))
            for _ in range(sizes.replicas)
        ]
        urls = [replica.base_url for replica in replicas]
        router_url = running.enter_context(running_router(router, policy, [url.removesuffix("/v1") for url in urls]))
        outcome = run_traffic(router_url, urls, conditions["model"], sizes, bar.update)
        if not outcome.answers:
            raise LabbookError(f"not one request of {policy} succeeded; the first said: {outcome.errors[0]}")
        return record_of(policy, sizes, outcome, {**conditions, "base_url": router_url})


def _tell(records: list[Record], book: Labbook, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(records))
        return
    first = records[0]
    version = f" {first['router_version']}" if first["router_version"] else ""
    print(
        f"{first['router']}{version} in front of {len(first['replicas'])} replicas of {first['model']}, each with room"
    )
    print(f"for {first['pool_tokens']:,} tokens; all documents need {first['documents_tokens']:,}.\n")
    print(as_table(records))
    print(f"\n{sentence(records)}")
    for record in records:
        for warning in record["warnings"]:
            print(f"{record['policy']}: {warning}")
    print(f"{len(records)} records appended to {book.path}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        epilog="Exit status: 0 measured, 1 could not be measured, 2 wrong usage.",
    )
    add = parser.add_argument
    add("--router", metavar="PROGRAM", help="vllm-router or sglang-router, or a path to it (whichever is installed)")
    add("--policies", nargs="+", default=list(POLICIES), metavar="NAME", help="the router's own names (%(default)s)")
    add("--model", default=MODEL, help="what each replica serves (%(default)s)")
    add("--label", default="", help="a word of yours that finds the records again")
    add("--labbook", type=file_argument, default=default_name(), metavar="FILE", help="(LABBOOK, else labbook.md)")
    add("--json", action="store_true", help="print the records instead of a table")
    for field in fields(Sizes):
        add(f"--{field.name.replace('_', '-')}", type=int, default=field.default, metavar="N", help="(%(default)s)")
    return parser


def _fail(message: str, status: int) -> int:
    print(f"route-two-replicas: {message}", file=sys.stderr)
    return status


def _stop(*_: object) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _stop)  # whatever ends this program, what it started ends with it
    sys.exit(main())
