"""The predictions that the notebooks come with, so that a learner's own can be told from one that nobody touched.

`placeholders.json` holds direction and ratio by topic. `python -m labs.kit.placeholders` makes it anew from the
prediction cells of the notebooks of this checkout; a test keeps the two equal. It is a file of its own because the
notebook that a learner works in is the one that changes.
"""

from __future__ import annotations

import ast
import functools
import json
import sys
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

from labs.kit.parameters import checkout
from labs.kit.predictions import Prediction

FILE = "placeholders.json"


def is_placeholder(prediction: Prediction) -> bool:
    """True for the guess that a notebook came with. A topic that no notebook has is somebody's own."""
    return placeholders().get(prediction.topic) == [prediction.direction, prediction.ratio]


@functools.cache
def placeholders() -> dict[str, list[Any]]:
    """[direction, ratio] by topic."""
    text = resources.files("labs.kit").joinpath(FILE).read_text(encoding="utf-8")
    loaded: dict[str, list[Any]] = json.loads(text)
    return loaded


def placeholders_in(notebooks: Path) -> dict[str, list[Any]]:
    """What the prediction cells of these notebooks say. Raises ValueError for a topic that two of them have."""
    found: dict[str, list[Any]] = {}
    for path in sorted(notebooks.glob("*.ipynb")):
        for said in _predictions_of(json.loads(path.read_text(encoding="utf-8"))):
            topic = said["topic"]
            if topic in found:
                raise ValueError(f"{path.name} predicts {topic!r}, and so does a cell before it: topics are unique")
            found[topic] = [said["direction"], said["ratio"]]
    return found


def as_text(table: dict[str, list[Any]]) -> str:
    rows = (f"  {json.dumps(topic)}: {json.dumps(said)}" for topic, said in table.items())
    return "{\n" + ",\n".join(rows) + "\n}\n"


def _predictions_of(notebook: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The literal arguments of every `session.predict(...)` in the cells tagged prediction."""
    for cell in notebook["cells"]:
        if "prediction" not in cell["metadata"].get("tags", []):
            continue
        for node in ast.walk(ast.parse("".join(cell["source"]))):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "predict":
                yield {
                    keyword.arg: ast.literal_eval(keyword.value)
                    for keyword in node.keywords
                    if keyword.arg in ("topic", "direction", "ratio")
                }


def main() -> int:
    """Write the file anew."""
    Path(__file__).with_name(FILE).write_text(as_text(placeholders_in(checkout() / "notebooks")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
