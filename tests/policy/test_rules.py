"""Patterns for arguments: a path stands for its target, and no expression runs forever."""

from __future__ import annotations

import json

import pytest

from parley.policy.rules import Pattern, Rules
from parley.tools.long_results import READ_RESULT
from tests.chats import tool

READ = tool("read_file")
UP = [
    "/srv/../etc/passwd",
    "/srv/a/../../etc/passwd",
    "/srv/..",
    "/srv/%2e%2e/etc/passwd",
    "/srv/%252e%252e/etc/passwd",
    "/srv\\..\\etc\\passwd",
    "/srv/%2E./etc/passwd",
]


def path(value: object) -> str:
    return json.dumps({"path": value})


@pytest.mark.parametrize(
    ("rules", "may_ask"),
    [
        (Rules(), True),
        (Rules(auto=(Pattern("demo/*"),)), False),
        (Rules(auto=(Pattern("demo/*", {"path": "/srv/.*"}),)), True),
        (Rules(auto=(Pattern("demo/*"),), ask=(Pattern("demo/read_*"),)), True),
    ],
)
def test_calls_may_wait_unless_a_rule_covers_every_call(rules: Rules, may_ask: bool) -> None:
    assert rules.may_ask(READ) == may_ask
    assert not rules.may_ask(READ_RESULT)


@pytest.mark.parametrize("value", UP)
def test_a_path_that_goes_up_may_leave_the_folder_it_starts_with(value: str) -> None:
    assert not Pattern("demo/*", {"path": "/srv/.*"}).allows(READ, path(value))
    assert Pattern("demo/*", {"path": ".*"}).allows(READ, path(value))


@pytest.mark.parametrize("value", ["/srv/a", "/srv/a..b", "/srv/...", "/srv/.hidden", "/srv/a b%"])
def test_dots_in_a_name_do_not_leave_the_folder(value: str) -> None:
    assert Pattern("demo/*", {"path": "/srv/.*"}).allows(READ, path(value))


ETC = [
    "/srv/../etc/passwd",
    "//etc//passwd",
    "/./etc/passwd",
    "/srv/%2e%2e/etc/passwd",
    "\\etc\\passwd",
]


@pytest.mark.parametrize("value", [*ETC, *([each] for each in ETC)])
def test_a_path_is_denied_in_every_spelling(value: object) -> None:
    assert Pattern("demo/*", {"path": "/etc/.*"}).forbids(READ, path(value))
    assert not Pattern("demo/*", {"path": "/home/.*"}).forbids(READ, path(value))


ENDLESS = ["(a|a)+b|c", "(a|b|ab)*c", "(x+x+)+y|(a|aa)+$"]
HOSTILE = "a" * 5000 + "!"


@pytest.mark.parametrize("expression", ENDLESS)
def test_an_endless_expression_allows_nothing_and_denies(expression: str) -> None:
    assert not Pattern("demo/*", {"path": expression}).allows(READ, path(HOSTILE))
    assert not Pattern("demo/*", {"path": expression}).allows(READ, path([HOSTILE] * 1000))
