"""Servers over HTTP: large results, ended sessions and tokens, refusals, the oldest transport."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp.server.mcpserver import Context, MCPServer
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from parley.mcp.server_session import PROXY_HINT
from parley.mcp.servers import Servers
from parley.tools.results import Outcome
from parley.tools.server_settings import Protocol, ServerSettings
from tests.defaults import new_servers
from tests.mcp_servers import hosted, only, served, servers_of, tool_of
from tests.ways_there import FAR, ProxyServer

LARGE = 3_000_000
TOKEN = "the-first-token"


def counting() -> MCPServer:
    """A server that counts its calls, and returns and reports as much as requested."""
    server = MCPServer("counting", log_level="CRITICAL")
    count = 0

    async def add(ctx: Context, size: int = 0) -> str:
        nonlocal count
        count += 1
        await ctx.report_progress(1, 1, "m" * size)
        return f"{count}{'x' * size}"

    server.add_tool(add, structured_output=False)
    return server


def without_lifespan(app: Any) -> Any:
    """An application without startup and shutdown events."""

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await app(scope, receive, send)

    return answer


async def added(servers: Servers, size: int = 0) -> Outcome:
    return await servers.call(await tool_of(servers, "add"), {"size": size})


@pytest.mark.parametrize("protocol", ["2025-11-25", "2026-07-28"])
async def test_a_result_of_megabytes_arrives_whole(protocol: Protocol) -> None:
    async with (
        served([], mcp=counting()) as url,
        servers_of(ServerSettings("web", url=url, protocol=protocol)) as servers,
    ):
        outcome = await added(servers, LARGE)
        assert (outcome.status, len(outcome.whole)) == ("ok", LARGE + 1)
        assert (await added(servers)).text == "2"  # in the same session
        assert only(servers).protocol == protocol


# --- The oldest transport -------------------------------------------------------------------------


async def test_a_server_with_the_oldest_transport_is_found_again_after_it_ended() -> None:
    async with hosted(counting().sse_app(), []) as url:
        web = ServerSettings("web", url=f"{url}/sse")
        async with servers_of(web) as servers:
            assert await added(servers) == Outcome("ok", "1")
            assert len((await added(servers, LARGE)).whole) == LARGE + 1
            assert only(servers).stderr == ()
            servers.restart("web")
            assert await added(servers) == Outcome("ok", "3")


async def test_a_server_with_the_oldest_transport_is_found_again_after_an_outage() -> None:
    async with hosted(counting().sse_app(), []) as url:
        servers = new_servers({"web": ServerSettings("web", url=f"{url}/sse")})
        assert await added(servers) == Outcome("ok", "1")
        tool = await tool_of(servers, "add")
    async with hosted(counting().sse_app(), [], int(url.rpartition(":")[2])):
        assert await servers.call(tool, {}) == Outcome("ok", "1")
        await servers.close()


@pytest.mark.parametrize(
    "place",
    [
        "http://{other}/x",
        "//{other}/x",
        "http://{here}@{other}/x",
        "https://{here}/x",
        "javascript:1",
    ],
)
async def test_a_server_with_the_oldest_transport_cannot_name_another_host(place: str) -> None:
    requests = list[dict[str, str]]()
    async with hosted(without_lifespan(Response("{}")), requests) as other:

        async def events(scope: Any, receive: Any, send: Any) -> None:
            here = Request(scope).headers["host"]
            data = place.format(here=here, other=other.removeprefix("http://"))

            async def stream() -> AsyncIterator[str]:
                yield f"event: endpoint\ndata: {data}\n\n"
                await asyncio.Event().wait()

            page = StreamingResponse(stream(), media_type="text/event-stream")
            await (page if scope["method"] == "GET" else Response("", 405))(scope, receive, send)

        async with hosted(without_lifespan(events), []) as url:
            web = ServerSettings(
                "web", url=f"{url}/sse", headers={"Authorization": "Bearer secret"}
            )
            async with servers_of(web) as servers:
                await servers.catalogue()
                assert (only(servers).state, only(servers).tools) == ("failed", ())
    assert requests == []


# --- Sessions that end ----------------------------------------------------------------------------


class Forgetful:
    """A server that forgets all sessions on request, and reports this with the given status and
    body.
    """

    def __init__(self, status: int, body: str) -> None:
        self._app = counting().streamable_http_app()
        self._refusal = Response(body, status, media_type="application/json")
        self._forgotten = set[str]()
        self._known = set[str]()

    def forget(self) -> None:
        self._forgotten |= self._known

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        session = (
            Request(scope).headers.get("mcp-session-id", "") if scope["type"] == "http" else ""
        )
        self._known.add(session)
        app = self._refusal if session and session in self._forgotten else self._app
        await app(scope, receive, send)


def error_body(code: int, message: str) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}})


FORGOTTEN = {
    "as the protocol has it": (404, ""),
    "with an error beside it": (404, error_body(-32001, "Session not found")),
    "as many servers do": (400, error_body(-32000, "Bad Request: No valid session ID provided")),
}


@pytest.mark.parametrize("kind", FORGOTTEN)
async def test_calls_in_an_ended_session_run_once_each_in_a_new_session(kind: str) -> None:
    app = Forgetful(*FORGOTTEN[kind])
    async with (
        hosted(app, []) as url,
        servers_of(ServerSettings("web", url=f"{url}/mcp", protocol="2025-11-25")) as servers,
    ):
        assert await added(servers) == Outcome("ok", "1")
        app.forget()
        both = await asyncio.gather(added(servers), added(servers))
        assert {outcome.text for outcome in both} == {"2", "3"}
        assert await added(servers) == Outcome("ok", "4")


# --- Tokens and refusals --------------------------------------------------------------------------


class Guarded:
    """A server that accepts one token."""

    def __init__(self, refusal: Callable[[str], Response]) -> None:
        self._app = counting().streamable_http_app()
        self._refusal = refusal
        self.token = TOKEN

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        token = (
            Request(scope).headers.get("authorization", "")
            if scope["type"] == "http"
            else f"Bearer {self.token}"
        )
        app = self._app if token == f"Bearer {self.token}" else self._refusal(token)
        await app(scope, receive, send)


def json_refusal(token: str) -> Response:
    body = {"error": "invalid_token", "error_description": f"The token {token} has\x1b[31m expired"}
    return Response(json.dumps(body), 401, media_type="application/json")


def page_refusal(_: str) -> Response:
    return Response(
        "<html><style>p {}</style><h1>No</h1> <p>Ask Ada.</p>" + "x" * 90_000,
        403,
        media_type="text/html",
    )


async def test_an_expired_token_is_printed_again_and_the_call_runs_once(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    app = Guarded(json_refusal)
    async with hosted(app, []) as url:
        web = ServerSettings("web", url=f"{url}/mcp", token_command=("cat", str(token)))
        async with servers_of(web) as servers:
            assert await added(servers) == Outcome("ok", "1")
            app.token = "the-second-token"
            token.write_text(app.token)
            both = await asyncio.gather(added(servers), added(servers))
            assert {outcome.text for outcome in both} == {"2", "3"}
            app.token = "another"
            refused = await added(servers)
    assert refused == Outcome(
        "error",
        "Tool 'add' of MCP server 'web' failed: HTTP 401 Unauthorized: The token … has\\x1b[31m "
        "expired. "
        "What to do: make mcp.servers.web.token_command print a token that the server accepts",
    )


async def error_of(refusal: Callable[[str], Response]) -> str:
    """The reason why a server that refuses everyone has no tools."""
    async with (
        hosted(Guarded(refusal), []) as url,
        servers_of(ServerSettings("web", url=f"{url}/mcp")) as servers,
    ):
        assert (await servers.catalogue()).names() == ()
        return only(servers).error


async def test_a_server_that_requires_a_token_says_so_with_the_remedy() -> None:
    assert await error_of(json_refusal) == (
        "MCP server 'web': HTTP 401 Unauthorized: The token has\\x1b[31m expired. "
        "What to do: :ParleyLogin web, "
        "or set mcp.servers.web.headers.Authorization or mcp.servers.web.token_command"
    )


async def newest_only(scope: Any, receive: Any, send: Any) -> None:
    """A server that requires a token from clients with the newest revision, and supports no other."""
    request = json.loads(await Request(scope, receive).body())
    error = {"code": -32020, "message": "Missing MCP-Protocol-Version header"}
    other = Response(
        json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": error}),
        400,
        media_type="application/json",
    )
    await (json_refusal("") if request["method"] == "server/discover" else other)(
        scope, receive, send
    )


async def test_a_server_of_only_the_newest_revision_says_that_it_requires_a_token() -> None:
    async with (
        hosted(without_lifespan(newest_only), []) as url,
        servers_of(ServerSettings("web", url=f"{url}/mcp")) as servers,
    ):
        await servers.catalogue()
        assert only(servers).error.startswith("MCP server 'web': HTTP 401 Unauthorized: The token")
        assert only(servers).account == "signed out"


async def test_the_readable_part_of_a_refusal_page_is_shown() -> None:
    error = await error_of(page_refusal)
    assert error.startswith("MCP server 'web': HTTP 403 Forbidden: No Ask Ada. xxx")
    assert len(error) < 400


SECRET = "ghp_ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


async def plain_page(request: Request) -> Response:
    """A page that is not an MCP server, with an endless content type."""
    return Response("hi", headers={"content-type": f"text/{'x' * 5000}"})


@pytest.mark.parametrize("more", [{}, {"token_command": (SECRET,)}])
async def test_a_failures_message_is_short_and_contains_no_secret(more: dict[str, Any]) -> None:
    app = Starlette(routes=[Route("/mcp", plain_page, methods=["POST", "GET"])])
    async with hosted(app, []) as url:
        url = url.replace("http://", f"http://me:{SECRET}@")
        async with servers_of(ServerSettings("web", url=f"{url}/mcp", **more)) as servers:
            await servers.catalogue()
            error = only(servers).error
    assert error
    assert SECRET not in error
    assert len(error) < 300


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (
            b"407 Proxy Authentication Required",
            f"HTTP 407 Proxy Authentication Required{PROXY_HINT}",
        ),
        (b"502 Bad Gateway", "HTTP 502 Bad Gateway"),
    ],
)
async def test_a_proxys_refusal_reads_the_same_over_tls(
    monkeypatch: pytest.MonkeyPatch, scheme: str, answer: bytes, error: str
) -> None:
    reply = b"HTTP/1.1 " + answer + b"\r\ncontent-length: 0\r\n\r\n"
    async with ProxyServer("http://127.0.0.1:1", "http://127.0.0.1:1", [reply]) as proxy:
        monkeypatch.setenv(f"{scheme.upper()}_PROXY", proxy.url)
        async with servers_of(ServerSettings("web", url=f"{scheme}://{FAR}/mcp")) as servers:
            await servers.catalogue()
            assert only(servers).error == f"MCP server 'web': {error}"
