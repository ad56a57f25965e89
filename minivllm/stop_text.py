"""The text of one answer as it grows: whole characters only, and nothing of a stop string ever shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class StreamDecoder(Protocol):
    """What `Tokenizer.stream_decoder()` gives: newly complete text per token, never half a character."""

    def add(self, token_id: int) -> str: ...

    def flush(self) -> str: ...


class AnswerText:
    """Decodes tokens, looks for stop strings, and holds back text that may turn out to begin one.

    `shown` is all that may be shown so far. `stopped_by` is the stop string that was found; the text ends before it.
    """

    def __init__(self, decoder: StreamDecoder, stop_strings: Sequence[str] = ()) -> None:
        self._decoder = decoder
        self._stop_strings = tuple(stop_strings)
        self._held = ""
        self.shown = ""
        self.stopped_by: str | None = None

    def add(self, token_id: int) -> None:
        self._append(self._decoder.add(token_id))

    def finish(self) -> None:
        """The answer ends here: show what was held back, unless a stop string ended it."""
        if self.stopped_by is None:
            self._append(self._decoder.flush())
        self.shown += self._held
        self._held = ""

    def _append(self, new_text: str) -> None:
        self._held += new_text
        found = self._first_stop()
        if found is not None:
            start, self.stopped_by = found
            self.shown += self._held[:start]
            self._held = ""
            return
        num_safe = len(self._held) - self._possible_start()
        self.shown += self._held[:num_safe]
        self._held = self._held[num_safe:]

    def _first_stop(self) -> tuple[int, str] | None:
        starts = [(self._held.find(stop), stop) for stop in self._stop_strings]
        return min(((start, stop) for start, stop in starts if start >= 0), default=None)

    def _possible_start(self) -> int:
        """Length of the longest end of the held text that a stop string begins with."""
        longest = 0
        for stop in self._stop_strings:
            for length in range(min(len(stop) - 1, len(self._held)), longest, -1):
                if self._held.endswith(stop[:length]):
                    longest = length
                    break
        return longest
