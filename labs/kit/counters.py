"""A server's two prefix cache counters, as a sentence."""

from __future__ import annotations

from labbook import metrics
from labbook.client import Client
from labbook.errors import ServerError


def counters_text(base_url: str, model: str | None) -> str:
    """What the counters stand at now, in tokens, or why they cannot be read."""
    client = Client(base_url)
    try:
        reading = metrics.read(client.metrics_page(), model=model)
    except ServerError as error:
        return f"no counters: {error}"
    finally:
        client.close()
    if reading.hits is None or reading.queries is None:
        return f"no counters: {reading.why or 'the metrics page lacks them'}"
    return f"queries {reading.queries:g} tokens, hits {reading.hits:g} tokens"
