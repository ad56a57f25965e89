"""The record of a replay, for people to read."""

from __future__ import annotations

from typing import Any

from minivllm.policies.figures import curve_name


def lines(record: dict[str, Any]) -> list[str]:
    distances = record["reuse_distance"]
    percentiles = ", ".join(f"{name} {value}" for name, value in distances["percentiles"].items() if value is not None)
    told = [
        f"{record['trace']}: {record['requests']:,} requests, {record['queried_blocks']:,} blocks of "
        f"{record['block_tokens']} tokens, {record['queried_tokens']:,} tokens",
        f"{curve_name(record)}, capacity {record['capacity_blocks']:,} blocks{_sizing_words(record)}",
        f"  hit ratio          {record['hit_ratio_blocks']:.4f} of blocks, {record['hit_ratio_tokens']:.4f} of tokens",
        f"  evicted blocks     {record['evicted_blocks']:,}",
        f"  held blocks        {record['held_blocks']:,}, {record['unreachable_blocks']:,} of them unreachable",
        f"  requests not kept  {record['requests_not_kept']:,}",
        f"  reuse distance     {distances['first_uses']:,} first uses, {distances['reuses']:,} reuses"
        + (f" (other blocks in between: {percentiles})" if percentiles else ""),
        f"  publication delay  {record['publication_delay_s']:g} s of trace time",
    ]
    return told + _sweep_lines(record.get("sweep", []))


def _sizing_words(row: dict[str, Any]) -> str:
    words = f", {row['capacity_gib']:.2f} GiB" if "capacity_gib" in row else ""
    if "saved_prefill_s" not in row:
        return words
    return f"{words}, saves {row['saved_prefill_s']:,.0f} s of {row['prefill_s']:,.0f} s prefill"


def _sweep_lines(rows: list[dict[str, Any]]) -> list[str]:
    """A table: a line for each design and eviction, a column for each capacity. A design may not exist at the small."""
    if not rows:
        return []
    capacities = sorted({row["capacity_blocks"] for row in rows})
    width = max(len(curve_name(row)) for row in rows)
    told = ["", f"{'hit ratio of tokens':{width}}" + "".join(f"{capacity:>10,}" for capacity in capacities) + " blocks"]
    if "capacity_gib" in rows[0]:
        gib = {row["capacity_blocks"]: row["capacity_gib"] for row in rows}
        told.append(" " * width + "".join(f"{gib[capacity]:>10.3g}" for capacity in capacities) + " GiB")
    ratios = {(curve_name(row), row["capacity_blocks"]): f"{row['hit_ratio_tokens']:.4f}" for row in rows}
    for name in dict.fromkeys(curve_name(row) for row in rows):
        told.append(f"{name:{width}}" + "".join(f"{ratios.get((name, capacity), '-'):>10}" for capacity in capacities))
    if "prefill_s" in rows[0]:
        told.append(f"every 0.1 of hit ratio saves {rows[0]['prefill_s'] / 10:,.0f} s of prefill")
    return told
