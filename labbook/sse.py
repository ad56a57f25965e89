"""Server-sent events from a stream of bytes, whose chunks are not lines.

The format: https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Event:
    """One event; comments (keep-alives) are none. `name` is "message" unless the server named it."""

    data: str
    name: str = "message"


class EventReader:
    """Feed it bytes as they arrive; it returns the events that became complete."""

    def __init__(self) -> None:
        self._rest = b""
        self._skip_line_feed = False
        self._is_first_line = True
        self._data: list[str] = []
        self._name = "message"

    def feed(self, chunk: bytes) -> list[Event]:
        events = []
        for line in self._lines(chunk):
            event = self._take(line)
            if event is not None:
                events.append(event)
        return events

    def finish(self) -> list[Event]:
        """The event that a server left without its closing blank line, if any."""
        events = [event for event in (self._take(self._rest), self._take(b"")) if event is not None]
        self._rest = b""
        return events

    def _lines(self, chunk: bytes) -> list[bytes]:
        # A line may end in CR, LF or CRLF, and a chunk may end between the two bytes of a CRLF.
        if self._skip_line_feed and chunk:
            chunk = chunk.removeprefix(b"\n")
            self._skip_line_feed = False
        buffer = self._rest + chunk
        self._skip_line_feed = buffer.endswith(b"\r")
        lines = buffer.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._rest = lines.pop()
        return lines

    def _take(self, raw: bytes) -> Event | None:
        if self._is_first_line:
            raw = raw.removeprefix(b"\xef\xbb\xbf")
            self._is_first_line = False
        if not raw:
            return self._dispatch()
        name, _, value = raw.decode("utf-8", errors="replace").partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._name = value
        return None

    def _dispatch(self) -> Event | None:
        event = Event("\n".join(self._data), self._name) if self._data else None
        self._data, self._name = [], "message"
        return event
