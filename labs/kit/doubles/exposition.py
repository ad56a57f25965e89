"""Lines of a Prometheus text page.

Format: https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
"""

from __future__ import annotations

from collections.abc import Mapping


def family(name: str, kind: str, *samples: str) -> str:
    """A family's TYPE line, without help as some exporters write it, and its samples."""
    return "\n".join([f"# TYPE {name} {kind}", *samples])


def sample(name: str, labels: Mapping[str, str], value: float | str) -> str:
    """`name{label="value",...} value`; a string is taken as it is."""
    shown = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
    return f"{name}{{{shown}}} {value}" if shown else f"{name} {value}"


def page(*families: str) -> str:
    return "\n".join(families) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
