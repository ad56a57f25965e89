"""Pictures for people to look at, with --screenshots: notebooks in JupyterLab screen by screen, and the site."""

from __future__ import annotations

from pathlib import Path

import pytest

from labs.kit.parameters import checkout
from scripts.build_site.build import INDEX, build_site
from tests.browser.conftest import OpenPage
from tests.browser.lab import Lab
from tests.browser.open_notebook import OpenNotebook

NOTEBOOKS = [
    path.stem
    for path in sorted((checkout() / "notebooks").glob("*.ipynb"))
    if path.stem[:2] in ("00", "03", "05", "06")
]
SCREEN = {"width": 1280, "height": 900}
SCROLLED = ".jp-WindowedPanel-outer"


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_pictures_of_a_notebook(pictures: Path, opened: OpenPage, lab: Lab, name: str) -> None:
    watched = opened(viewport=SCREEN)
    notebook = OpenNotebook(watched, lab, name)
    notebook.run_all()
    outer = watched.page.locator(f".jp-NotebookPanel {SCROLLED}")
    height, step = outer.evaluate("one => [one.scrollHeight, one.clientHeight - 60]")
    for number, top in enumerate(range(0, height, step), start=1):
        outer.evaluate("(one, top) => one.scrollTo(0, top)", top)
        watched.page.wait_for_timeout(300)  # for what is drawn only when it comes into sight
        watched.page.screenshot(path=pictures / f"{name}-{number:02d}.png")
    lab.stop_kernels()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_pictures_of_the_site(pictures: Path, opened: OpenPage, tmp_path: Path, scheme: str, width: int) -> None:
    build_site(checkout(), tmp_path / "site")
    watched = opened(viewport={"width": width, "height": 900}, color_scheme=scheme)
    for name in (INDEX, *(f"{one}.html" for one in NOTEBOOKS)):
        watched.page.goto((tmp_path / "site" / name).as_uri())
        watched.page.screenshot(path=pictures / f"site-{Path(name).stem}-{scheme}-{width}.png", full_page=True)
