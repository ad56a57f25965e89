"""A notebook in JupyterLab, as a learner has it: opened, run with "Run All Cells", and used with the keyboard."""

from __future__ import annotations

from playwright.sync_api import Locator, expect

from labbook.record import Record
from tests.browser.lab import Lab
from tests.browser.watched import Watched

OPEN_TIMEOUT_MS = 60_000
RUN_TIMEOUT_MS = 240_000
ANSWER_TIMEOUT_MS = 20_000
MAX_TABS = 60

# JupyterLab shows an error as it shows what a program writes to standard error: the text tells them apart.
_ERRORS = """() => [...document.querySelectorAll(".jp-Notebook .jp-OutputArea-output")]
    .map(one => one.textContent.trim())
    .filter(text => /^(-{60}|Traceback)|Error (displaying|creating) widget/.test(text))"""
# True when every code cell has a number, or when one has failed and the rest never will.
_IS_DONE = f"""() => {{
    if (({_ERRORS})().length) return true;
    const prompts = [...document.querySelectorAll(".jp-Notebook .jp-CodeCell .jp-InputPrompt")];
    return prompts.length > 0 && prompts.every(one => /^\\[\\d+\\]:?$/.test(one.textContent.trim()));
}}"""


class OpenNotebook:
    def __init__(self, watched: Watched, lab: Lab, name: str) -> None:
        self.watched, self.page, self.name = watched, watched.page, name
        self._lab = lab
        self._ids = [cell.id for cell in lab.read_notebook(name).cells]
        self._num_records_before = len(self._all_records())
        self.page.goto(lab.notebook_url(name), timeout=OPEN_TIMEOUT_MS)
        self.cells = self.page.locator(".jp-Notebook .jp-Notebook-cell")
        expect(self.cells).to_have_count(len(self._ids), timeout=OPEN_TIMEOUT_MS)
        self.wait_for_kernel()

    def run_all(self) -> None:
        self.page.get_by_role("menuitem", name="Run", exact=True).click()
        self.page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        self.page.wait_for_function(_IS_DONE, timeout=RUN_TIMEOUT_MS)
        self.wait_for_kernel()

    def errors(self) -> list[str]:
        """What went wrong in cells and in widgets, as a reader would see it."""
        return list(self.page.evaluate(_ERRORS))

    def cell(self, cell_id: str) -> Locator:
        return self.cells.nth(self._ids.index(cell_id))

    def cell_with(self, part: Locator) -> Locator:
        return self.cells.filter(has=part)

    def records(self, experiment: str) -> list[Record]:
        """What was added to the labbook since the notebook was opened."""
        return [one for one in self._all_records()[self._num_records_before :] if one["experiment"] == experiment]

    def tab_to(self, target: Locator, start: Locator) -> None:
        """From a cell, press Tab until `target` has the focus: so that a keyboard alone gets there."""
        start.focus()
        for _ in range(MAX_TABS):
            if target.evaluate("one => one === document.activeElement"):
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(f"{MAX_TABS} times Tab did not reach {target}")

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def wait_for_kernel(self) -> None:
        self._lab.wait_for_kernel(self.name)
        idle = self.page.locator(".jp-NotebookPanel-toolbar .jp-Notebook-ExecutionIndicator[data-status='idle']")
        expect(idle).to_be_visible(timeout=OPEN_TIMEOUT_MS)

    def _all_records(self) -> list[Record]:
        return list(self._lab.labbook.records(strict=True)) if self._lab.labbook.path.is_file() else []
