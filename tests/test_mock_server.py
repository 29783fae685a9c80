"""The mock server's invented data."""

import json
import logging

import pytest

from parley.mock_server import create_server, web_search

GOOGLE = "google stock GOOGL price is $911 as of today"
MICROSOFT = "microsoft stock MSFT price is $544 as of today"


@pytest.mark.parametrize(
    ("query", "matches"),
    [
        ("google stock price", [GOOGLE]),
        ("Alphabet", [GOOGLE]),
        ("google or alphabet", [GOOGLE]),
        ("MICROSOFT", [MICROSOFT]),
        ("google and microsoft", [GOOGLE, MICROSOFT]),
    ],
)
async def test_known_companies_have_canned_matches(query: str, matches: list[str]) -> None:
    assert json.loads(await web_search(query)) == {"matches": matches}


async def test_anything_else_has_one_invented_match_that_stays_the_same() -> None:
    assert await web_search("apples") == '{"matches": ["apples: LOLD price is $767 as of today"]}'
    assert await web_search("pears") != await web_search("apples")
    assert len(await web_search("x" * 10_000)) < 200


def test_creating_a_server_does_not_change_the_processs_logging() -> None:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    create_server(extra=True)
    assert (root.handlers, root.level) == before
