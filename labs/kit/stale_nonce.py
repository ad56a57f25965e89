"""A mistake on purpose: a measurement whose cold prompt begins as an earlier one did."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from labbook import prompts


@contextmanager
def stale_nonce(nonce: str) -> Iterator[None]:
    """Inside, the instrument begins its cold prompts with `nonce`, as a script does that takes the same text every day.

    All its other prompts begin afresh, so the control still shows what a changed prefix reuses.
    """
    fresh = prompts.fresh_nonces

    def first_is_stale(count: int) -> list[str]:
        others = [word for word in fresh(len(prompts.FIRST_LETTERS)) if word[0] != nonce[0]]
        return [nonce, *others][:count]

    with patch.object(prompts, "fresh_nonces", first_is_stale):
        yield
