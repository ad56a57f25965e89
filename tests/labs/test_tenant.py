"""Tenants and operator on the real server with the `tiny` model. Counts and refusals, no times."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from labs.kit.serving import Server, running_server
from labs.kit.tenant import BUSY, Operator, Tenant

TEXT = "The keeper writes one page a day. Every page begins where the page before it ended."


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server("tiny", flags=["--num-pages", "64"], is_quiet=True) as running:
        yield running


@pytest.fixture
def operator(server: Server) -> Iterator[Operator]:
    operator = Operator(server.base_url, "tiny")
    operator.reset(patience_s=10)
    yield operator
    operator.close()


def gained(operator: Operator, tenant: Tenant) -> int:
    before = operator.hits_tokens()
    assert tenant.ask(TEXT) > 0
    tenant.close()
    return operator.hits_tokens() - before


def test_tenants_without_a_salt_share_and_salts_keep_them_apart(server: Server, operator: Operator) -> None:
    salts = (None, None, "a", "b", "a")
    restored = [gained(operator, Tenant(server.base_url, "tiny", salt)) for salt in salts]
    assert restored[0] == restored[2] == restored[3] == 0
    assert restored[1] == restored[4] > 16


def test_a_reset_by_salt_leaves_the_others(server: Server, operator: Operator) -> None:
    for salt in ("a", "b"):
        Tenant(server.base_url, "tiny", salt).ask(TEXT)
    status, said = operator.reset("a")
    assert status == 200 and said.endswith("pages dropped") and not said.startswith("0 ")
    assert gained(operator, Tenant(server.base_url, "tiny", "b")) > 0
    assert gained(operator, Tenant(server.base_url, "tiny", "a")) == 0


def test_a_reset_is_refused_while_a_request_runs_and_done_when_it_has_gone(server: Server, operator: Operator) -> None:
    with Tenant(server.base_url, "tiny").asking(TEXT, max_tokens=600):
        status, said = operator.reset()
    assert status == BUSY and "not finished" in said
    assert operator.reset(patience_s=10)[0] == 200
