"""Addresses that servers want opened: Parley opens exactly the shown address, or none."""

from __future__ import annotations

import pytest

from parley.tools.visits import Visit, required_visits, visit


@pytest.mark.parametrize(
    ("url", "shown", "host"),
    [
        ("https://a.example/x?y=1#z", "https://a.example/x?y=1#z", "a.example"),
        ("HTTPS://A.Example:8443/", "https://a.example:8443/", "a.example:8443"),
        ("http://127.0.0.1:80/cb", "http://127.0.0.1:80/cb", "127.0.0.1:80"),
        ("http://[::1]:9/", "http://[::1]:9/", "[::1]:9"),
        ("https://g\u043e\u043egle.com/", "https://xn--ggle-55da.com/", "xn--ggle-55da.com"),
        ("https://a.example/\u202egnp.exe?q=\u00e9`%20", None, ""),
        (
            "https://a.example/\u00e9?q=\u00e9`%20",
            "https://a.example/%C3%A9?q=%C3%A9%60%20",
            "a.example",
        ),
    ],
)
def test_an_address_is_shown_as_it_is_opened(url: str, shown: str | None, host: str) -> None:
    if shown is None:
        with pytest.raises(ValueError, match="invisible character"):
            visit(url, "")
    else:
        page = visit(url, "why")
        assert (page.url, page.host) == (shown, host)


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "javascript:alert(1)",
        "vscode://x/y",
        "a.example/x",
        "https:///x",
        "https://good.example@evil.example/",
        "https://good.example\\@evil.example/",
        "https://a b.example/",
        "https://a.example/\n",
        "https://a.example:99999/",
        "https://a%2e.example/",
        "https://[::1/",
        f"https://a.example/{'x' * 8000}",
        f"https://{'a.' * 200}example/",
        "",
    ],
)
def test_an_address_that_must_not_be_opened_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"^[\x20-\x7e…]*$"):
        visit(url, "")


def test_an_address_without_encryption_is_known() -> None:
    assert visit("http://a.example/", "").is_open
    assert not visit("https://a.example/", "").is_open
    assert not visit("http://localhost:8080/", "").is_open
    assert not visit("http://127.0.0.1/", "").is_open
    assert not visit("http://[::1]:9/", "").is_open


@pytest.mark.parametrize(
    "host", ["127.example.org", "localhost.example.org", "127.0.0.1.example.org"]
)
def test_a_host_that_only_looks_like_this_machine_is_remote(host: str) -> None:
    assert visit(f"http://{host}/", "").is_open


def test_an_error_names_the_pages_that_a_call_requires() -> None:
    wish = {"mode": "url", "message": "in", "url": "https://a.example/", "elicitationId": "7"}
    page = Visit("https://a.example/", "in", "7")
    assert required_visits({"elicitations": [wish]}) == (page,)
    assert required_visits({"elicitations": [wish] * 9}) == (page,) * 5


@pytest.mark.parametrize(
    "details",
    [None, [], {}, {"elicitations": []}, {"elicitations": [7]}, {"elicitations": [{"url": 1}]}],
)
def test_an_error_that_names_no_page_is_refused(details: object) -> None:
    with pytest.raises(ValueError, match=r"no page was given|a page has no address"):
        required_visits(details)


def test_the_message_about_a_page_is_bounded() -> None:
    page = visit("https://a.example/", "m" * 3_000_000, "i" * 3_000_000)
    assert page.message.startswith("mmm")
    assert len(page.message) < 2_100
    assert page.id == ""
