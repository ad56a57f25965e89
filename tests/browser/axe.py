"""axe-core, which finds what keeps people from using a page. It comes from npm, at the version in package-lock.json."""

from __future__ import annotations

import json
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from labs.kit.parameters import checkout
from tests.browser.chromium import MissingTool

HERE = Path(__file__).parent
PACKAGES = checkout() / "build" / "browser" / "npm"
GRAVE = ("serious", "critical")
MISSING = (
    "the browser tests take axe-core from npm, and there is no npm: install it with Node.js (Debian and Ubuntu: "
    "apt-get install npm; macOS: brew install node)"
)
NPM_TIMEOUT_S = 120


def fetch() -> None:
    """Have axe-core in build/browser/npm; needs a network only when the version has changed. Raises MissingTool."""
    wanted = json.loads((HERE / "package-lock.json").read_text(encoding="utf-8"))["packages"]["node_modules/axe-core"]
    installed = PACKAGES / "node_modules" / "axe-core"
    if (installed / "axe.min.js").is_file():
        there = json.loads((installed / "package.json").read_text(encoding="utf-8"))
        if there["version"] == wanted["version"]:
            return
    npm = shutil.which("npm")
    if npm is None:
        raise MissingTool(MISSING)
    PACKAGES.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, PACKAGES / name)
    command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier"]
    try:
        done = subprocess.run(
            command, cwd=PACKAGES, capture_output=True, text=True, encoding="utf-8", timeout=NPM_TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        raise MissingTool(
            f"npm did not answer in {NPM_TIMEOUT_S} s: check the network and the proxy settings"
        ) from None
    if done.returncode:
        raise MissingTool(f"npm could not fetch axe-core: {done.stderr.strip()[-500:]}")


@cache
def _source() -> str:
    return (PACKAGES / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


def grave_violations(page: Page) -> list[str]:
    """One line for each violation of level serious or critical: the rule, what it asks, and where."""
    page.evaluate(_source())
    result: dict[str, Any] = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{violation['id']} ({violation['impact']}): {violation['help']}: {node['target']} {node['html'][:160]}"
        for violation in result["violations"]
        if violation["impact"] in GRAVE
        for node in violation["nodes"][:3]
    ]
