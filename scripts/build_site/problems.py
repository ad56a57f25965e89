"""What keeps a site from being built: found in all notebooks first, then told together."""

from __future__ import annotations

from collections.abc import Sequence


class SiteError(Exception):
    """One thing that cannot be shown; the message says what it is and what would be right."""


class BrokenSite(Exception):
    """No site was written, for these reasons: one sentence each, with its file and cell."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)
