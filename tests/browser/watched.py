"""A page whose console and requests are kept, so that a failing test can show them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Page, Request

OWN_HOSTS = ("127.0.0.1", "localhost", "::1")
_WITHIN = ("data", "blob", "about")


@dataclass
class Watched:
    page: Page
    console: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    @property
    def requests_elsewhere(self) -> list[str]:
        """What was asked of another host than this machine."""
        return [
            url for url in self.requests if urlsplit(url).scheme != "file" and urlsplit(url).hostname not in OWN_HOSTS
        ]

    def keep(self, folder: Path, name: str) -> None:
        """Save a picture and the console, for whoever has to find out what went wrong."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / re.sub(r"[^\w.-]+", "-", name).strip("-")
        self.page.screenshot(path=path.with_name(f"{path.name}.png"), timeout=10_000)
        said = [f"page: {self.page.url}", *self.console, *(f"asked: {url}" for url in self.requests_elsewhere)]
        path.with_name(f"{path.name}.txt").write_text("\n".join(said) + "\n", encoding="utf-8")


def open_page(browser: Browser, **options: object) -> Watched:
    """A page in a context of its own. `options` are Playwright's for a new context, such as `color_scheme`."""
    context = browser.new_context(**options)  # type: ignore[arg-type]
    watched = Watched(context.new_page())

    def on_console(message: ConsoleMessage) -> None:
        watched.console.append(f"{message.type}: {message.text}")

    def on_request(request: Request) -> None:
        if urlsplit(request.url).scheme not in _WITHIN:
            watched.requests.append(request.url)

    watched.page.on("console", on_console)
    watched.page.on("pageerror", lambda error: watched.console.append(f"uncaught: {error}"))
    watched.page.on("websocket", lambda socket: watched.requests.append(socket.url))
    watched.page.on("request", on_request)
    return watched
