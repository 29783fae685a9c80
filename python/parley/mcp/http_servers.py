"""Servers over HTTP: Streamable HTTP, the two addresses of the first revision, tokens and refusals.

Knows the SDK's transport and `httpx2`, but not the messages that they carry.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from parley.addresses import flaw, shown_address
from parley.errors import ParleyError, ServerError
from parley.http.error_pages import words
from parley.http.proxies import ProxyError, client_options
from parley.iterators import closing
from parley.mcp.server_session import PROXY_HINT, HttpRefusal
from parley.mcp.task_sessions import TaskSessions
from parley.mcp.transport import Wire
from parley.processes import line_codec as lines
from parley.processes.stderr import StderrTail
from parley.secrets import SecretError, command_secret
from parley.tools.server_settings import ServerSettings, again

if TYPE_CHECKING:
    import httpx2

_PAGE_S = 5.0
_END_S = 1.0
_MOST_SHOWN = 300
_SESSION = "mcp-session-id"
_KNOWN = (-32601, -32602)
"""Error codes from a server that has understood the request."""

Transport: TypeAlias = AbstractAsyncContextManager[tuple[Any, Any]]


@asynccontextmanager
async def reached(
    settings: ServerSettings,
    stderr: StderrTail,
    environ: Mapping[str, str],
    wire: Wire,
    login: httpx2.Auth | None,
    sessions: TaskSessions,
    *,
    is_sse: bool,
) -> AsyncIterator[Transport]:
    """The transport to a server's address, with the user's login.

    `is_sse` chooses the transport of revision 2024-11-05.
    """
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    from parley.http import bodies  # this imports httpx2

    url = settings.url or ""
    if why := flaw(url):
        raise ServerError(f"mcp.servers.{settings.name}.url: {why}")
    try:
        options = client_options(url)
    except ProxyError as error:
        raise ServerError(f"mcp.servers.{settings.name}.url: {error}") from error
    token = await _token(settings, environ)

    stderr.lines.clear()
    client = httpx2.AsyncClient(
        **options,
        headers={**bodies.HEADERS, **settings.headers},
        auth=_bearer(token, settings, environ) if token else login,
        timeout=httpx2.Timeout(30, read=max(300, settings.timeout_s)),
        event_hooks=_hooks(settings, stderr, wire, sessions),
    )
    async with client:
        # The SDK follows only redirects that stay within the endpoint's origin.
        if is_sse:
            yield _events(url, client)
        else:
            try:
                yield streamable_http_client(
                    url,
                    http_client=client,
                    max_sse_event_size=lines.LINE_BYTES,
                    terminate_on_close=False,  # a task may still need the session
                )
            finally:
                if sessions.current and not sessions.is_needed:
                    await _end_session(client, url, sessions.current)


def _hooks(
    settings: ServerSettings, stderr: StderrTail, wire: Wire, sessions: TaskSessions
) -> dict[str, list[Any]]:
    """The hooks that inspect each request and each response."""
    from parley.http import bodies  # this imports httpx2

    async def direct(request: httpx2.Request) -> None:
        if session := sessions.of(_task_of(request)):
            request.headers[_SESSION] = session

    async def note(response: httpx2.Response) -> None:
        method, number = _request_of(response.request)
        if _SESSION not in response.request.headers:
            # A reply to a request with a session may repeat that session, which may be a task's.
            sessions.current = response.headers.get(_SESSION) or sessions.current
        if not response.is_error:
            wire.note_refusal(number, None)
        elif number is not None:
            refusal = await _refusal(response, settings)
            wire.note_refusal(number, refusal)
            if refusal and refusal.is_lost_session:
                sessions.end(_task_of(response.request))  # use the current session from now on
        elif response.status_code not in (404, 405):  # streams and session ends are optional
            what = "renewing the login" if _is_form(response.request) else method
            stderr.lines.append(f"{what}: HTTP {response.status_code} {response.reason_phrase}")

    # `note` reads error pages, so the limit comes first. Event streams may be endless: the SDK and
    # `_events` limit each event.
    return {
        "request": [direct],
        "response": [bodies.bounded(lines.LINE_BYTES, streams=False), note],
    }


async def _end_session(client: httpx2.AsyncClient, url: str, session: str) -> None:
    """Tell the server that a session is over; the server may ignore this."""
    import httpx2

    with suppress(httpx2.HTTPError, httpx2.StreamError, ParleyError, TimeoutError):
        async with asyncio.timeout(_END_S):
            await client.delete(url, headers={_SESSION: session})


def _is_form(request: httpx2.Request) -> bool:
    """Whether this is a request for a token, which does not go to the MCP server."""
    return request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded")


def _task_of(request: httpx2.Request) -> str:
    """The id of the task that a request concerns; "" if there is none."""
    if request.method != "POST" or b'"tasks/' not in request.content:
        return ""
    try:
        match json.loads(request.content):
            case {"method": str(method), "params": {"taskId": str(task)}} if method.startswith(
                "tasks/"
            ):
                return task
    except ValueError:
        pass
    return ""


def _request_of(request: httpx2.Request) -> tuple[str, Any]:
    """A request's HTTP method and its message's id, which is None unless a reply is expected."""
    try:
        message = json.loads(request.content) if request.method == "POST" else {}
    except ValueError:
        message = {}
    return request.method, message.get("id") if "method" in message else None


async def _refusal(response: httpx2.Response, settings: ServerSettings) -> HttpRefusal | None:
    """The refusal, with the readable words of its page; None for an error within the protocol."""
    body = ""
    try:
        async with asyncio.timeout(_PAGE_S):
            body = (await response.aread()).decode("utf-8", "replace")
    except Exception:  # noqa: BLE001 - an unreadable page explains nothing
        body = ""
    error = _rpc_error(body)
    status = response.status_code
    text = words(body, _MOST_SHOWN)
    for secret in _secrets(response.request, settings):
        text = text.replace(secret, "…")
    is_lost = (
        _SESSION in response.request.headers
        and error.get("code") not in _KNOWN
        and (status == 404 or (status == 400 and "session" in text.lower()))
    )
    is_json = response.headers.get("content-type", "").lower().startswith("application/json")
    if error and is_json and not is_lost and status not in (401, 403):
        return None
    phrase = response.reason_phrase
    whole = f"HTTP {status} {phrase}{f': {text}' if text and text != phrase else ''}"
    return HttpRefusal(status, whole + _what_to_do(response, settings), is_lost)


def _rpc_error(body: str) -> dict[str, Any]:
    """The error in a JSON-RPC reply; empty for any other page."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    error = value.get("error") if isinstance(value, dict) and "jsonrpc" in value else None
    return error if isinstance(error, dict) else {}


