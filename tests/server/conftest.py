"""One server for the tests that leave it as they found it; its cache is audited after each of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.server.live import LiveServer, eventually, live_server


@pytest.fixture(scope="session")
def session_server() -> Iterator[LiveServer]:
    with live_server() as server:
        yield server


@pytest.fixture
def server(session_server: LiveServer) -> Iterator[LiveServer]:
    """A server with an empty prefix cache."""
    assert session_server.http.post("/reset_prefix_cache").status_code == 200
    yield session_server
    eventually(lambda: session_server.engine.stats["requests_running"] == 0)
    session_server.audit()
    assert session_server.engine.stats["pages_active"] == session_server.engine.stats["pages_partial"]
