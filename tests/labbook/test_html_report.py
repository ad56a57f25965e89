"""One HTML file: figures in it, everything escaped, nothing loaded from anywhere."""

from __future__ import annotations

import base64
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from labbook.book import Labbook
from labbook.cli import main as labbook
from labbook.figures import cold_warm_sentence
from labbook.html_report import MAX_FIGURES, report
from tests.labbook.examples import cold_warm

VOID = {"meta", "img", "br"}
HOSTILE = "</pre></title><script>alert(1)</script>\"'><img src=http://evil.example/x onerror=alert(1)>&amp;\x1b[2J"


class Page(HTMLParser):
    """Every tag with its attributes, the text, and a stack that must come out even."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def page_of(*records: dict[str, Any], **settings: Any) -> Page:
    html, _ = report(list(enumerate(records, start=1)), **settings)
    return Page(html)


def test_a_figure_is_in_the_file_with_its_sentence_as_alternative_text() -> None:
    record = cold_warm()
    (image,) = page_of(record).all("img")
    data = base64.b64decode((image["src"] or "").removeprefix("data:image/png;base64,"))
    assert data.startswith(b"\x89PNG")
    assert image["alt"] == cold_warm_sentence(record)


def test_nothing_is_loaded_from_anywhere() -> None:
    html, _ = report([(1, cold_warm()), (2, cold_warm(label=HOSTILE))])
    page = Page(html)
    links = [value for _, attributes in page.tags for name, value in attributes.items() if name in ("src", "href")]
    assert links and all(link and link.startswith(("#", "data:image/png;base64,")) for link in links)
    assert {tag for tag, _ in page.tags} & {"script", "link", "iframe", "object", "base", "form"} == set()
    assert "url(" not in html and "@import" not in html
    policy = next(meta["content"] for meta in page.all("meta") if meta.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None and policy.startswith("default-src 'none';")


def test_whatever_a_record_holds_is_text() -> None:
    names = ("label", "verdict_reason", "first_error", "recorded_at", "experiment", "base_url", "prefix_source")
    page = page_of(cold_warm(**dict.fromkeys(names, HOSTILE)), {HOSTILE: HOSTILE}, title=HOSTILE)
    assert {tag for tag, _ in page.tags} & {"script"} == set()
    assert all("onerror" not in attributes for _, attributes in page.tags)
    assert all((image["src"] or "").startswith("data:") for image in page.all("img"))
    assert "<script>alert(1)</script>" in page.text and "\x1b" not in page.text


def test_a_record_has_a_row_that_leads_to_its_section_and_every_field() -> None:
    page = page_of(cold_warm(), {"lab": "note", "text": "by hand"})
    anchors = {attributes["id"] for attributes in page.all("h2")}
    assert anchors == {"record-1", "record-2"} == {(a["href"] or "").removeprefix("#") for a in page.all("a")}
    assert "verdict: reused." in page.text and '"text": "by hand"' in page.text
    assert [cell["scope"] for cell in page.all("th") if "scope" not in cell] == []


def test_light_and_dark_are_both_meant() -> None:
    html, _ = report([(1, cold_warm())])
    assert "color-scheme: light dark" in html and "prefers-color-scheme: dark" in html
    assert re.search(r"img \{[^}]*background: #ffffff", html)  # a figure keeps its white ground


@pytest.mark.parametrize(
    "values",
    [{"warm_s": None}, {"warm_s": 7}, {"cold_s": "x"}, {"requests": 7}, {"signals": []}, {"environment": None}],
)
def test_an_edited_record_costs_its_figure_or_text_and_nothing_else(values: dict[str, Any]) -> None:
    page = page_of(cold_warm(**values))
    assert len(page.all("h2")) == 1 and '"prefix_chars": 3306' in page.text


def test_without_matplotlib_the_page_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    page = page_of(cold_warm())
    assert page.all("img") == [] and "figures need matplotlib" in page.text


def test_of_many_records_the_last_are_drawn_and_the_page_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("labbook.html_report._figure", lambda record: "<figure></figure>")
    html, num_figures = report([(number, {"id": number}) for number in range(1, MAX_FIGURES + 3)])
    assert num_figures == MAX_FIGURES and f"drawn for the last {MAX_FIGURES} of them" in html
    assert html.index("record-3") < html.index("<figure>")


def test_the_command_writes_one_new_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    book = Labbook(tmp_path / "labbook.md")
    book.append(cold_warm())
    book.append({"lab": "note"})
    with open(book.path, "a", encoding="utf-8") as file:
        file.write('{"torn":')
    arguments = ["report", "--labbook", str(book.path), "--out", str(tmp_path / "report.html")]
    assert labbook([*arguments, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["records"], told["figures"]) == (2, 1)
    page = Page((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert "Lines that are no readable record" in page.text
    assert labbook(arguments) == 2
    assert labbook([*arguments, "--force", "on"]) == 0
    assert "1 record, 1 figure" in capsys.readouterr().out
