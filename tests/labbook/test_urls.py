"""Base URLs: fixture N-3 and MS-07."""

import pytest

from labbook.errors import UsageError
from labbook.urls import parse


@pytest.mark.parametrize(
    "base",
    [
        "http://h:8000",
        "http://h:8000/",
        "http://h:8000/v1",
        "http://h:8000/v1/",
        "http://h:8000//v1//",
        " http://h:8000/v1 ",
        "HTTP://h:8000/v1",
    ],
)
def test_usual_forms_give_the_same_addresses(base: str) -> None:
    urls = parse(base)
    assert urls.chat == "http://h:8000/v1/chat/completions"
    assert urls.metrics == "http://h:8000/metrics"
    assert urls.models == "http://h:8000/v1/models"


def test_a_path_prefix_is_kept_and_metrics_stand_beside_v1() -> None:
    urls = parse("http://h/p/m/v1")
    assert (urls.chat, urls.metrics) == ("http://h/p/m/v1/chat/completions", "http://h/p/m/metrics")
    assert parse("https://h/p/m").chat == "https://h/p/m/v1/chat/completions"


def test_ipv6_keeps_its_brackets() -> None:
    urls = parse("http://[::1]:8000/v1")
    assert urls.chat == "http://[::1]:8000/v1/chat/completions"
    assert urls.is_loopback


@pytest.mark.parametrize(
    ("base", "said"),
    [
        ("localhost:8000", "did you mean http://localhost:8000"),
        ("127.0.0.1:8000/v1", "no scheme"),
        ("http://::1:8000", r"http://\[::1\]:8000"),
        ("ftp://h", "only http and https"),
        ("", "empty"),
        ("http://h/v1?x=1", "query"),
        ("http://h/v1#a", "fragment"),
        ("http://h/v1/chat/completions", "use http://h/v1"),
        ("http://h:8000/metrics", "use http://h:8000"),
        ("http://h:port", "not a number"),
        ("http://h:99999", "not a number from 0 to 65535"),
        ("http://", "no host"),
        ("http://[::1", "cannot be read"),
        ("http://h /v1", "blank"),
    ],
)
def test_what_cannot_be_a_base_url_is_refused_with_the_fix(base: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse(base)


@pytest.mark.parametrize("base", ["http://me:pa%40ss@h:1/v1", "https://me:pa%40ss@h/"])
def test_a_password_is_kept_for_sending_and_never_shown(base: str) -> None:
    urls = parse(base)
    assert urls.credentials == ("me", "pa@ss")
    assert "pa" not in repr(urls) + urls.base + urls.metrics


@pytest.mark.parametrize(
    "base",
    [
        "me:secret@h:1",
        "http://me:secret@h/v1/chat/completions",
        "http://me:secret@h/v1?x",
        "http://me:secret@h:x",
        "http://me:secret@::1:2",
    ],
)
def test_a_refusal_does_not_repeat_the_password(base: str) -> None:
    with pytest.raises(UsageError) as refusal:
        parse(base)
    assert "secret" not in str(refusal.value)


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.8.9.1", True),
        ("[::1]", True),
        ("0.0.0.0", True),
        ("a.localhost", True),
        ("example.org", False),
        ("10.0.0.1", False),
        ("localhost.example.org", False),
    ],
)
def test_loopback_is_told_from_other_hosts(host: str, loopback: bool) -> None:
    assert parse(f"http://{host}:8000").is_loopback is loopback
