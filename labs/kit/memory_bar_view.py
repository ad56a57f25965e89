"""The memory bar with sliders. All it knows comes from the model in `memory_bar`."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import ipywidgets as widgets

from labs.kit.memory_bar import MemoryBar
from labs.kit.session import Session

CONTEXTS = (2_048, 4_096, 8_192, 16_384, 32_768, 65_536, 131_072)
MOST_CONVERSATIONS = 16
BITS = (16, 8, 4)
BUDGETS = (8, 12, 16, 24, 32, 48, 80)

# Colour and pattern say the same. Words stand on plain ground, so that a pattern never runs through them.
_GROUNDS = {
    "weights": "#0072B2",
    "KV cache": "repeating-linear-gradient(45deg, #E69F00 0 8px, #fff3d6 8px 14px)",
    "free": "radial-gradient(#999 1px, #fff 1.5px) 0 0 / 8px 8px",
    "over budget": "repeating-linear-gradient(-45deg, #D55E00 0 4px, #fff 4px 8px)",
}
_BAR = "display: flex; height: 3em; border: 1px solid #333; width: 100%; max-width: 46em"
_WORDS = "background: #fff; color: #111; padding: 0 0.3em; font-size: 0.85em; white-space: nowrap"
_SEGMENT = "display: flex; align-items: center; justify-content: center; overflow: hidden; box-sizing: border-box"


class MemoryBarBox(widgets.VBox):
    """The outermost box. What it says of itself stays the same in every version of ipywidgets."""

    def __repr__(self) -> str:
        return "(four sliders and a bar; the text above says the same)"


def memory_bar_view(bar: MemoryBar, session: Session) -> MemoryBarBox:
    """Print the bar as text, and return it with its sliders for the last line of a cell.

    Tab and arrow keys are enough. Each setting that is tried goes to the labbook.
    """
    print(bar.as_text())
    picture, twin = widgets.HTML(bar_html(bar)), widgets.HTML(_text_html(bar))
    sliders = _sliders(bar)

    def on_change(_: Any) -> None:
        tried = replace(bar, **{name: slider.value for name, slider in sliders.items()})
        picture.value, twin.value = bar_html(tried), _text_html(tried)
        session.note("memory-bar", tried.as_record())

    for slider in sliders.values():
        slider.observe(on_change, names="value")
    return MemoryBarBox([*sliders.values(), picture, twin])


def bar_html(bar: MemoryBar) -> str:
    """The bar as HTML: one block for each segment, with its label and a pattern of its own."""
    whole = sum(segment.num_bytes for segment in bar.segments)
    labels = {part.name: part.label for part in bar.parts}  # what is needed, where the bar shows what fits of it
    blocks = "".join(_block(one.name, labels[one.name], one.num_bytes / whole) for one in bar.segments)
    return f'<div role="img" aria-label="{html.escape(bar.sentence)}" style="{_BAR}">{blocks}</div>'


def _block(name: str, label: str, share: float) -> str:
    edge = "; border-left: 4px double #111" if name == "over budget" else ""
    style = f"{_SEGMENT}; width: {share:.2%}; background: {_GROUNDS[name]}{edge}"
    words = f'<span style="{_WORDS}">{label}</span>' if share > 0.12 else ""
    return f'<div title="{label}" style="{style}">{words}</div>'


def _sliders(bar: MemoryBar) -> dict[str, Any]:
    """By the field of the model that each one sets."""
    return {
        "context_tokens": _choice("Context (tokens)", CONTEXTS, bar.context_tokens),
        "conversations": _whole("Conversations", bar.conversations),
        "kv_bits": _choice("KV cache (bits)", BITS, bar.kv_bits),
        "budget_gib": _choice("Budget (GiB)", BUDGETS, bar.budget_gib),
    }


def _look(description: str) -> dict[str, Any]:
    return {
        "description": description,
        "continuous_update": False,
        "style": {"description_width": "9em"},
        "layout": {"width": "34em", "max_width": "100%"},
    }


def _choice(description: str, values: Sequence[int], value: int) -> widgets.SelectionSlider:
    given = values if value in values else sorted({*values, value})
    return widgets.SelectionSlider(options=[(f"{one:,}", one) for one in given], value=value, **_look(description))


def _whole(description: str, value: int) -> widgets.IntSlider:
    return widgets.IntSlider(value=value, min=0, max=max(value, MOST_CONVERSATIONS), **_look(description))


def _text_html(bar: MemoryBar) -> str:
    text = html.escape(bar.as_text())
    return f'<pre aria-live="polite" style="white-space: pre-wrap; line-height: 1.4">{text}</pre>'
