"""Cached tokens of a prompt before and after its repair, one group of two bars for each prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from labbook.figures import COLOURS, HATCHES, DrawnFigure, draw, finished

Counts = tuple[int, int]
"""(cached tokens, prompt tokens)."""


def before_after(counts: Mapping[str, Sequence[Counts]], *, caption: str = "") -> DrawnFigure:
    """Horizontal bars, from the top in the order given: before above after, cached before computed."""
    for name, sides in counts.items():
        for cached, prompt in sides:
            if not 0 <= cached <= prompt:
                raise ValueError(f"{name!r} has {cached} cached of {prompt} prompt tokens: give 0 to all of them")
    caption = caption or "n = 1 second request for each bar; counts do not depend on the device"
    figure, axes = draw("The second request, before and after the repair", "prompt tokens", "", caption)
    places: list[float] = []
    labels: list[str] = []
    for group, (name, sides) in enumerate(counts.items()):
        for row, (side, (cached, prompt)) in enumerate(zip(("before", "after"), sides, strict=True)):
            place = group * 2.6 + row
            for part, (width, left) in enumerate(((cached, 0), (prompt - cached, cached))):
                axes.barh(
                    place,
                    width,
                    left=left,
                    height=0.85,
                    label=("cached", "computed")[part] if not places else None,
                    color=COLOURS[part],
                    hatch=HATCHES[part],
                    edgecolor="black",
                    linewidth=0.8,
                )
            axes.annotate(f"{cached} of {prompt}", (prompt, place), (4, 0), textcoords="offset points", va="center")
            places.append(place)
            labels.append(f"{name}, before" if row == 0 else side)
    axes.set_yticks(places, labels, fontsize=9)
    axes.invert_yaxis()
    axes.grid(visible=False)
    axes.margins(x=0.14)
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    told = "; ".join(
        f"{name} {before[0]} of {before[1]}, then {after[0]} of {after[1]}" for name, (before, after) in counts.items()
    )
    return finished(figure, f"Cached tokens of the second request before and after the repair: {told}.", caption)
