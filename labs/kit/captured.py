"""What three real servers said of one prompt, cold and warm: answers that were recorded, not records of a measurement.

Only the `usage` objects were kept, as they came. Times are not among them: nobody measured them at the client.
"""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

from labs.kit.table import text_table


def captured() -> dict[str, Any]:
    text = resources.files("labs.kit").joinpath("examples", "captured.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def captured_table() -> str:
    """One row for each server: what the same prompt reused and computed the second time."""
    rows = []
    for one in captured()["engines"]:
        cold, warm = (one[name]["prompt_tokens_details"]["cached_tokens"] for name in ("cold", "warm"))
        prompt = one["warm"]["prompt_tokens"]
        rows.append((one["engine"], one["version"], prompt, cold, warm, prompt - warm))
    columns = ("engine", "version", "prompt tokens", "cached cold", "cached warm", "computed warm")
    return text_table(columns, rows)
