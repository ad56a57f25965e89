"""What the tap never writes: keys, tokens, cookies. Headers are written by an exact list of harmless names."""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import re
from urllib.parse import unquote_plus

from labbook.tap.exchange import Headers

MASK = "***"
_HARMLESS_HEADERS = frozenset(
    {"accept", "accept-encoding", "content-encoding", "content-length", "content-type", "transfer-encoding"}
)
_HARMLESS_QUERY = frozenset({"action"})  # of POST /slots/{id}
_SECRET_NAME = re.compile(r"auth|cookie|key|token|secret|password|credential|signature", re.IGNORECASE)
_SECRET_FIELD = re.compile(
    r'("(?:api[_-]?key|authorization|access[_-]?token|refresh[_-]?token)"\s*:\s*")((?:[^"\\]|\\.)+)(")', re.IGNORECASE
)
# A placeholder such as "none" or "EMPTY" is a word that prompts may hold, and no key.
_SHORTEST_SECRET = 8


def harmless(headers: Headers) -> dict[str, str]:
    return {key.lower(): value for key, value in headers if key.lower() in _HARMLESS_HEADERS}


def shown_target(target: str) -> str:
    """Path and query, with the value of each query field masked unless it is known to be harmless."""
    path, mark, query = target.partition("?")
    if not mark:
        return path
    fields = [field.partition("=") for field in query.split("&")]
    shown = [
        name if not equals else f"{name}={value if name in _HARMLESS_QUERY else MASK}" for name, equals, value in fields
    ]
    return f"{path}?{'&'.join(shown)}"


def secrets_of(headers: Headers, target: str) -> list[str]:
    """The secrets of a request, longest first: a server may repeat them in its answer."""
    found = {word for key, value in headers if _SECRET_NAME.search(key) for word in _words(value)}
    for field in target.partition("?")[2].split("&"):
        name, _, value = field.partition("=")
        if name not in _HARMLESS_QUERY:
            found |= {value, unquote_plus(value)}
    return sorted((word for word in found if len(word) >= _SHORTEST_SECRET), key=len, reverse=True)


def masked(text: str, secrets: list[str]) -> str:
    """The text with every secret, and every field that is named like an API key, masked."""
    for secret in secrets:
        text = text.replace(secret, MASK).replace(json.dumps(secret)[1:-1], MASK)
    return _SECRET_FIELD.sub(rf"\g<1>{MASK}\g<3>", text)


def _words(value: str) -> set[str]:
    """The parts of a header's value that are secrets of their own: a bearer token, a cookie's value, a password."""
    words = {part.partition("=")[2] or part for part in re.split(r"[;,\s]+", value)}
    words |= set(value.split())
    if value.lower().startswith("basic "):
        with contextlib.suppress(binascii.Error, UnicodeDecodeError):
            words.add(base64.b64decode(value[6:]).decode("utf-8").partition(":")[2])
    return words - {"Bearer", "Basic", ""}
