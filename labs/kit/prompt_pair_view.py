"""Two prompts side by side, to choose from and to edit. All it knows comes from the model in `prompt_choice`."""

from __future__ import annotations

from typing import Any

import ipywidgets as widgets

from labs.kit.arrangements import SIDES
from labs.kit.prompt_choice import OWN_FIRST, OWN_SECOND, OWN_TEXTS, PromptChoice
from labs.kit.prompt_pair import PromptPair
from labs.kit.prompt_pair_html import pair_html

_WIDE = {"description_width": "6rem"}
_APART = "2px 2px 2px 24px"


class PromptPairBox(widgets.VBox):
    """The outermost box. What it says of itself stays the same in every version of ipywidgets."""

    def __init__(self, choice: PromptChoice, name: str, side: str) -> None:
        self._choice = choice
        self.prompt = widgets.Dropdown(
            options=choice.names, value=name, description="Prompt", style=_WIDE, layout={"width": "21rem"}
        )
        self.version = widgets.ToggleButtons(
            options=list(SIDES),
            value=side,
            description="Version",
            tooltips=["The prompt as people write it", "The same prompt, repaired"],
            style={"description_width": "4rem", "button_width": "6rem"},
            layout={"width": "21rem", "margin": _APART},
        )
        self.every_page = widgets.Checkbox(
            value=False, description="Show every page", indent=False, layout={"width": "max-content", "margin": _APART}
        )
        self.texts = tuple(
            widgets.Textarea(value=text, description=label, continuous_update=False, rows=2, style=_WIDE)
            for label, text in (("First text", OWN_FIRST), ("Second text", OWN_SECOND))
        )
        for text in self.texts:
            text.layout.width = "min(100%, 60rem)"
        self._own = widgets.VBox(self.texts)
        self._picture = widgets.HTML()
        self.pair = self._looked()
        controls = widgets.HBox([self.prompt, self.version, self.every_page])
        controls.layout.flex_flow, controls.layout.align_items = "row wrap", "center"
        super().__init__([controls, self._own, self._picture])
        self._show()
        for control in (self.prompt, self.version, *self.texts):
            control.observe(self._look, names="value")
        self.every_page.observe(self._show, names="value")

    def __repr__(self) -> str:
        return "(two prompts, token by token; the text above says the same)"

    @property
    def picture(self) -> str:
        """The HTML that is shown now."""
        return str(self._picture.value)

    def _look(self, _: Any) -> None:
        self.pair = self._looked()
        self._show()

    def _looked(self) -> PromptPair:
        if self.prompt.value == OWN_TEXTS:
            return self._choice.look_at_texts(*(text.value for text in self.texts))
        return self._choice.look(self.prompt.value, self.version.value)

    def _show(self, _: Any = None) -> None:
        is_own = self.prompt.value == OWN_TEXTS
        self.version.disabled = is_own
        self._own.layout.display = None if is_own else "none"
        self._picture.value = pair_html(self.pair, every_page=self.every_page.value)


def prompt_pair_view(choice: PromptChoice, name: str, side: str = "before") -> PromptPairBox:
    """A box for the last line of a cell, and its text twin printed. Tab, arrow keys, Space and Enter work it."""
    box = PromptPairBox(choice, name, side)
    print(box.pair.as_text())
    return box
