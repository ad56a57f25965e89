"""A browser for all tests, JupyterLab for those that run notebooks, and what a failing test leaves behind.

`make test` does not come here (norecursedirs in pyproject.toml): `make test-browser` names this folder.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Error, sync_playwright

from labs.kit.parameters import checkout
from tests.browser import axe
from tests.browser.chromium import FLAGS, MissingTool, executable
from tests.browser.lab import Lab, running_lab
from tests.browser.watched import Watched, open_page

LEFT_BEHIND = checkout() / "build" / "browser"
OPEN = pytest.StashKey[list[Watched]]()

OpenPage = Callable[..., Watched]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--screenshots", action="store_true", help="save pictures of notebooks and site in build/browser")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[OPEN] = []


def pytest_sessionstart(session: pytest.Session) -> None:
    try:
        executable()
        axe.fetch()
    except MissingTool as missing:
        pytest.exit(f"Error: {missing}", returncode=1)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    report = yield
    if report.failed:
        for number, watched in enumerate(item.config.stash[OPEN], start=1):
            with contextlib.suppress(Error):  # a page that has crashed leaves no picture
                watched.keep(LEFT_BEHIND, f"{item.name}-{report.when}-{number}")
    return report


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable(), args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def opened(browser: Browser, pytestconfig: pytest.Config) -> Iterator[OpenPage]:
    """Opens pages that are watched, and closes them after the module's last test."""
    here: list[Watched] = []

    def open_watched(**options: object) -> Watched:
        here.append(open_page(browser, **options))
        pytestconfig.stash[OPEN].append(here[-1])
        return here[-1]

    yield open_watched
    for watched in here:
        pytestconfig.stash[OPEN].remove(watched)
        watched.page.context.close()


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    LEFT_BEHIND.mkdir(parents=True, exist_ok=True)
    with running_lab(tmp_path_factory.mktemp("lab"), LEFT_BEHIND / "jupyterlab.log") as lab:
        yield lab


@pytest.fixture(scope="session")
def pictures(pytestconfig: pytest.Config) -> Path:
    """Where pictures go; tests that only take some are skipped without --screenshots."""
    if not pytestconfig.getoption("--screenshots"):
        pytest.skip("pictures are taken with --screenshots")
    LEFT_BEHIND.mkdir(parents=True, exist_ok=True)
    return LEFT_BEHIND
