"""The Python examples of the documents run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("document", "says"), [("README.md", "112 of "), ("minivllm/README.md", "cached cached active free")]
)
def test_the_python_example_of_a_document_runs(document: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    examples = re.findall(r"```python\n(.*?)```", (ROOT / document).read_text(encoding="utf-8"), re.DOTALL)
    code = "\n".join(re.sub(r"^  ", "", line) if document == "README.md" else line for line in examples[0].split("\n"))
    exec(compile(code, document, "exec"), {})
    assert says in capsys.readouterr().out
