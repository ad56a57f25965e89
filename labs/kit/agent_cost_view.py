"""What a cache saves an agent, as four sliders. All it knows comes from the model in `agent_cost`."""

from __future__ import annotations

from typing import Any

import ipywidgets as widgets

from labs.kit.agent_cost import AgentCost
from labs.kit.session import Session

_SLIDERS = {  # field: (words, smallest, largest, step)
    "num_steps": ("Steps", 2, 100, 1),
    "system_tokens": ("Tokens at first", 100, 10_000, 100),
    "step_tokens": ("Tokens per step", 20, 2_000, 20),
    "tokens_per_s": ("Prefill tokens/s", 100, 20_000, 100),
}


class CostBox(widgets.VBox):
    """The outermost box. What it says of itself stays the same in every version of ipywidgets."""

    def __repr__(self) -> str:
        return "(four sliders; the text above says the same)"


def agent_cost_view(cost: AgentCost, session: Session) -> CostBox:
    """Print the result as text, and return sliders for the last line of a cell.

    Arrow keys move a slider; when it is let go, the result is shown and noted in the labbook.
    """
    print(cost.as_text())
    sliders = {
        name: widgets.IntSlider(
            value=getattr(cost, name),
            min=least,
            max=most,
            step=step,
            description=words,
            continuous_update=False,
            style={"description_width": "9em"},
        )
        for name, (words, least, most, step) in _SLIDERS.items()
    }
    shown = widgets.HTML(_paragraph(cost))

    def on_change(_: Any) -> None:
        chosen = AgentCost(**{name: slider.value for name, slider in sliders.items()}, page_tokens=cost.page_tokens)
        session.note("calculator", {"label": "what a cache saves an agent", **chosen.as_dict()})
        shown.value = _paragraph(chosen)

    for slider in sliders.values():
        slider.observe(on_change, names="value")
    return CostBox([*sliders.values(), shown])


def _paragraph(cost: AgentCost) -> str:
    lines = "<br>".join(cost.as_text().splitlines())
    return f'<p aria-live="polite">{lines}</p>'
