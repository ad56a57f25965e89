"""Which notebooks: all of a folder, or those that were named by their number, name or file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from labbook.errors import UsageError


def choose(folder: Path, wanted: Sequence[str]) -> list[Path]:
    """The notebooks of `folder` in order, or those that `wanted` names: `3`, `03`, `03_pages...`, with or without
    `.ipynb` and a folder in front. Raises UsageError that lists the right names.
    """
    known = sorted(folder.glob("*.ipynb"))
    if not known:
        raise UsageError(f"there is no notebook in {folder}")
    names = [name for text in wanted for name in re.split(r"[,\s]+", text) if name]
    chosen = {_named(name, known) for name in names}
    return [path for path in known if path in chosen] if names else known


def _named(name: str, known: Sequence[Path]) -> Path:
    stem = Path(name).name.removesuffix(".ipynb")
    number = stem.zfill(2) if stem.isdecimal() else None
    for path in known:
        if path.stem == stem or (number and path.stem.split("_")[0] == number):
            return path
    raise UsageError(f"there is no notebook {name!r}: choose from {', '.join(path.stem for path in known)}, or numbers")
