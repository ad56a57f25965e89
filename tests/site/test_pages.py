"""What a page says: code, outputs, figures with their text, formulas, and the way to the other pages."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest

from scripts.build_site.build import INDEX, build_site, make_site
from scripts.build_site.problems import BrokenSite
from tests.site.small_checkout import Checkout, code, figure, printed, text, widget


def page_of(checkout: Checkout, *cells: object) -> str:
    checkout.add("00_thing", *cells)
    return make_site(checkout.folder).pages["00_thing.html"]


def problems_of(checkout: Checkout, *cells: object) -> str:
    with pytest.raises(BrokenSite) as broken:
        page_of(checkout, *cells)
    return str(broken.value)


def test_a_figure_keeps_its_text_alternative(checkout: Checkout) -> None:
    sentence = 'cold is "slow" & warm < cold: 591 ms against 203 ms.'
    page = page_of(checkout, code("figure", figure(sentence)))
    (alternative,) = re.findall(r'<img src="data:image/png;base64,[^"]+" alt="([^"]*)">', page)
    assert unescape(alternative) == sentence


def test_a_figure_without_a_text_alternative_is_refused_with_its_cell(checkout: Checkout) -> None:
    assert "00_thing.ipynb, cell measure: it shows a figure without a text alternative" in problems_of(
        checkout, code("figure", figure(""))
    )


def test_what_has_no_text_is_refused(checkout: Checkout) -> None:
    output = figure("x")
    output.data = {"text/html": "<b>bold</b>"}
    assert "it shows text/html and no text that says the same" in problems_of(checkout, code("x", output))


def test_a_widget_is_its_text_twin_and_a_word_about_where_it_moves(checkout: Checkout) -> None:
    page = page_of(checkout, code("quiz", printed("Question 1: why?\n"), widget("(buttons for 1 question)")))
    assert "Question 1: why?" in page
    assert "In JupyterLab: (buttons for 1 question)" in page
    assert "model_id" not in page


def test_an_output_that_varies_says_so_instead_of_the_marker_for_nbval(checkout: Checkout) -> None:
    page = page_of(checkout, code("# NBVAL_IGNORE_OUTPUT\nx = 1", printed("12 ms")))
    assert "NBVAL" not in page and "differs from run to run" in page
    assert "differs from run to run" not in page_of(checkout, code("x = 1", printed("12 tokens")))


def test_columns_scroll_on_a_narrow_screen_and_sentences_wrap(checkout: Checkout) -> None:
    table, sentence = printed("page  tokens\n   0      16"), printed("One sentence.")
    page = page_of(checkout, code("x", table), code("y", sentence, name="say"))
    assert re.findall(r'<pre class="(text[^"]*)"', page) == ["text aligned", "text"]


def test_what_is_printed_is_shown_as_text_and_never_obeyed(checkout: Checkout) -> None:
    page = page_of(checkout, code("x", printed("\x1b[31m<script>alert(1)</script>\x1b[0m\n")))
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page and "\x1b" not in page
    assert page.count("<script") == 1


def test_a_cell_with_a_tag_of_the_contract_wears_its_name(checkout: Checkout) -> None:
    assert '<p class="badge">Break it</p>' in page_of(checkout, code("x = 1", tags=("break",)))


def test_a_cell_that_never_ran_is_shown_as_code(checkout: Checkout) -> None:
    assert '<span class="mi">7</span>' in page_of(checkout, code("x = 7", count=None))


def test_a_formula_is_mathml_in_the_line_and_in_a_line_of_its_own(checkout: Checkout) -> None:
    page = page_of(
        checkout, text("Bytes: $2 \\cdot L$ each.\n\n$$\\frac{a_1}{b} < c$$\n\n\\begin{matrix}a & b\\end{matrix}")
    )
    assert page.count("<math ") == 3 and page.count('display="block"') == 2 and page.count('display="inline"') == 1
    assert "<mfrac>" in page and "<mtable" in page
    assert "$" not in page.split("<main")[1].split("</main>")[0]


def test_a_formula_that_cannot_be_said_is_refused_with_its_cell(checkout: Checkout) -> None:
    told = problems_of(checkout, text("$\\nosuchthing{x}$"), text("$\\left( x$", name="half"))
    assert "cell about: the formula" in told and "\\nosuchthing" in told
    assert "cell half: the formula" in told
    assert "uses &" in problems_of(checkout, text("\\begin{aligned}a&=b\\end{aligned}"))


def test_two_headings_of_the_same_name_have_two_anchors(checkout: Checkout) -> None:
    page = page_of(checkout, text("## Break it"), text("## Break it", name="again"))
    assert re.findall(r'<h2 id="([^"]+)">', page) == ["Break-it", "Break-it-2"]
    assert re.findall(r'<a href="#([^"]+)">Break it</a>', page) == ["Break-it", "Break-it-2"]


def test_a_table_names_its_columns_and_scrolls_by_itself(checkout: Checkout) -> None:
    page = page_of(checkout, text("| page | tokens |\n|---|---:|\n| 0 | 16 |"))
    assert '<th scope="col">page</th>' in page and '<td class="right">16</td>' in page
    assert re.search(r'<div class="wide" [^>]*tabindex="0"[^>]*><table>', page)


def test_each_page_leads_to_the_one_before_and_the_one_after(checkout: Checkout) -> None:
    for name in ("00_first", "01_second", "02_third"):
        checkout.add(name)
    pages = make_site(checkout.folder).pages
    around = {name: re.findall(r'<a rel="(\w+)" href="([^"]+)"', html) for name, html in pages.items()}
    assert around == {
        INDEX: [],
        "00_first.html": [("next", "01_second.html")],
        "01_second.html": [("prev", "00_first.html"), ("next", "02_third.html")],
        "02_third.html": [("prev", "01_second.html")],
    }


def test_the_index_lists_every_notebook_with_its_purpose_and_time(checkout: Checkout) -> None:
    checkout.add("00_first", title="Is `it` hit?")
    index = make_site(checkout.folder).pages[INDEX]
    assert '<a href="00_first.html">Is it hit?</a>' in index
    assert "<p>You will see one <em>thing</em>.</p>" in index
    assert '<p class="time">5 minutes to read.</p>' in index


def test_an_opening_that_is_not_as_the_contract_has_it_is_told(checkout: Checkout) -> None:
    path = checkout.add("00_thing")
    path.write_text(path.read_text(encoding="utf-8").replace("**Time**", "Time"), encoding="utf-8")
    with pytest.raises(BrokenSite, match=r"00_thing\.ipynb, opening: it needs a title"):
        make_site(checkout.folder)


def test_a_file_that_is_no_notebook_is_told_and_the_others_are_read(checkout: Checkout) -> None:
    checkout.add("01_other", text("[x](nowhere.md)"))
    checkout.write("notebooks/00_thing.ipynb", "{")
    with pytest.raises(BrokenSite) as broken:
        make_site(checkout.folder)
    assert [sentence.split()[0] for sentence in broken.value.problems] == ["00_thing.ipynb", "01_other.ipynb,"]


def test_a_broken_notebook_leaves_the_site_as_it_was(checkout: Checkout, tmp_path: Path) -> None:
    checkout.add("00_thing")
    build_site(checkout.folder, tmp_path / "build" / "site")
    before = (tmp_path / "build" / "site" / INDEX).read_bytes()
    checkout.add("01_other", text("[x](nowhere.md)"))
    with pytest.raises(BrokenSite):
        build_site(checkout.folder, tmp_path / "build" / "site")
    assert (tmp_path / "build" / "site" / INDEX).read_bytes() == before


def test_the_page_of_a_notebook_that_is_gone_goes_too(checkout: Checkout, tmp_path: Path) -> None:
    gone = checkout.add("00_thing")
    checkout.add("01_other")
    build_site(checkout.folder, tmp_path / "site")
    gone.unlink()
    build_site(checkout.folder, tmp_path / "site")
    assert sorted(path.name for path in (tmp_path / "site").glob("*.html")) == ["01_other.html", INDEX]
