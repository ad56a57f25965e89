"""What the documents claim: their examples run, and what they point to is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from labbook.book import Labbook

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "minivllm").rglob("*.md")])


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_local_link_of_a_document_leads_somewhere(document: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", document.read_text(encoding="utf-8"))
    missing = [link for link in links if "://" not in link and not (document.parent / link).exists()]
    assert missing == []


def test_the_example_labbook_reads_without_a_problem() -> None:
    book = Labbook(ROOT / "docs" / "labbook-example.md")
    (record,) = book.records(strict=True)
    assert (record["verdict"], record["lab"]) == ("reused", "prefix-cache")
    assert record["cache_metrics_delta"]["phases"]["warm"]["hits_tokens"] == 3 * record["requests"][1]["cached_tokens"]
