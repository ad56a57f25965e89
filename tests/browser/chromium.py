"""The Chromium of this machine, driven by Playwright: no browser is downloaded."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

COMMANDS = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
ON_MACOS = tuple(
    f"/Applications/{name}.app/Contents/MacOS/{name}" for name in ("Chromium", "Google Chrome", "Google Chrome Canary")
)
# It runs as root in containers and asks nobody anything: no updates, no sync, no first-run pages.
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
MISSING = (
    "the browser tests need a Chromium, and none was found: install one (Debian: apt-get install chromium; Ubuntu: "
    "snap install chromium; macOS: Google Chrome), or name it: make test-browser CHROMIUM=/path/to/chromium"
)


class MissingTool(Exception):
    """Something that these tests use is not on this machine; the message says what to install."""


def executable() -> str:
    """Raises MissingTool."""
    if named := os.environ.get("CHROMIUM"):
        if found := shutil.which(named):
            return found
        raise MissingTool(f"CHROMIUM is {named!r}, and no such program is there: name one, or leave it unset")
    found = next((path for name in COMMANDS if (path := shutil.which(name))), None)
    found = found or next((path for path in ON_MACOS if Path(path).is_file()), None)
    if found is None:
        raise MissingTool(MISSING)
    return found
