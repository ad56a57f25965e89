"""Pages, pools and page tables as text, small enough to see at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence


def pages(tokens: Sequence[object], page_size: int) -> str:
    """`[ 7 8 ][ 9 . ]`: a dot for every place of the last page that is not filled."""
    rows = [list(map(str, tokens[start : start + page_size])) for start in range(0, len(tokens), page_size)]
    return "".join(f"[ {' '.join(row + ['.'] * (page_size - len(row)))} ]" for row in rows) or "[ ]"


def pool(states: Mapping[int, str] | Sequence[str]) -> str:
    """`| 0 free | 1 a b | 2 cached |`: one box for each page, with its state or its owners."""
    items = states.items() if isinstance(states, Mapping) else enumerate(states)
    return "".join(f"| {page_id} {state} " for page_id, state in items) + "|"


def labelled(rows: Iterable[tuple[str, str]]) -> str:
    """Drawings below each other, their names in a column."""
    rows = list(rows)
    width = max((len(name) for name, _ in rows), default=0)
    return "\n".join(f"{name.ljust(width)}  {drawn}" for name, drawn in rows)
