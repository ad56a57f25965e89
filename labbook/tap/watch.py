"""Notice a client that leaves while its answer is still being computed.

Nothing is written to the client then, so nothing fails: only its socket tells.
"""

from __future__ import annotations

import selectors
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_LOOK_EVERY_S = 0.1


@contextmanager
def watching(client: socket.socket, on_leave: Callable[[], None]) -> Iterator[None]:
    """Call `on_leave`, in a thread of its own, when the client closes its connection before the block ends."""
    is_over = threading.Event()
    thread = threading.Thread(target=_watch, args=(client, is_over, on_leave), daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()


def _watch(client: socket.socket, is_over: threading.Event, on_leave: Callable[[], None]) -> None:
    with selectors.DefaultSelector() as selector:
        try:
            selector.register(client, selectors.EVENT_READ)
        except (OSError, ValueError):  # closed already
            return
        while not is_over.is_set():
            if not selector.select(_LOOK_EVERY_S):
                continue
            if not is_over.is_set() and _has_left(client):
                on_leave()
            return  # what else can be read is the client's next request


def _has_left(client: socket.socket) -> bool:
    try:
        return client.recv(1, socket.MSG_PEEK) == b""
    except OSError:
        return True
