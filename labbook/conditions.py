"""What every report says of the conditions of a record: the server first, and last what went wrong, when and where."""

from __future__ import annotations

from labbook.record import Record


def opening_lines(record: Record) -> list[str]:
    engine = " ".join(str(record[name]) for name in ("engine", "engine_version") if record.get(name))
    lines = [f"{record['base_url']}, model {record['model']}" + (f", {engine}" if engine else "")]
    if record.get("label"):
        lines.append(f"  label      {record['label']}")
    return lines


def closing_lines(record: Record) -> list[str]:
    lines = []
    if record.get("first_error"):
        lines.append(f"  first error  {record['first_error']}")
    if record.get("dropped_fields"):
        lines.append(f"  the server refused, so left out: {', '.join(record['dropped_fields'])}")
    lines.append(f"  measured   {record['recorded_at']} from {record['environment']['device']}")
    return lines
