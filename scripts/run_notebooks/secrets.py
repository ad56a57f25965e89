"""What must stand in no record and in no executed notebook: passwords in URLs, and keys in the environment."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from urllib.parse import unquote

_SECRET_NAME = re.compile(r"auth|cookie|key|token|secret|passw|credential", re.IGNORECASE)
_USER_INFO = re.compile(r"://([^/\s@:]*):([^/\s@]+)@")
# A placeholder such as "none" or "EMPTY" is a word that notebooks may print, and no key.
_SHORTEST_SECRET = 8


def secrets(environment: Mapping[str, str], base_url: str = "") -> list[str]:
    """The secrets of a run, longest first."""
    found = {value.strip() for name, value in environment.items() if _SECRET_NAME.search(name)}
    for text in (base_url, *environment.values()):
        found |= set(_of_url(text))
    return sorted((word for word in found if len(word) >= _SHORTEST_SECRET), key=len, reverse=True)


def _of_url(text: str) -> Iterator[str]:
    for user, password in _USER_INFO.findall(text):
        pair = f"{unquote(user)}:{unquote(password)}"
        yield from (f"{user}:{password}@", f"{pair}@", password, unquote(password))
        yield base64.b64encode(pair.encode()).decode()  # as in the header of a request
