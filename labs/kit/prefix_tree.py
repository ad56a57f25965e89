"""The prefix index of an engine as a small tree in text: every page behind the page that it is chained to."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from minivllm.cache.prefix_index import ChainedPrefixIndex

Decode = Callable[[Sequence[int]], str]

_MAX_CHARS = 44


def prefix_tree(index: ChainedPrefixIndex, decode: Decode, found: Collection[int] = ()) -> str:
    """A line for each page, below the page that its key chains; those in `found`, a lookup's answer, are marked.

    A page whose key follows from no page of the index stands at the end: no lookup can reach it.
    """
    children: dict[int | None, list[int]] = {None: []}
    stranded = []
    for page_id in index.page_ids():
        parent = index.parent_of(page_id)
        if _follows(index, page_id):
            children.setdefault(parent, []).append(page_id)
        else:
            stranded.append(page_id)

    def line(page_id: int) -> str:
        return f"page {page_id}: {_one_line(decode(index.page(page_id).token_ids))}"

    def branches(parent: int | None, indent: str) -> list[str]:
        lines, below = [], children.get(parent, [])
        for page_id in below:
            joint, further = ("└─ ", "   ") if page_id == below[-1] else ("├─ ", "│  ")
            lines.append(indent + joint + line(page_id) + ("   <- found" if page_id in found else ""))
            lines += branches(page_id, indent + further)
        return lines

    lines = ["start", *branches(None, "")]
    for page_id in stranded:
        lines += [f"{line(page_id)}   (stranded: no lookup gets here)", *branches(page_id, "")]
    return "\n".join(lines)


def _follows(index: ChainedPrefixIndex, page_id: int) -> bool:
    """Whether the page's key follows from its parent's, as that stands in the index now."""
    page = index.page(page_id)
    if page.parent_page_id is None:
        return index.page_key(index.root_key(page.salt), page.token_ids) == page.key
    if page.parent_page_id not in index:
        return False
    return index.page_key(index.page(page.parent_page_id).key, page.token_ids) == page.key


def _one_line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _MAX_CHARS else f"{text[: _MAX_CHARS - 1]}…"
