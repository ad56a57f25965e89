"""Run a program for as long as the program that started it lives: `python tether.py PROGRAM ARGUMENT...`.

The starter holds the other end of standard input. However it ends, killed included, the system closes that end; then
the program is asked to end, and ended. Its exit status becomes this one's.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import NoReturn

STOP_TIMEOUT_S = 10.0


def main() -> NoReturn:
    program = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
    threading.Thread(target=_end_with_starter, args=(program,), daemon=True).start()
    status = program.wait()
    os._exit(status if status >= 0 else 128 - status)


def _end_with_starter(program: subprocess.Popen[bytes]) -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    program.terminate()
    try:
        program.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        program.kill()


if __name__ == "__main__":
    main()
