"""A timeline as one SVG drawing, for light and dark pages: pattern, letter and word repeat what the colour says."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from labs.kit.timeline import DECODE, LETTERS, PREFILL, UNITS, WAITING, Row, Segment, Timeline, Unit

WIDTH, LABEL_WIDTH, TOKENS_WIDTH = 860, 92, 138
TOP, ROW_HEIGHT, BAR_HEIGHT, LEGEND_HEIGHT = 56, 42, 28, 54
_CHART_WIDTH = WIDTH - LABEL_WIDTH - TOKENS_WIDTH
_ROOM_FOR_A_LETTER, _ROOM_FOR_A_WORD = 15, 84
_MOST_TICKS = 12
_TICK_STEPS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500)
_DIAMOND = 10

# The variables are JupyterLab's, so the chart follows its theme; elsewhere it takes the colours of the page.
STYLE = """
.kit-timeline { max-width: 100%; height: auto; margin-top: 10px; }
.kit-timeline { font-family: var(--jp-ui-font-family, system-ui, sans-serif); }
.kit-timeline text { fill: var(--jp-ui-font-color1, CanvasText); font-size: 13px; }
.kit-timeline .title { font-size: 15px; font-weight: 600; }
.kit-timeline .small { font-size: 12px; }
.kit-timeline .number { font-variant-numeric: tabular-nums; }
.kit-timeline .lane { fill: var(--jp-ui-font-color1, CanvasText); opacity: 0.05; }
.kit-timeline .grid { stroke: var(--jp-ui-font-color1, CanvasText); stroke-width: 1; opacity: 0.16; }
.kit-timeline .hatch { stroke: var(--jp-ui-font-color1, CanvasText); stroke-width: 1.2; opacity: 0.4; }
.kit-timeline .waiting { stroke: var(--jp-ui-font-color1, CanvasText); stroke-opacity: 0.55; stroke-dasharray: 4 3; }
.kit-timeline .prefill { fill: #0072b2; stroke: #004d78; }
.kit-timeline .decode { stroke: #00553d; }
.kit-timeline .inside { fill: #ffffff; font-weight: 600; }
.kit-timeline .plate { fill: var(--jp-layout-color0, Canvas); opacity: 0.85; }
.kit-timeline .diamond { fill: #e69f00; stroke: #1a1a1a; stroke-width: 1; }
.kit-timeline .mark { fill: #1a1a1a; font-size: 10px; font-weight: 700; }
"""
_PATTERNS = """
<pattern id="kit-hatch" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
<line class="hatch" x1="0" y1="0" x2="0" y2="7"/></pattern>
<pattern id="kit-dots" width="8" height="8" patternUnits="userSpaceOnUse"><rect width="8" height="8" fill="#00734f"/>
<circle cx="2" cy="2" r="1.1" fill="#ffffff" opacity="0.45"/>
<circle cx="6" cy="6" r="1.1" fill="#ffffff" opacity="0.45"/></pattern>
"""
_FILLS = {WAITING: 'fill="url(#kit-hatch)"', PREFILL: "", DECODE: 'fill="url(#kit-dots)"'}


def timeline_svg(timeline: Timeline, unit: Unit, longest: float) -> str:
    """`longest` is where the axis ends, in `unit`: the same for all policies, so that their lengths compare."""
    height = TOP + ROW_HEIGHT * len(timeline.rows) + LEGEND_HEIGHT
    title = f"{timeline.policy}, in {UNITS[unit]}"
    told = " ".join([f"{title}.", *timeline.sentences(unit)])
    parts = [
        f'<svg class="kit-timeline" role="img" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        f'xmlns="http://www.w3.org/2000/svg" aria-label="{escape(told)}">',
        f"<style>{STYLE}</style><defs>{_PATTERNS}</defs>",
        *_axis(title, unit, longest, TOP + ROW_HEIGHT * len(timeline.rows)),
    ]
    for number, row in enumerate(timeline.rows):
        parts += _row(timeline, row, unit, longest, TOP + ROW_HEIGHT * number)
    parts += [*_legend(height - LEGEND_HEIGHT + 24), "</svg>"]
    return "".join(parts)


def ticks(longest: float, unit: Unit) -> list[float]:
    """At most twelve places on the axis, at round numbers; whole ones when steps are counted."""
    steps = [step for step in _TICK_STEPS if step >= 1 or unit == "seconds"]
    step = next((step for step in steps if longest / step <= _MOST_TICKS), steps[-1])
    return [number * step for number in range(int(longest / step + 1e-9) + 1)]


def _x(place: float, longest: float) -> float:
    return LABEL_WIDTH + _CHART_WIDTH * place / longest


def _axis(title: str, unit: Unit, longest: float, bottom: int) -> Iterator[str]:
    yield f'<text class="title" x="0" y="16">{escape(title)}</text>'
    end = WIDTH - TOKENS_WIDTH + 14
    yield f'<text class="small" x="{end}" y="{TOP - 24}">tokens restored</text>'
    yield f'<text class="small" x="{end}" y="{TOP - 9}">+ computed</text>'
    for place in ticks(longest, unit):
        x = _x(place, longest)
        yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 4}" y2="{bottom}"/>'
        yield f'<text class="small number" x="{x:.1f}" y="{TOP - 10}" text-anchor="middle">{place:g}</text>'


def _row(timeline: Timeline, row: Row, unit: Unit, longest: float, top: int) -> Iterator[str]:
    middle = top + ROW_HEIGHT / 2
    yield f'<text x="0" y="{middle + 4.5}">{escape(row.name)}</text>'
    yield (
        f'<rect class="lane" x="{LABEL_WIDTH}" y="{middle - BAR_HEIGHT / 2}" '
        f'width="{_CHART_WIDTH}" height="{BAR_HEIGHT}" rx="5"/>'
    )
    for segment in row.segments:
        yield from _bar(timeline, row, segment, unit, longest, middle)
    if row.released_after is not None:
        yield _diamond(_x(timeline.end_of(row.released_after, unit), longest), middle)
    yield (
        f'<text class="small number" x="{WIDTH - TOKENS_WIDTH + 14}" y="{middle + 4.5}">'
        f"{row.restored_tokens} + {row.computed_tokens}</text>"
    )


def _bar(timeline: Timeline, row: Row, segment: Segment, unit: Unit, longest: float, middle: float) -> Iterator[str]:
    start, end = (_x(place, longest) for place in timeline.span(segment, unit))
    told = f"{row.name}: {segment.state} {timeline.told_span(segment, unit)}"
    yield (
        f'<rect class="{segment.state}" {_FILLS[segment.state]} x="{start + 0.5:.1f}" y="{middle - BAR_HEIGHT / 2}" '
        f'width="{max(end - start - 1, 0.5):.1f}" height="{BAR_HEIGHT}" rx="5"><title>{escape(told)}</title></rect>'
    )
    if end - start < _ROOM_FOR_A_LETTER:
        return
    letter, room = LETTERS[segment.state], end - start
    text = f"{letter} {segment.state}" if room >= _ROOM_FOR_A_WORD else letter
    x = (start + end) / 2
    if segment.state == WAITING:  # on hatching, letters need a ground of their own
        half = 4.2 * len(text)
        yield f'<rect class="plate" x="{x - half:.1f}" y="{middle - 9}" width="{2 * half:.1f}" height="18" rx="4"/>'
    inside = "" if segment.state == WAITING else ' class="inside"'
    yield f'<text{inside} x="{x:.1f}" y="{middle + 4.5}" text-anchor="middle">{text}</text>'


def _diamond(x: float, middle: float) -> str:
    size = _DIAMOND
    points = f"{x:.1f},{middle - size} {x + size:.1f},{middle} {x:.1f},{middle + size} {x - size:.1f},{middle}"
    return (
        f'<polygon class="diamond" points="{points}"><title>released</title></polygon>'
        f'<text class="mark" x="{x:.1f}" y="{middle + 3.6}" text-anchor="middle">R</text>'
    )


def _legend(middle: float) -> Iterator[str]:
    x = float(LABEL_WIDTH)
    for state, told in ((WAITING, "waiting"), (PREFILL, "prefill: computes the prompt"), (DECODE, "decode")):
        yield f'<rect class="{state}" {_FILLS[state]} x="{x}" y="{middle - 9}" width="26" height="18" rx="4"/>'
        if state == WAITING:
            yield f'<rect class="plate" x="{x + 7}" y="{middle - 7}" width="13" height="14" rx="3"/>'
        inside = "" if state == WAITING else ' class="inside"'
        yield f'<text{inside} x="{x + 13}" y="{middle + 4.5}" text-anchor="middle">{LETTERS[state]}</text>'
        yield f'<text class="small" x="{x + 34}" y="{middle + 4.5}">{told}</text>'
        x += 62 + 6.6 * len(told)
    yield _diamond(x + 10, middle)
    yield f'<text class="small" x="{x + 28}" y="{middle + 4.5}">released by its flight</text>'
