"""What the other tests lean on: they would notice an error."""

from __future__ import annotations

import nbformat

from tests.browser.conftest import OpenPage
from tests.browser.lab import Lab
from tests.browser.open_notebook import OpenNotebook


def test_an_error_in_a_cell_is_noticed_and_ends_the_run(opened: OpenPage, lab: Lab) -> None:
    first = lab.read_notebook("00_first_measurement")
    cells = [
        nbformat.v4.new_code_cell("import sys; print('fine', file=sys.stderr)"),
        nbformat.v4.new_code_cell("1 / 0"),
    ]
    failing = nbformat.v4.new_notebook(cells=[*cells, nbformat.v4.new_code_cell("2")], metadata=first.metadata)
    nbformat.write(failing, lab.folder / "notebooks" / "failing.ipynb")
    notebook = OpenNotebook(opened(), lab, "failing")
    notebook.run_all()
    (error,) = notebook.errors()
    assert "ZeroDivisionError: division by zero" in error
    lab.stop_kernels()
