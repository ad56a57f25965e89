"""What can go wrong, told to a person: a message says what happened, with what value, and what to do."""

from __future__ import annotations


class LabbookError(Exception):
    """Base of every error that this package raises on purpose; its text is meant to be read."""


class UsageError(LabbookError):
    """The request itself makes no sense (exit status 2)."""


class ServerError(LabbookError):
    """The server could not be measured (exit status 1)."""
