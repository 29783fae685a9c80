"""Redirects and cookies: a chat, its key and a server's token are sent only to their address."""

from __future__ import annotations

import pytest

from parley.models.events import TextDelta
from tests.faulty_providers import FORMATS, KEY, FaultyProviders, check_message
from tests.faulty_server import SAYS, FaultyServer, Response
from tests.http.far_server import no_tools, remote

pytestmark = pytest.mark.asyncio(loop_scope="module")

JSON = {"content-type": "application/json"}


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("kind", FORMATS)
async def test_a_chat_and_its_key_are_sent_only_to_their_address(
    faulty: FaultyProviders, kind: str, status: int
) -> None:
    async with FaultyServer() as other:
        other.plan(Response(SAYS[kind]("Caught")))
        place = f"{other.url}/v1/messages"
        faulty.plan(Response([b"moved"], status, {"location": f"{place}?key={KEY}"}))
        error = await faulty.fail(faulty.provider(kind))
        assert other.heads == []
    check_message(
        error,
        "faulty redirected the request to another address; nothing was sent there",
        f"(HTTP {status}: {place})",
        "if that address is right, set providers.faulty.base_url to it",
    )
    assert len(faulty.server.requests) == 1


ODD = [
    "//evil.example/v1",
    "http://user:word@127.0.0.1:9/",
    "https://127.0.0.1/",
    "http://[",
    "\x08",
]


@pytest.mark.parametrize("place", ODD)
@pytest.mark.parametrize("kind", FORMATS)
async def test_an_odd_redirect_is_reported(faulty: FaultyProviders, kind: str, place: str) -> None:
    faulty.plan(Response([b"moved"], 308, {"location": place}))
    error = await faulty.fail(faulty.provider(kind))
    check_message(error, "faulty redirected the request to another address")
    assert "word" not in str(error)


@pytest.mark.parametrize("status", [307, 308])
@pytest.mark.parametrize("kind", FORMATS)
async def test_a_server_may_redirect_a_request_to_itself(
    faulty: FaultyProviders, kind: str, status: int
) -> None:
    moved = Response([b"moved"], status, {"location": "/there"})
    faulty.plan(moved, Response(SAYS[kind]("Whole")))
    assert TextDelta("Whole") in await faulty.say(faulty.provider(kind))
    assert faulty.server.paths[-1] == "/there"
    assert faulty.server.requests[0] == faulty.server.requests[1]
    faulty.plan(Response([b"moved"], status, {"location": "/there"}))
    check_message(await faulty.fail(faulty.provider(kind)), "faulty cannot be used")


@pytest.mark.parametrize("kind", FORMATS)
async def test_no_cookie_is_kept(faulty: FaultyProviders, kind: str) -> None:
    headers = {"set-cookie": "a=\x84; Path=/"}
    faulty.plan(Response([b"busy"], 429, headers), Response(SAYS[kind]("Whole")))
    assert TextDelta("Whole") in await faulty.say(faulty.provider(kind))
    assert "cookie" not in faulty.server.heads[-1]


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_servers_token_is_sent_only_to_its_address(
    faulty: FaultyProviders, status: int
) -> None:
    async with FaultyServer() as other:
        other.plan(Response([b"{}"], 200, JSON))
        place = f"{other.url}/mcp"
        faulty.plan(Response([b""], status, {"location": f"{place}?token={KEY}"}))
        error = await no_tools(remote(faulty.server.url, token_command=("echo", KEY)))
        assert other.heads == []
    assert place in error
    assert "use that URL as the endpoint if it is the intended server" in error
    assert KEY not in error
