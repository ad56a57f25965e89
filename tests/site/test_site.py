"""The site of this checkout: complete in itself, in light and dark, and with every alternative that notebooks carry."""

from __future__ import annotations

import base64
import hashlib
import re
import subprocess
import sys
from html import unescape
from pathlib import Path

import nbformat
import pytest

from labs.kit.parameters import checkout
from scripts.build_site.build import INDEX, TEMPLATES, Site, make_site
from scripts.build_site.check import what_it_loads

NOTEBOOKS = sorted((checkout() / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module")
def site() -> Site:
    return make_site(checkout())


def test_there_is_a_page_for_every_notebook_and_an_index(site: Site) -> None:
    assert {INDEX, *(f"{path.stem}.html" for path in NOTEBOOKS)} <= set(site.pages)


def test_no_page_loads_anything(site: Site) -> None:
    assert {path: what_it_loads(html) for path, html in site.pages.items() if what_it_loads(html)} == {}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_alternative_of_a_figure_is_on_the_page(site: Site, path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    carried = [
        output.metadata["image/png"]["alt"]
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if "image/png" in output.get("data", {})
    ]
    page = site.pages[f"{path.stem}.html"]
    assert [unescape(one) for one in re.findall(r'<img [^>]*alt="([^"]*)"', page)] == carried


def test_every_page_has_colours_for_a_dark_screen_and_white_behind_figures(site: Site) -> None:
    for html in site.pages.values():
        assert "@media (prefers-color-scheme: dark)" in html and 'content="light dark"' in html
        assert re.search(r"figure \{[^}]*background: #ffffff", html)


def test_light_and_dark_define_the_same_colours() -> None:
    style = (TEMPLATES / "style.css").read_text(encoding="utf-8")
    light, dark = re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    colours = [set(re.findall(r"(--[a-z-]+): #", block)) for block in (light, dark)]
    assert colours[0] == colours[1] and colours[0]
    assert set(re.findall(r"var\((--[a-z-]+)\)", style)) <= colours[0] | {"--sans", "--mono"}


def test_every_page_has_a_way_past_the_navigation_and_landmarks(site: Site) -> None:
    for html in site.pages.values():
        assert '<a class="skip" href="#content">' in html and html.count('<main id="content"') == 1
        assert '<nav aria-label="Notebooks">' in html and '<html lang="en">' in html


def test_a_browser_may_run_our_script_and_load_nothing(site: Site) -> None:
    for html in site.pages.values():
        (script,) = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'" in html


def test_the_command_says_what_it_does_without_building() -> None:
    command = [sys.executable, str(checkout() / "scripts" / "build-site.py"), "--help"]
    assert "Exit status 0: written." in subprocess.run(command, capture_output=True, text=True, check=True).stdout