def _secrets(request: httpx2.Request, settings: ServerSettings) -> list[str]:
    """The secrets in a request's headers; a server may send them back, so never show them."""
    values = (request.headers.get("authorization", ""), *settings.headers.values())
    return [text for value in values for text in (value, value.rpartition(" ")[2]) if len(text) > 5]


def _what_to_do(response: httpx2.Response, settings: ServerSettings) -> str:
    from parley.mcp.sign_in import lacking_scope

    where, status = f"mcp.servers.{settings.name}", response.status_code
    if settings.takes_logins and (scope := lacking_scope(response)):
        return f". What to do: {again(settings.name, scope)}"
    if status == 407:
        return PROXY_HINT
    if status == 401 and settings.token_command:
        return f". What to do: make {where}.token_command print a token that the server accepts"
    if status == 401 and not settings.takes_logins:
        return f". What to do: set {where}.headers.Authorization to a value that the server accepts"
    if status == 401:
        by_hand = f"{where}.headers.Authorization or {where}.token_command"
        return f". What to do: :ParleyLogin {settings.name}, or set {by_hand}"
    return ""


async def _token(settings: ServerSettings, environ: Mapping[str, str]) -> str:
    """The token that the server's token command prints; "" without such a command."""
    if not settings.token_command:
        return ""
    try:
        return await command_secret(settings.token_command, environ)
    except SecretError as error:
        raise ServerError(f"mcp.servers.{settings.name}.token_command: {error}") from error


def _bearer(first: str, settings: ServerSettings, environ: Mapping[str, str]) -> httpx2.Auth:
    """Adds the token to each request; if the token is refused, runs the command once to obtain
    another token.
    """
    import httpx2

    class Bearer(httpx2.Auth):
        token = first

        async def async_auth_flow(
            self, request: httpx2.Request
        ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
            token = self.token
            request.headers["Authorization"] = f"Bearer {token}"
            response = yield request
            if response.status_code != 401:
                return
            if token == self.token:  # no other request has fetched a new token yet
                self.token = await _token(settings, environ)
            if token != self.token:
                request.headers["Authorization"] = f"Bearer {self.token}"
                yield request

    return Bearer()


@asynccontextmanager
async def _events(url: str, client: httpx2.AsyncClient) -> AsyncIterator[tuple[Any, Any]]:
    """The transport of revision 2024-11-05: its event stream contains the address to post to.

    The SDK's own transport rejects events over 1 MB, and falls silent when a request is refused.
    """
    import anyio
    import httpx2
    from anyio.abc import TaskStatus
    from mcp.shared.message import SessionMessage
    from mcp_types import ErrorData, JSONRPCError, JSONRPCRequest

    inbox, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, outbox = anyio.create_memory_object_stream[SessionMessage](0)

    async def listen(*, task_status: TaskStatus[str]) -> None:
        async with client.stream("GET", url, headers={"accept": "text/event-stream"}) as response:
            response.raise_for_status()
            place = ""
            source = httpx2.EventSource(response, max_event_size=lines.LINE_BYTES)
            async with closing(aiter(source)) as events:
                async for event in events:
                    if event.event == "endpoint" and not place:
                        place = _endpoint(url, event.data)
                        task_status.started(place)
                    elif event.event == "message" and event.data:
                        await inbox.send(_message(event.data))
            if not place:
                raise ServerError("the server gave no address for requests")
        inbox.close()  # the connection ends with the events

    async def post(place: str) -> None:
        async for item in outbox:
            message = item.message
            content = message.model_dump(by_alias=True, mode="json", exclude_unset=True)
            response = await client.post(place, json=content)
            if response.is_error and isinstance(message, JSONRPCRequest):
                error = ErrorData(code=-32603, message=f"HTTP {response.status_code}")
                await inbox.send(
                    SessionMessage(JSONRPCError(jsonrpc="2.0", id=message.id, error=error))
                )

    async with inbox, read, write, outbox, anyio.create_task_group() as tasks:
        place = await tasks.start(listen)
        tasks.start_soon(post, place)
        yield read, write
        tasks.cancel_scope.cancel()


def _message(data: str) -> Any:
    """An event's message, or the error if it is invalid."""
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(data, by_name=False))
    except ValueError as error:
        return error


def _endpoint(url: str, path: str) -> str:
    """The address to post to, on the same host. Raises ServerError if the address is on another
    host.
    """
    import httpx2

    here = httpx2.URL(url)
    place = here.join(path)
    if (place.scheme, place.host, place.port) != (here.scheme, here.host, here.port):
        address = shown_address(str(place.copy_with(query=None)))
        raise ServerError(f"it wants requests sent to another host: {address}")
    return str(place)
