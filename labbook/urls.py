"""Base URLs in every usual form, and the addresses that follow from one."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from urllib.parse import SplitResult, unquote, urlsplit

from labbook.errors import UsageError

_ENDPOINTS = ("/chat/completions", "/completions", "/models", "/metrics", "/health")


@dataclass(frozen=True)
class ServerUrls:
    """The addresses of one server. `root` ends without a slash and without /v1, and never holds a password."""

    root: str
    host: str
    credentials: tuple[str, str] | None = field(default=None, repr=False)

    @property
    def base(self) -> str:
        return self.root + "/v1"

    @property
    def chat(self) -> str:
        return self.root + "/v1/chat/completions"

    @property
    def models(self) -> str:
        return self.root + "/v1/models"

    @property
    def metrics(self) -> str:
        return self.root + "/metrics"

    @property
    def tokenize(self) -> str:
        return self.root + "/tokenize"

    @property
    def version(self) -> str:
        return self.root + "/version"

    @property
    def props(self) -> str:
        return self.root + "/props"

    @property
    def is_loopback(self) -> bool:
        """True when the server is on this machine, where a proxy must never stand in between."""
        if self.host == "localhost" or self.host.endswith(".localhost"):
            return True
        try:
            address = ipaddress.ip_address(self.host.partition("%")[0])
        except ValueError:
            return False
        return address.is_loopback or address.is_unspecified


def parse(base_url: str) -> ServerUrls:
    """The addresses of the server at `base_url`, with or without /v1. Raises UsageError with the fix."""
    text = base_url.strip()
    if not text:
        raise UsageError("the base URL is empty: give one, for instance http://127.0.0.1:8000/v1")
    if re.search(r"[\s\x00-\x1f\x7f\\]", text):
        raise UsageError(f"the base URL {_shown(text)!r} holds a blank, a control character or a backslash")
    parts = _split(text)
    path = re.sub(r"/{2,}", "/", parts.path).rstrip("/")
    _refuse_endpoint(parts, path)
    host, port = _host_and_port(parts)
    netloc = f"[{host}]" if ":" in host else host
    netloc += "" if port is None else f":{port}"
    root = f"{parts.scheme}://{netloc}{path.removesuffix('/v1')}"
    return ServerUrls(root=root, host=host, credentials=_credentials(parts))


def _split(text: str) -> SplitResult:
    try:
        parts = urlsplit(text)
    except ValueError as error:
        raise UsageError(f"the base URL {_shown(text)!r} cannot be read: {error}") from None
    if "://" not in text:
        raise UsageError(f"the base URL {_shown(text)!r} has no scheme: did you mean http://{_shown(text)} ?")
    if parts.scheme not in ("http", "https"):
        raise UsageError(f"the base URL has the scheme {parts.scheme!r}: only http and https are spoken here")
    if "?" in text or "#" in text:
        raise UsageError("the base URL holds a query or a fragment (? or #): remove it, paths are appended to the URL")
    return parts


def _host_and_port(parts: SplitResult) -> tuple[str, int | None]:
    place = parts.netloc.rpartition("@")[2]
    if place.count(":") > 1 and not place.startswith("["):
        raise UsageError(f"the host {place!r} looks like IPv6: write it in brackets, for instance http://[::1]:8000")
    try:
        port = parts.port
    except ValueError:
        raise UsageError(f"the port in {place!r} is not a number from 0 to 65535") from None
    if not parts.hostname:
        raise UsageError("the base URL names no host: for instance http://127.0.0.1:8000/v1")
    return parts.hostname, port


def _refuse_endpoint(parts: SplitResult, path: str) -> None:
    for endpoint in _ENDPOINTS:
        if path.endswith(endpoint):
            place = parts.netloc.rpartition("@")[2]
            fixed = f"{parts.scheme}://{place}{path.removesuffix(endpoint)}"
            raise UsageError(f"the base URL ends in {endpoint}, which is appended here: use {fixed}")


def _credentials(parts: SplitResult) -> tuple[str, str] | None:
    if parts.username is None:
        return None
    return unquote(parts.username), unquote(parts.password or "")


def _shown(text: str) -> str:
    """The text without anything before an @, which may be a password."""
    return text.rpartition("@")[2]
