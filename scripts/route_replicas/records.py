"""One record for each policy: the conditions, what each replica found in its cache, and how evenly they worked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from statistics import median
from typing import Any

from labbook.record import RECORD_VERSION, Record, environment_stamp, now_iso
from labbook.signals import CounterDelta
from scripts.route_replicas.drive import Outcome, Sizes, asked_documents

LAB, EXPERIMENT = "prefix-cache", "routing"


def record_of(policy: str, sizes: Sizes, outcome: Outcome, conditions: dict[str, Any]) -> Record:
    """`conditions` are those of the whole run: run, label, engine, engine_version, model, router, router_version.

    Tokens found and looked up are the replicas' own counters; `cached_tokens` is what the answers' usage adds up to.
    """
    hits, queries = _total(outcome.deltas, "hits"), _total(outcome.deltas, "queries")
    sent_tokens = sum(answer.prompt_tokens or 0 for answer in outcome.answers)
    first_token_s = [answer.ttft_s for answer in outcome.answers if answer.ttft_s is not None]
    return {
        "version": RECORD_VERSION,
        "lab": LAB,
        "experiment": EXPERIMENT,
        **conditions,
        "policy": policy,
        "replicas": [_replica(delta) for delta in outcome.deltas],
        "hits": hits,
        "queries": queries,
        "hit_ratio": _ratio(hits, queries),
        "balance": balance([delta.queries or 0 for delta in outcome.deltas]),
        "computed_balance": balance([(delta.queries or 0) - (delta.hits or 0) for delta in outcome.deltas]),
        "requests": len(outcome.answers),
        "sent_tokens": sent_tokens,
        "cached_tokens": sum(answer.cached_tokens or 0 for answer in outcome.answers),
        "first_token_p50_s": round(median(first_token_s), 6) if first_token_s else None,
        "failed": len(outcome.errors),
        "first_error": outcome.errors[0] if outcome.errors else None,
        "sizes": asdict(sizes),
        "page_tokens": outcome.page_tokens,
        "pool_tokens": sizes.pool_pages * outcome.page_tokens if outcome.page_tokens else None,
        "documents_tokens": _documents_tokens(sizes, outcome),
        "warnings": _warnings(outcome, queries, sent_tokens),
        "environment": environment_stamp(),
        "recorded_at": now_iso(),
    }


def balance(loads: Sequence[float]) -> float | None:
    """The busiest replica's load over the mean: 1 is even, N means that one of N did everything; None without load."""
    return round(max(loads) * len(loads) / sum(loads), 4) if sum(loads) else None


def as_table(records: Sequence[Record]) -> str:
    """Markdown, a row for each policy: the share of prompt tokens found, by replica and in all, and the balance."""
    num_replicas = max(len(record["replicas"]) for record in records)
    names = [f"replica {number}" for number in range(1, num_replicas + 1)]
    rows = [
        ["policy", *names, "all", "busiest/mean, sent", "busiest/mean, computed"],
        ["---", *["---:" for _ in range(num_replicas + 3)]],
    ]
    for record in records:
        replicas = [f"{_share(one['hit_ratio'])} of {one['queries']:,} tokens" for one in record["replicas"]]
        total = f"{_share(record['hit_ratio'])} of {record['queries']:,} tokens"
        balances = [_share(record[name]) for name in ("balance", "computed_balance")]
        rows.append([record["policy"], *replicas, total, *balances])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def sentence(records: Sequence[Record]) -> str:
    """What the table says, in words: from the least found to the most."""
    known = sorted((r for r in records if r["hit_ratio"] is not None), key=lambda record: record["hit_ratio"])
    if not known:
        return "No replica looked up a token."
    parts = [f"{record['policy']} {record['hit_ratio']:.0%}" for record in known]
    computed = [record["queries"] - record["hits"] for record in known]
    told = f"Prompt tokens found in a replica's cache: {', '.join(parts)}."
    if len(known) > 1 and computed[0]:
        told += f" {known[-1]['policy']} computed {computed[-1] / computed[0]:.2f} times what {known[0]['policy']} did."
    return told


def _replica(delta: CounterDelta) -> dict[str, Any]:
    return {"hits": delta.hits, "queries": delta.queries, "hit_ratio": _ratio(delta.hits, delta.queries)}


def _ratio(hits: float | None, queries: float | None) -> float | None:
    """None for a replica that was asked nothing: it has missed nothing either."""
    return None if hits is None or not queries else round(hits / queries, 4)


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _total(deltas: Sequence[CounterDelta], name: str) -> float | None:
    values = [getattr(delta, name) for delta in deltas]
    return None if None in values else sum(values)


def _documents_tokens(sizes: Sizes, outcome: Outcome) -> int | None:
    """Tokens of one prompt of every document: what a cache must hold to compute none of them twice."""
    if len(outcome.answers) < sizes.questions:  # which question an answer belongs to is no longer known
        return None
    longest: dict[int, int] = {}
    for document, answer in zip(asked_documents(sizes), outcome.answers, strict=True):
        longest[document] = max(longest.get(document, 0), answer.prompt_tokens or 0)
    return sum(longest.values())


def _warnings(outcome: Outcome, queries: float | None, sent_tokens: int) -> list[str]:
    """Reasons to doubt the numbers: what the replicas counted and what was sent must agree."""
    if outcome.errors:
        return [f"{len(outcome.errors)} requests failed; their tokens may be counted by a replica"]
    if queries != sent_tokens:
        return [f"the replicas looked up {queries} tokens, and {sent_tokens} were sent: other traffic, or a retry"]
    return []
