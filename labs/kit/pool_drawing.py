"""A snapshot of the page pool as HTML: a card for each page, the page tables, and who is evicted next.

All that colour says stands there in words, too. It reads in light and dark, without a script and without any file.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from labs.kit.pool_stepper import PageState, Snapshot

MARKS = {"active": "●", "cached": "◐", "free": "○"}  # full, half, empty circle
MEANINGS = {
    "active": "in a page table",
    "cached": "held by nobody, and can be found",
    "free": "its content means nothing",
}
_ORDINALS = {1: "next", 2: "2nd", 3: "3rd"}
_OWNER_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")

_STYLE = """<style>
.page-pool { --ink: #1b1f24; --soft: #4d5761; --line: #8c959f; --slot: #ffffff; --active: #dcebfb; --cached: #fbeed3;
  --free: transparent; --changed: #0b57a4; color: var(--ink); font: 13px/1.4 system-ui, sans-serif;
  max-width: 62rem; padding: 2px; }
[data-jp-theme-light="false"] .page-pool, .vscode-dark .page-pool { --ink: #e8edf2; --soft: #b4bec9; --line: #77818c;
  --slot: #0f151c; --active: #17395e; --cached: #4b3611; --changed: #8cc2ff; }
.page-pool p { margin: 0 0 .6em; }
.page-pool .said { font-size: 15px; min-height: 1.5em; }
.page-pool ul { list-style: none; margin: 0 0 .8em; padding: 0; }
.page-pool .pages { display: grid; grid-template-columns: repeat(auto-fill, minmax(9.4rem, 1fr)); gap: .55rem; }
.page-pool .page { border: 1.5px solid var(--line); border-radius: 7px; margin: 0; padding: .4rem .5rem .45rem; }
.page-pool .active { background: var(--active); }
.page-pool .cached { background: var(--cached); border-style: dashed; }
.page-pool .free { background: var(--free); border-style: dotted; }
.page-pool .changed { outline: 2.5px solid var(--changed); outline-offset: -1px; }
.page-pool .head, .page-pool .foot { display: flex; justify-content: space-between; gap: .4rem; }
.page-pool .number { font-weight: 650; }
.page-pool .slots { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 3px; margin: .35rem 0; }
.page-pool .slot { background: var(--slot); border-radius: 3px; font: 12px/1.5 ui-monospace, monospace; height: 1.5em;
  overflow: hidden; padding: 0 .3em; text-overflow: ellipsis; white-space: nowrap; }
.page-pool .empty { background: none; border: 1px dotted var(--line); box-sizing: border-box; }
.page-pool .foot { color: var(--soft); font-size: 12px; min-height: 1.7em; white-space: nowrap; }
.page-pool .owner { border: 2px solid; border-radius: 9px; color: var(--ink); display: inline-block; font-weight: 650;
  line-height: 1.2; padding: 0 .4em; }
.page-pool .line { align-items: baseline; display: flex; flex-wrap: wrap; gap: .35rem; margin: 0 0 .35em; }
.page-pool .line .what { min-width: 11em; color: var(--soft); }
.page-pool .between { color: var(--soft); font-size: 12px; }
.page-pool .chip { border: 1px solid var(--line); border-radius: 4px; padding: 0 .45em; }
.page-pool .legend { color: var(--soft); font-size: 12px; }
</style>"""


def pool_html(snapshot: Snapshot) -> str:
    """The whole picture, with its styles."""
    cards = "".join(_card(page, snapshot.page_size) for page in snapshot.pages)
    tables = "".join(
        _line("page table of", _owner(name), _chips(table, "→")) for name, table in snapshot.page_tables.items()
    )
    meanings = [f"{MARKS[state]} {state}: {meaning}" for state, meaning in MEANINGS.items()]
    legend = " · ".join([*meanings, "first page, after page n: how it is found", "thick frame: changed in this step"])
    return (
        f'{_STYLE}<div class="page-pool" role="group" aria-label="Page pool after step {snapshot.step}">'
        f'<p class="said" aria-live="polite"><b>Step {snapshot.step}.</b> {escape(snapshot.said)}</p>'
        f'<ul class="pages" aria-label="Pages">{cards}</ul>'
        f"{tables}{_queue(snapshot)}"
        f'<p class="legend">{legend}</p></div>'
    )


def _card(page: PageState, page_size: int) -> str:
    view = page.view
    classes = f"page {view.state} changed" if page.is_changed else f"page {view.state}"
    slots = "".join(_slot(page.tokens[place : place + 1]) for place in range(page_size))
    left, right = _foot(page)
    return (
        f'<li class="{classes}">'
        f'<div class="head"><span class="number">page {view.page_id}</span>'
        f"<span>{MARKS[view.state]} {view.state}</span></div>"
        f'<div class="slots">{slots}</div>'
        f'<div class="foot"><span>{left}</span><span>{right}</span></div>'
        f'<div class="foot"><span>{_behind(page)}</span><span>{"changed" if page.is_changed else ""}</span></div></li>'
    )


def _slot(token: tuple[str, ...]) -> str:
    """One token, or an empty place."""
    if not token:
        return '<span class="slot empty" aria-label="empty"></span>'
    shown = token[0].strip() or repr(token[0])[1:-1].replace(" ", "␣")
    return f'<span class="slot" title="{escape(repr(token[0]))}">{escape(shown)}</span>'


def _foot(page: PageState) -> tuple[str, str]:
    view = page.view
    if view.owners:
        return f"held by {' '.join(map(_owner, view.owners))}", f"{view.references} ref{'s' * (view.references != 1)}"
    what = {"cached": "evicted", "free": "given out"}[view.state]
    return f"{view.references} refs", f"{what} {_ordinal(page.turn)}" if page.turn else ""


def _behind(page: PageState) -> str:
    """Where the page hangs in the prefix index."""
    if not page.view.indexed:
        return "" if page.view.state == "free" else "not findable"
    parent = page.view.parent_page_id
    return "first page" if parent is None else f"after page {parent}"


def _queue(snapshot: Snapshot) -> str:
    cached = snapshot.in_state("cached")
    if not cached:
        return _line("evicted next", "", "nothing is cached")
    if any(page.turn is None for page in cached):
        return _line("evicted next", "", "this policy does not tell its order")
    return _line("evicted next, in order", "", _chips((page.view.page_id for page in cached), "then"))


def _line(what: str, owner: str, content: str) -> str:
    return f'<p class="line"><span class="what">{what} {owner}</span> {content}</p>'


def _chips(page_ids: Iterable[int], between: str) -> str:
    joint = f' <span class="between">{between}</span> '
    return joint.join(f'<span class="chip">{page_id}</span>' for page_id in page_ids)


def _owner(name: str) -> str:
    colour = _OWNER_COLOURS[sum(name.encode()) % len(_OWNER_COLOURS)]
    return f'<span class="owner" style="border-color: {colour}">{escape(name)}</span>'


def _ordinal(number: int) -> str:
    return _ORDINALS.get(number, f"{number}th")
