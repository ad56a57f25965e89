"""`labbook tap`: run the proxy until Ctrl-C, and print a line for each request."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

from labbook.output import counted, printable
from labbook.places import file_argument
from labbook.record import now_iso

_DESCRIPTION = (
    "Pass requests through to an OpenAI-compatible server, unchanged, and print for each one how much of its prompt "
    "an earlier one shared, what the server says it reused, the times, and where the prompts diverge. Bodies and "
    "times are written to a private file (mode 0600): it holds whole prompts and answers, so delete it when you are "
    "done. Authorization headers, API keys and cookies are never written. No proxy of the environment is used."
)


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser], shared: argparse.ArgumentParser) -> None:
    tap = commands.add_parser(
        "tap", parents=[shared], help="a local proxy that shows what an application sends", description=_DESCRIPTION
    )
    add = tap.add_argument
    add("--upstream", required=True, metavar="URL", help="the server, for instance http://127.0.0.1:8000/v1")
    add("--port", type=int, default=0, metavar="N", help="where the tap listens (any free port, which is printed)")
    add("--host", default="127.0.0.1", help="address to listen on (127.0.0.1: this machine only)")
    add(
        "--out",
        type=file_argument,
        metavar="FILE",
        help="the private file (named after the time, in labbook-tap beside the labbook)",
    )
    add("--timeout", type=float, default=600.0, metavar="S", help="longest silence of the upstream in seconds (600)")
    add("--no-tokenize", action="store_true", help="ask the upstream for no tokens: prefixes are told in characters")
    tap.set_defaults(run=_tap)


def _tap(options: argparse.Namespace) -> int:
    from labbook.tap.line import as_line
    from labbook.tap.server import Tap

    out = options.out or _default_path(options.labbook)
    count = 0

    def tell(entry: dict[str, Any]) -> None:
        nonlocal count
        count += 1
        print(json.dumps(entry) if options.json else as_line(entry), flush=True)

    with Tap(
        options.upstream,
        port=options.port,
        host=options.host,
        out=out,
        timeout_s=options.timeout,
        asks_for_tokens=not options.no_tokenize,
        tell=tell,
        warn=_warn,
    ) as tap:
        _greet(tap.url, options, out)
        _wait_for_a_signal()
    if not options.json:
        print(
            printable(f"stopped; {counted(count, 'request')} in {out}: prompts and answers, yours to keep or to delete")
        )
    return 0


def _greet(url: str, options: argparse.Namespace, out: Path) -> None:
    if options.json:
        print(json.dumps({"listening": url, "upstream": options.upstream, "file": str(out)}), flush=True)
        return
    print(printable(f"tap on {url} before {options.upstream}: give your application the base URL {url}/v1"))
    print(printable(f"bodies are private and go to {out}, readable by you only; Ctrl-C stops"), flush=True)
    if options.host not in ("127.0.0.1", "::1", "localhost"):
        _warn(f"listening on {options.host}: others may send requests through this tap, and their prompts are written")


def _default_path(labbook: Path) -> Path:
    return labbook.parent / "labbook-tap" / f"{now_iso().replace(':', '').replace('+0000', 'Z')}.jsonl"


def _wait_for_a_signal() -> None:
    """Until Ctrl-C or an order to end; a shell's background job gets the latter."""
    stop = threading.Event()

    def on_signal(number: int, frame: FrameType | None) -> None:
        stop.set()

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        while not stop.wait(3600):
            pass
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _warn(sentence: str) -> None:
    print(printable(f"labbook: {sentence}"), file=sys.stderr, flush=True)
