"""Errors of whatever stands in front of a server: they are not in the server's own shape."""

from __future__ import annotations

from labs.kit.doubles.response import Response, compact

_HTML = b"<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body><h1>502 Bad Gateway</h1></body>\r\n</html>\r\n"


def _json_error(status: int, message: str, kind: str, **headers: str) -> Response:
    return Response(status, compact({"error": {"message": message, "type": kind}}).encode(), headers=headers)


RESPONSES = {
    "html": Response(502, _HTML, "text/html"),
    "rate_limited": _json_error(
        429, "Rate limit reached: try again in 20 s", "rate_limit_error", **{"Retry-After": "20"}
    ),
    "loading": _json_error(503, "Loading model", "unavailable_error"),
    "empty": Response(200, b""),
}
