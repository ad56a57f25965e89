"""What is wrong with the way a double was asked for."""

from __future__ import annotations


class DoubleError(ValueError):
    """A setting that cannot be used; the message names it, its value, and what would be right."""
