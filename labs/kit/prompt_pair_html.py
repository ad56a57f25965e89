"""A pair of prompts as a table: one row for each page, both prompts side by side, tokens as chips.

No mark is a colour alone: shared tokens are underlined, lost ones are dotted, the first difference has a frame and a
triangle, a page has its number, a bar and a word. Colours are JupyterLab's own variables, so they fit light and dark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from labs.kit.prompt_pair import MEANINGS, Chip, PromptPair

_FOLD_FROM = 2
"""So many pages in a row that look the same become one line."""

STYLE = """<style>
.lkp { line-height: 1.5; font-size: 13px; color: var(--jp-content-font-color1, #212121); max-width: 72rem }
.lkp p { margin: .2rem 0 }
.lkp-verdict { font-size: 16px; font-weight: 600 }
.lkp-scroll { max-height: 34rem; overflow: auto; margin: .6rem 0; border-radius: 6px;
  border: 1px solid var(--jp-border-color1, #bdbdbd) }
.lkp-scroll:focus-visible { outline: 2px solid var(--jp-brand-color1, #1976d2); outline-offset: 1px }
.lkp table { border-collapse: collapse; width: 100%; table-layout: fixed }
.lkp th, .lkp td { text-align: left; vertical-align: top; padding: 5px 8px; font-weight: 400 }
.lkp thead th { position: sticky; top: 0; z-index: 1; font-weight: 600;
  background: var(--jp-layout-color2, #eee); border-bottom: 1px solid var(--jp-border-color1, #bdbdbd) }
.lkp thead th:first-child { width: 6.4rem }
.lkp tbody tr + tr > * { border-top: 1px solid var(--jp-border-color2, #e0e0e0) }
.lkp td + td { border-left: 1px solid var(--jp-border-color2, #e0e0e0) }
.lkp tbody th { border-right: 5px solid var(--jp-success-color1, #388e3c); white-space: nowrap }
.lkp tbody tr.lkp-computed th { border-right: 5px double var(--jp-content-font-color2, #616161) }
.lkp-number { font-weight: 700; font-size: 15px; margin-right: .35em }
.lkp-fold td { font-style: italic; background: var(--jp-layout-color2, #eee) }
.lkp-chip { display: inline-block; white-space: pre; font: 12px/1.5 var(--jp-code-font-family, monospace);
  padding: 0 3px; margin: 1px 3px 2px 0; border-radius: 3px 3px 0 0; border-bottom: 3px solid transparent;
  background: color-mix(in srgb, var(--jp-layout-color3, #bdbdbd) 28%, transparent) }
.lkp-shared { border-bottom-color: var(--jp-success-color1, #388e3c);
  background: color-mix(in srgb, var(--jp-success-color1, #388e3c) 16%, transparent) }
.lkp-lost { border-bottom: 3px dotted var(--jp-warn-color0, #e65100);
  background: color-mix(in srgb, var(--jp-warn-color0, #e65100) 10%, transparent) }
.lkp-parting { border: 2px solid var(--jp-error-color1, #d32f2f); border-radius: 3px; font-weight: 700; padding: 0 4px;
  background: var(--jp-layout-color0, #fff) }
.lkp-parting::before { content: "\\25B6"; font-size: 9px; margin-right: 3px; color: var(--jp-error-color1, #d32f2f) }
.lkp-legend { list-style: none; display: flex; flex-wrap: wrap; gap: .1rem 1.2rem; margin: .3rem 0 0; padding: 0 }
.lkp-hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%) }
.lkp details pre { overflow-x: auto; line-height: 1.3; font-size: 12px; color: inherit; background: transparent }
</style>"""


def pair_html(pair: PromptPair, *, every_page: bool = False) -> str:
    """The whole picture, with its text twin folded below it. `every_page` folds no pages."""
    told = pair.explanation
    return "".join(
        (
            f'{STYLE}<div class="lkp"><div role="status" aria-live="polite">',
            f'<p class="lkp-verdict">{escape(pair.verdict)}</p><p>{escape(pair.reason)}</p>',
            f"<p>{escape(f'Do: {told.fix}')}</p>" if told.is_alarm else "",
            f"</div>{_legend()}{_table(pair, every_page)}",
            f"<details><summary>The same as text</summary><pre>{escape(pair.as_text())}</pre></details></div>",
        )
    )


def _legend() -> str:
    samples = (
        f'<li><span class="lkp-chip lkp-{mark}" aria-hidden="true">token</span> {meaning}</li>'
        for mark, meaning in MEANINGS.items()
    )
    return f'<ul class="lkp-legend" aria-label="How tokens are marked">{"".join(samples)}</ul>'


def _table(pair: PromptPair, every_page: bool) -> str:
    unit = pair.explanation.unit
    caption = f"{pair.title}: each row is a page of {pair.page_tokens} {unit}s"
    sides = ("Page", f"First request, {len(pair.first)} {unit}s", f"Second request, {len(pair.second)} {unit}s")
    heads = "".join(f'<th scope="col">{side}</th>' for side in sides)
    return (
        '<div class="lkp-scroll" role="region" tabindex="0" aria-label="Tokens of both prompts, page by page">'
        f'<table><caption class="lkp-hidden">{escape(caption)}</caption><thead><tr>{heads}</tr></thead>'
        f"<tbody>{''.join(_rows(pair, every_page))}</tbody></table></div>"
    )


def _rows(pair: PromptPair, every_page: bool) -> Iterator[str]:
    for pages in _groups(pair, every_page):
        is_restored = pages[0] < pair.num_restored_pages
        state = "restored" if is_restored else "computed"
        head = f'<tr class="lkp-{state}{" lkp-fold" if len(pages) > 1 else ""}"><th scope="row">'
        sign = f"{'✓' if is_restored else '✗'} {state}"
        if len(pages) > 1:
            yield f'{head}<span class="lkp-number">{pages[0]}–{pages[-1]}</span></th>'
            yield f'<td colspan="2">{sign}: {escape(_folded(pair, pages))}</td></tr>'
            continue
        first, second = pair.page(pages[0])
        yield f'{head}<span class="lkp-number">{pages[0]}</span><br>{sign}</th>'
        yield f"<td>{_chips(first)}</td><td>{_chips(second)}</td></tr>"


def _groups(pair: PromptPair, every_page: bool) -> Iterator[Sequence[int]]:
    """Single pages, and runs of pages that say nothing new: not at an end, and not beside the first difference."""
    position = pair.explanation.shared_tokens // pair.page_tokens
    shown = {0, pair.num_pages - 1, position - 1, position, position + 1}
    waiting: list[int] = []
    for number in range(pair.num_pages):
        if not every_page and number not in shown:
            waiting.append(number)
            continue
        yield from _flushed(waiting)
        waiting = []
        yield [number]
    yield from _flushed(waiting)


def _flushed(waiting: list[int]) -> Iterator[Sequence[int]]:
    if len(waiting) >= _FOLD_FROM:
        yield waiting
    else:
        yield from ([number] for number in waiting)


def _folded(pair: PromptPair, pages: Sequence[int]) -> str:
    chips = [chip for number in pages for chip in pair.page(number)[1]]
    lost = sum(chip.mark == "lost" for chip in chips)
    told = f"{len(pages)} pages more, {len(chips)} {pair.explanation.unit}s"
    return f"{told}, {lost} of them equal and lost" if lost else told


def _chips(chips: Sequence[Chip]) -> str:
    return "".join(
        f'<span class="lkp-chip lkp-{chip.mark}">{_said_first(chip)}{escape(chip.text)}</span>' for chip in chips
    )


def _said_first(chip: Chip) -> str:
    return '<span class="lkp-hidden">here they part: </span>' if chip.mark == "parting" else ""
