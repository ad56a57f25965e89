"""Run `minivllm` for as long as the program that started it lives: `python -m labs.kit.tether serve ...`.

The starter holds the other end of standard input. However it ends (a kernel that was killed included), the system
closes that end, the read below returns, and the server goes. That works on every POSIX system, without signals.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from typing import NoReturn

STOP_TIMEOUT_S = 5.0


def end_with_starter() -> None:
    """Wait for the end of standard input, then end this process: gently, then surely."""
    while os.read(sys.stdin.fileno(), 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(STOP_TIMEOUT_S)
    os._exit(1)


def main() -> NoReturn:
    threading.Thread(target=end_with_starter, name="tether", daemon=True).start()
    from minivllm.cli import run

    run()


if __name__ == "__main__":
    main()
