"""What a cold and warm record says, one phase at a time."""

from __future__ import annotations

from labbook.record import Record
from labs.kit.table import text_table


def seconds(record: Record, *phases: str) -> list[float]:
    """The measured time of each request of these phases ("cold", "warm", "control"); failed ones are left out."""
    key = "ttft_s" if record["timed"] == "time to first token" else "total_s"
    return [
        request[key]
        for request in record["requests"]
        if request["phase"] in phases and request["error"] is None and request[key] is not None
    ]


def cached_tokens(record: Record, *phases: str) -> list[int | None]:
    """The cached tokens of each request of these phases; None where the server did not tell."""
    return [request.get("cached_tokens") for request in record["requests"] if request["phase"] in phases]


def signal_table(record: Record) -> str:
    """The three signals: what each says, and what it supports."""
    rows = [
        (name.replace("_", " "), signal["value"], signal["unit"], signal["supports"] or "cannot tell")
        for name, signal in record["signals"].items()
    ]
    return text_table(("signal", "value", "unit", "supports"), rows)


def count_facts(record: Record) -> str:
    """What is true of the counts whatever the machine and the nonce are: the same text in every run."""
    return "\n".join([*_cached_facts(record), _counter_fact(record)])


def _cached_facts(record: Record) -> list[str]:
    facts = []
    for phase in ("cold", "warm", "control"):
        known = [tokens for tokens in cached_tokens(record, phase) if tokens is not None]
        if not known:
            facts.append(f"{phase}: this server tells no cached tokens")
        elif not any(known):
            facts.append(f"{phase}: 0 cached tokens")
        else:
            facts.append(f"{phase}: {_in_pages(known, record['page_tokens'], record['shared_prefix_tokens'])}")
    return facts


def _in_pages(known: list[int], page_tokens: int | None, shared_tokens: int | None) -> str:
    if not page_tokens or any(tokens % page_tokens for tokens in known):
        return "some cached tokens"
    whole = f"every request restored whole pages of {page_tokens} tokens"
    if shared_tokens is None or min(known) < shared_tokens // page_tokens * page_tokens:
        return whole
    return f"{whole}, all of those that the shared prefix fills"


def _counter_fact(record: Record) -> str:
    delta = record["cache_metrics_delta"]
    told = cached_tokens(record, "cold", "warm")
    if delta is None:
        return "counters: this server has none"
    if any(tokens is None for tokens in told):
        return "counters: nothing to compare them with, the answers tell no cached tokens"
    agree = delta["hits_tokens"] == sum(tokens or 0 for tokens in told)
    return f"counters: the server's hits {'are exactly' if agree else 'differ from'} the sum of what the answers said"
