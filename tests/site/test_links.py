"""Every link leads somewhere, and nothing is loaded from anywhere."""

from __future__ import annotations

import re
from html import unescape

import pytest

from scripts.build_site.build import make_site
from scripts.build_site.check import problems_of, what_it_loads
from scripts.build_site.problems import BrokenSite
from tests.site.small_checkout import Checkout, text

WHOLE = '<h1 id="top">Title</h1>'


def link_on_the_page(checkout: Checkout, markdown: str) -> str:
    """The address that the first link of `markdown` has on the page of 00_thing."""
    checkout.add("00_thing", text(markdown))
    page = make_site(checkout.folder).pages["00_thing.html"]
    return re.findall(r'<p><a href="([^"]*)"', page)[0]


def test_a_link_to_a_notebook_leads_to_its_page_and_heading(checkout: Checkout) -> None:
    checkout.add("01_other", text("## Break it"))
    assert link_on_the_page(checkout, "[b](01_other.ipynb#Break-it)") == "01_other.html#Break-it"


def test_a_link_to_a_file_of_the_checkout_leads_to_a_page_with_its_lines(checkout: Checkout) -> None:
    checkout.write("minivllm/cache pool.py", 'def free():\n    """One\n    two."""\n')
    link = link_on_the_page(checkout, "[pool](<../minivllm/cache pool.py#L2>)")
    assert link == "files/minivllm/cache%20pool.py.html#L2"
    page = make_site(checkout.folder).pages["files/minivllm/cache pool.py.html"]
    lines = [unescape(re.sub(r"<[^>]+>", "", line)) for line in re.findall(r'id="L\d+">(.*)', page)]
    assert lines == ["def free():", '    """One', '    two."""']
    assert 'href="../../index.html"' in page


@pytest.mark.parametrize(
    ("link", "reason"),
    [
        ("01_other.ipynb", "leads to notebooks/01_other.ipynb, which is not there"),
        ("../docs/engines.md", "leads to docs/engines.md, which is not there"),
        ("../docs", "names a folder"),
        ("../../etc/passwd", "leads out of the checkout"),
        ("/etc/passwd", "leads out of the checkout"),
        ("../model.bin", "is no text"),
        ("javascript:alert(1)", "is no file of the checkout"),
        ("file:///etc/passwd", "is no file of the checkout"),
        ("//host/x", "is no file of the checkout"),
    ],
)
def test_a_link_that_leads_nowhere_is_refused_with_its_cell(checkout: Checkout, link: str, reason: str) -> None:
    checkout.write("docs/there.md", "text")
    checkout.write("model.bin", b"\0\1\2")
    checkout.add("00_thing", text(f"[x]({link})"))
    with pytest.raises(BrokenSite) as broken:
        make_site(checkout.folder)
    (sentence,) = broken.value.problems
    assert sentence.startswith("00_thing.ipynb, cell about: ") and reason in sentence and link in sentence


@pytest.mark.parametrize("link", ["#Nothing", "01_other.ipynb#Nothing"])
def test_a_link_to_a_heading_that_is_not_there_is_found(checkout: Checkout, link: str) -> None:
    checkout.add("01_other")
    checkout.add("00_thing", text(f"[x]({link})"))
    with pytest.raises(BrokenSite, match="has no such heading"):
        make_site(checkout.folder)


def test_links_elsewhere_are_listed_with_their_pages_and_not_followed(checkout: Checkout) -> None:
    checkout.add("00_thing", text("[a](https://a.example/x) and https://b.example"))
    checkout.add("01_other", text("[a](https://a.example/x)"))
    assert make_site(checkout.folder).elsewhere == {
        "https://a.example/x": ["00_thing.html", "01_other.html"],
        "https://b.example": ["00_thing.html"],
    }


def test_a_picture_of_the_checkout_becomes_a_part_of_the_page(checkout: Checkout) -> None:
    checkout.write("docs/two pages.png", b"\x89PNG")
    checkout.add("00_thing", text("![two pages](<../docs/two pages.png>)"))
    page = make_site(checkout.folder).pages["00_thing.html"]
    assert '<img src="data:image/png;base64,iVBORw==" alt="two pages">' in page


@pytest.mark.parametrize(
    "html",
    [
        '<img src="https://h/x.png" alt="x">',
        '<img srcset="x.png 2x" alt="x">',
        '<img src="figures/x.png" alt="x">',
        '<script src="https://cdn/require.js"></script>',
        '<link rel="stylesheet" href="style.css">',
        '<link rel="preconnect" href="//fonts.example">',
        "<style>@import 'x.css';</style>",
        "<style>a { background: url(https://h/x.png) }</style>",
        '<p style="background: url(x.png)">x</p>',
        '<iframe src="page.html"></iframe>',
        '<video poster="x.png"></video>',
        '<object data="x.svg"></object>',
        '<svg><image xlink:href="x.png"/></svg>',
        '<form action="https://h/"></form>',
        '<meta http-equiv="refresh" content="0; url=https://h/">',
        "<script>fetch('x')</script>",
        '<script>import("./x.js")</script>',
        "<script>new Image().src = x</script>",
    ],
)
def test_whatever_a_page_would_load_is_found(html: str) -> None:
    assert what_it_loads(html)
    assert any("loads" in sentence for sentence in problems_of({"a.html": WHOLE + html}))


@pytest.mark.parametrize(
    "html", ['<img src="data:image/png;base64,xx" alt="x">', '<a href="https://h/">h</a>', "<p>url(x)"]
)
def test_what_is_a_part_of_the_page_or_only_a_link_loads_nothing(html: str) -> None:
    assert what_it_loads(html) == []
    assert list(problems_of({"a.html": WHOLE + html})) == []


def test_html_in_a_notebook_that_loads_something_is_refused(checkout: Checkout) -> None:
    checkout.add("00_thing", text('<img src="https://h/x.png" alt="x">'))
    with pytest.raises(BrokenSite, match=r"loads 'https://h/x\.png'"):
        make_site(checkout.folder)


@pytest.mark.parametrize(
    ("html", "reason"),
    [
        ("<h1>A</h1><h3>B</h3>", "level 3 follows level 1"),
        ("<h2>A</h2><h1>B</h1>", "of level 1"),
        ("<h1>A</h1><h1>B</h1>", "2 are of level 1"),
        ('<h1 id="a">A</h1><p id="a">', "has the anchor 'a' twice"),
        ('<h1>A</h1><img src="data:,">', "without a text alternative"),
        ('<h1>A</h1><a href="b.html">b</a>', "there is no such page"),
        ('<h1>A</h1><a href="ftp://h/">b</a>', "neither a page of the site"),
    ],
)
def test_what_a_reader_would_stumble_over_is_found(html: str, reason: str) -> None:
    (sentence,) = problems_of({"a.html": html})
    assert reason in sentence
