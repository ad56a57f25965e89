"""`python -m labs.kit.doubles vllm --port 8001 --fault one-slot -- --enable-prompt-tokens-details`"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading
from collections.abc import Sequence

from labs.kit.doubles import DIALECTS, DoubleError, double
from labs.kit.doubles.presets import PRESETS, faults_of, names_in


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until interrupted. Returns 0, or 2 for wrong usage."""
    own, flags = _split(sys.argv[1:] if arguments is None else arguments)
    options = _parser().parse_args(own)
    if options.list:
        _list(options.json)
        return 0
    try:
        faults = faults_of(options.fault)
        with double(options.engine, faults=faults, flags=flags, model=options.model, port=options.port) as server:
            told = {"engine": options.engine, "base_url": server.base_url, "model": server.model}
            told |= {"flags": flags, "faults": names_in(faults)}
            sentence = f"{options.engine} (a double) at {server.base_url}, model {server.model}"
            print(json.dumps(told) if options.json else sentence, flush=True)
            _wait_for_signal()
    except DoubleError as error:
        print(f"doubles: {error}", file=sys.stderr)
        return 2
    return 0


def _split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Ours, and the imitated server's own after "--", which argparse would take for ours."""
    ours = list(arguments)
    if "--" not in ours:
        return ours, []
    place = ours.index("--")
    return ours[:place], ours[place + 1 :]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m labs.kit.doubles",
        description="A server that speaks like another one, on loopback, with faults made on purpose.",
        epilog="Flags of the imitated server itself follow after --.",
    )
    parser.add_argument("engine", nargs="?", default="vllm", choices=list(DIALECTS))
    parser.add_argument("--port", type=int, default=0, help="0 (the default) takes a free one")
    parser.add_argument("--model", default="tiny", help="what clients call the model")
    parser.add_argument("--fault", action="append", default=[], metavar="NAME[=VALUE]", help="may be repeated")
    parser.add_argument("--list", action="store_true", help="list the faults, and end")
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    return parser


def _list(as_json: bool) -> None:
    if as_json:
        print(json.dumps({name: {"what": preset.what, **preset.settings} for name, preset in PRESETS.items()}))
        return
    for name, preset in PRESETS.items():
        shown = f"{name}[={preset.settings[preset.takes]}]" if preset.takes else name
        print(f"{shown:<34}{preset.what}")


def _wait_for_signal() -> None:
    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    stopping.wait()


if __name__ == "__main__":
    sys.exit(main())
