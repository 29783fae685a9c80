"""Addresses as people see them, and messages about their flaws: both without secrets."""

from __future__ import annotations

import pytest

from parley.addresses import flaw, shown_address

PASSWORD = "hunter2"


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("https://example.com/mcp", "https://example.com/mcp"),
        (f"https://me:{PASSWORD}@example.com/mcp", "https://…@example.com/mcp"),
        (f"https://{PASSWORD}@example.com", "https://…@example.com"),
        (f"https://me:{PASSWORD}@x@example.com", "https://…@example.com"),
        (f"https://x/mcp?apiKey={PASSWORD}&a=1", "https://x/mcp?apiKey=…&a=1"),
        (f"https://x/mcp?a=1&access_token={PASSWORD}", "https://x/mcp?a=1&access_token=…"),
        ("https://x/@scope/mcp?tools=all", "https://x/@scope/mcp?tools=all"),
    ],
)
def test_an_address_is_shown_without_its_secrets(url: str, text: str) -> None:
    assert shown_address(url) == text


@pytest.mark.parametrize(
    "url",
    [
        f"ftp://me:{PASSWORD}@x/mcp",
        f"http://me:{PASSWORD}@x:99999/mcp",
        f"http://me:{PASSWORD}@:1/mcp",
        f"http://me:{PASSWORD} @x/mcp",
        f"me://{PASSWORD}@",
        f"ftp://x/?token={PASSWORD}",
    ],
)
def test_a_message_about_an_addresss_flaw_contains_no_password(url: str) -> None:
    assert flaw(url)
    assert PASSWORD not in flaw(url)
