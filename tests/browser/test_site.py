"""The built site in a browser: opened from a file, in light and dark, wide and narrow."""

from __future__ import annotations

from pathlib import Path

import pytest

from labs.kit.parameters import checkout
from scripts.build_site.build import INDEX, build_site
from tests.browser.axe import grave_violations
from tests.browser.conftest import OpenPage
from tests.browser.watched import Watched

PAGES = [INDEX, *(f"{path.stem}.html" for path in sorted((checkout() / "notebooks").glob("*.ipynb")))]
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 360, "height": 740}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "site"
    build_site(checkout(), folder)
    return folder


@pytest.fixture(scope="module", params=["light", "dark"])
def wide(request: pytest.FixtureRequest, opened: OpenPage) -> Watched:
    """`bypass_csp`: what the page asks for is counted, also what its policy would have stopped."""
    return opened(viewport=DESKTOP, color_scheme=request.param, bypass_csp=True)


@pytest.fixture(scope="module")
def phone(opened: OpenPage) -> Watched:
    return opened(viewport=PHONE, is_mobile=True, has_touch=True, bypass_csp=True, color_scheme="light")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_asks_for_nothing_and_keeps_nobody_out(wide: Watched, site: Path, name: str) -> None:
    show(wide, site, name)
    assert wide.requests == [(site / name).as_uri()]
    assert wide.console == []
    assert grave_violations(wide.page) == []


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_a_phone_and_keeps_nobody_out(phone: Watched, site: Path, name: str) -> None:
    show(phone, site, name)
    assert phone.page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert grave_violations(phone.page) == []


def test_what_keeps_somebody_out_and_what_is_asked_of_a_host_would_be_noticed(opened: OpenPage) -> None:
    watched = opened()
    watched.page.set_content(
        '<html lang="en"><title>t</title><p style="color: #ccc">pale</p><img src="http://host.invalid/x">'
    )
    found = {violation.split()[0] for violation in grave_violations(watched.page)}
    assert {"color-contrast", "image-alt"} <= found
    assert watched.requests_elsewhere == ["http://host.invalid/x"]


def test_the_ground_is_light_or_dark_as_the_reader_wishes(opened: OpenPage, site: Path) -> None:
    shades = {}
    for scheme in ("light", "dark"):
        watched = opened(color_scheme=scheme)
        show(watched, site, INDEX)
        colour = watched.page.evaluate("getComputedStyle(document.body).backgroundColor")
        shades[scheme] = sum(int(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(","))
    assert shades["light"] > 700 and shades["dark"] < 100


def test_the_first_tab_skips_the_navigation(opened: OpenPage, site: Path) -> None:
    watched = opened()
    show(watched, site, PAGES[1])
    watched.page.keyboard.press("Tab")
    assert watched.page.evaluate("document.activeElement.textContent") == "Skip to the content"
    watched.page.keyboard.press("Enter")
    assert watched.page.evaluate("document.activeElement.id") == "content"


def test_only_code_that_is_wider_than_its_box_is_a_stop_for_the_keyboard(opened: OpenPage, site: Path) -> None:
    watched = opened(viewport=PHONE)
    show(watched, site, PAGES[1])
    wrong = """[...document.querySelectorAll("[data-scrolls]")]
        .filter(box => (box.scrollWidth > box.clientWidth) !== (box.tabIndex === 0)).length"""
    stops = "document.querySelectorAll('[data-scrolls][tabindex]').length"
    assert watched.page.evaluate(wrong) == 0 and watched.page.evaluate(stops) > 0


def show(watched: Watched, site: Path, name: str) -> None:
    watched.console.clear()
    watched.requests.clear()
    watched.page.goto((site / name).as_uri())
