#!/usr/bin/env python3
"""The program behind `make measure`: start the mini engine on a real model, and measure a cold and warm pair on it.

The measuring is done by measure-prefix-cache itself, on a server that was started for it. The record is appended to the
labbook, and the figure lies in the folder `labbook-figures` beside it.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from labbook import measure_cli
from labbook.book import Labbook
from labbook.errors import LabbookError
from labbook.places import file_argument
from labs.kit.parameters import DEFAULT_MODEL, default_labbook
from labs.kit.serving import ServingError, running_server
from minivllm.home import home
from minivllm.models.errors import ModelError

FAILED, WRONG_USAGE, INTERRUPTED = 1, 2, 130
LABEL = "first measurement"


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        Labbook(options.labbook).check_writable_place()  # wrong usage is told at once, not after a wait
        with only_one_at_a_time():
            return _measure(options)
    except LabbookError as error:
        return _fail(str(error), WRONG_USAGE)
    except KeyboardInterrupt:
        return _fail("stopped; nothing was written", INTERRUPTED)


def _measure(options: argparse.Namespace) -> int:
    try:
        figure = next_figure(options.labbook)
    except (LabbookError, OSError) as error:
        return _fail(str(error), WRONG_USAGE)
    try:
        fetch(options.model)
        print(f"Starting the engine on {options.model}.", flush=True)
        with running_server(options.model, is_quiet=True) as server:
            print("Measuring: one prompt cold, then its beginning again with other questions.\n", flush=True)
            return measure_cli.main(
                [
                    *("--base-url", server.base_url, "--model", options.model, "--label", LABEL),
                    *("--prefix-words", str(options.prefix_words)),
                    *("--labbook", str(options.labbook), "--figure", str(figure)),
                ]
            )
    except (ModelError, ServingError) as error:
        return _fail(str(error), FAILED)
    except ModuleNotFoundError as error:
        return _fail(f"{error}: run `make measure`, which installs what is needed", FAILED)


@contextlib.contextmanager
def only_one_at_a_time() -> Iterator[None]:
    """Wait while another measurement runs on this machine: two at once would measure each other.

    The lock is a file in MINIVLLM_HOME, and ends with the process that holds it. Where none can be had, nobody waits.
    """
    with contextlib.ExitStack() as held:
        with contextlib.suppress(OSError):
            home().mkdir(parents=True, exist_ok=True)
            lock = held.enter_context(open(home() / ".measure.lock", "w"))
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                print("another measurement runs here, waiting", file=sys.stderr, flush=True)
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def fetch(model: str) -> None:
    """Have the model here before the server looks for it: its progress bar needs the terminal. Raises ModelError."""
    from minivllm.models.registry import resolve

    resolve(model)


def next_figure(labbook: Path) -> Path:
    """`labbook-figures/007.png` beside a labbook with six records; makes the folder.

    Raises LabbookError when no labbook can stand there, OSError when the folder cannot be made.
    """
    book = Labbook(labbook)
    book.check_writable_place()
    folder = labbook.parent / "labbook-figures"
    folder.mkdir(exist_ok=True)
    number = len(book.records()) + 1 if labbook.exists() else 1
    return folder / f"{number:03}.png"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description="Start the mini engine, measure whether it reuses a prefix, append the record to the labbook.",
        epilog="Exit status: 0 measured, 1 the engine did not start or could not be measured, 2 wrong usage.",
    )
    parser.add_argument(
        "--model", default=DEFAULT_MODEL, help="a registered name, a folder, a .gguf file or a Hub id (%(default)s)"
    )
    parser.add_argument("--prefix-words", type=int, default=600, metavar="N", help="words of shared text (%(default)s)")
    parser.add_argument(
        "--labbook",
        type=file_argument,
        default=default_labbook(),
        metavar="FILE",
        help="append here (LABBOOK, else labbook.md at the top of the checkout)",
    )
    return parser


def _fail(message: str, status: int) -> int:
    print(f"first-measurement: {message}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
