"""The server's counters around each request of a measurement."""

from __future__ import annotations

import time
from itertools import pairwise

from labbook import metrics
from labbook.client import Client
from labbook.errors import ServerError
from labbook.metrics import Reading
from labbook.signals import CounterDelta

# Some servers publish their counters a moment after the answer's last byte.
SETTLE_S = 1.0
SETTLE_STEP_S = 0.05


class CounterWatch:
    """Reads /metrics between requests. Once a reading fails, `why` says so and no more are tried."""

    def __init__(self, client: Client, model: str) -> None:
        self._client = client
        self._model: str | None = model
        self._readings: list[Reading] = []
        self._names: list[str] = []
        self.sent_tokens: list[int | None] = []
        """What the requests of each step queried, as far as their answers told."""
        self._is_worth_waiting = True
        self.why = ""
        self._read_first()

    @property
    def engine(self) -> str | None:
        return self._readings[0].engine if self._readings else None

    @property
    def page_tokens(self) -> int | None:
        return self._readings[0].page_tokens if self._readings else None

    @property
    def config(self) -> dict[str, str]:
        """The labels of `cache_config_info`; empty where the page has none."""
        return dict(self._readings[0].config) if self._readings else {}

    @property
    def names(self) -> dict[str, str]:
        return dict(self._readings[0].names) if self._readings else {}

    @property
    def is_counting(self) -> bool:
        return bool(self._readings) and not self.why

    def step(self, name: str, sent_tokens: int | None) -> None:
        """Note what the counters gained in a step of a phase. Waits a moment for `sent_tokens` to be counted."""
        if not self.is_counting:
            return
        before = self._readings[-1].queries
        deadline_s = time.monotonic() + (SETTLE_S if self._is_worth_waiting else 0.0)
        while True:
            reading = self._read()
            if reading is None:
                return
            is_counted = (
                sent_tokens is None
                or before is None
                or reading.queries is None
                or reading.queries < before
                or reading.queries - before >= sent_tokens
            )
            if is_counted or time.monotonic() >= deadline_s:
                self._is_worth_waiting = is_counted  # a server that counted less once, cache off, does so again
                break
            time.sleep(SETTLE_STEP_S)
        self._readings.append(reading)
        self._names.append(name)
        self.sent_tokens.append(sent_tokens)

    def delta(self, name: str) -> CounterDelta | None:
        """Tokens gained in all steps of a phase; None when it was not read."""
        gains = [gain for phase, gain in zip(self._names, self.steps(), strict=True) if phase == name]
        if not gains:
            return None
        return CounterDelta(_sum([gain.hits for gain in gains]), _sum([gain.queries for gain in gains]))

    def steps(self) -> list[CounterDelta]:
        """Tokens gained between one reading and the next; negative when the server restarted in between."""
        return [
            CounterDelta(_gain(first.hits, last.hits), _gain(first.queries, last.queries))
            for first, last in pairwise(self._readings)
        ]

    def has_restarted(self) -> bool:
        starts = {reading.started_at_s for reading in self._readings if reading.started_at_s is not None}
        return len(starts) > 1

    def _read_first(self) -> None:
        reading = self._read()
        if reading is None:
            return
        if reading.hits is None and len(reading.models) == 1:
            # A server with one model may count it under another of its names than the one we ask for.
            self._model = reading.models[0]
            reading = self._read() or reading
        self._readings.append(reading)
        if reading.hits is None:
            self.why = reading.why or "the server counts no hits"

    def _read(self) -> Reading | None:
        try:
            return metrics.read(self._client.metrics_page(), model=self._model)
        except ServerError as error:
            self.why = f"no counters: {error}"
            return None


def _sum(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _gain(first: float | None, last: float | None) -> float | None:
    return None if first is None or last is None else last - first
