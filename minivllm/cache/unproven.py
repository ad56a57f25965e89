"""Pages that can be found and are not computed yet. No tensors."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UnprovenPage:
    page_id: int
    parent_page_id: int | None
    request_id: str


class UnprovenPages:
    """What was published when it was scheduled, within the step that computes it, parents before their children.

    If the step computes them, they are proven and forgotten here. If a request of it fails, its pages are withdrawn,
    and with them every page that others have chained behind:

        A computes [ a | b ]    published ahead; C attaches a, b and computes [ c ] behind them
        A fails                 c, b, a are withdrawn, in this order: never a child without its parent
    """

    def __init__(self) -> None:
        self._pages: dict[int, UnprovenPage] = {}

    def __contains__(self, page_id: object) -> bool:
        return page_id in self._pages

    def __len__(self) -> int:
        return len(self._pages)

    def add(self, page: UnprovenPage) -> None:
        self._pages[page.page_id] = page

    def prove(self, request_id: str) -> int:
        """The pages of this request are computed; returns how many they were."""
        proven = [page_id for page_id, page in self._pages.items() if page.request_id == request_id]
        for page_id in proven:
            del self._pages[page_id]
        return len(proven)

    def withdraw(self, request_id: str) -> list[int]:
        """The pages of this request and all behind them, children before their parents; forgotten here."""
        withdrawn: dict[int, None] = {}
        for page_id, page in self._pages.items():
            if page.request_id == request_id or page.parent_page_id in withdrawn:
                withdrawn[page_id] = None
        for page_id in withdrawn:
            del self._pages[page_id]
        return list(reversed(withdrawn))
