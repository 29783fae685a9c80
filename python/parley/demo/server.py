"""The demo server: routes, pacing and the socket. Other modules decide refusals and replies.

A stream ends immediately when its client disconnects or the server stops.
"""

import argparse
import asyncio
import json
import socket
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from parley.demo import PACE_HEADER
from parley.demo.dialogue import TEXT_ONLY, Dialogue, Reply
from parley.demo.reading import has_pictures, read_anthropic, read_chat, read_responses
from parley.demo.replies import reply
from parley.demo.wire import anthropic, openai_chat, openai_responses
from parley.demo.wire.frames import CREATED
from parley.errors import reason_of
from parley.frozen import frozen

PACE = 0.02
_REMEMBERED = 50
_NOT_JSON = "The request body is not valid JSON: {}"
_UNREADABLE = "The request body is not valid for this API: {}"
_MODELS = ("demo", TEXT_ONLY)
_RATE_HEADERS = {
    "x-ratelimit-limit-requests": "1000",
    "x-ratelimit-remaining-requests": "999",
    "anthropic-ratelimit-requests-limit": "1000",
    "anthropic-ratelimit-requests-remaining": "999",
}

Body = Mapping[str, Any]
Check = Callable[[str, Body, Mapping[str, str]], Sequence[str]]
"""The reasons to refuse a request, by its path, body and headers."""


@frozen
class Api:
    """A format's functions, which read, answer and refuse a request."""

    read: Callable[[Body], Dialogue]
    whole: Callable[[Reply, Body], dict[str, Any]]
    stream: Callable[[Reply, Body], Iterator[str]]
    refusal: Callable[[str], dict[str, Any]]


def _anthropic_refusal(message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": "invalid_request_error", "message": message}}


def _openai_refusal(message: str) -> dict[str, Any]:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
    return {"error": error}


APIS: Mapping[str, Api] = {
    "/v1/messages": Api(read_anthropic, anthropic.whole, anthropic.stream, _anthropic_refusal),
    "/v1/chat/completions": Api(read_chat, openai_chat.whole, openai_chat.stream, _openai_refusal),
    "/v1/responses": Api(
        read_responses, openai_responses.whole, openai_responses.stream, _openai_refusal
    ),
}


class Service:
    """The handlers and their shared state: the pace, the last requests and the open streams."""

    def __init__(self, pace: float, check: Check | None) -> None:
        self.pace = pace
        self.check = check
        self.requests: deque[tuple[str, dict[str, Any]]] = deque(maxlen=_REMEMBERED)
        self.streaming = 0

    async def answer(self, request: Request) -> Response:
        api = APIS[request.url.path]
        body = _body(await request.body())
        if isinstance(body, str):
            return JSONResponse(api.refusal(body), 400)
        self.requests.append((request.url.path, body))
        if self.check and (reasons := self.check(request.url.path, body, request.headers)):
            return JSONResponse(api.refusal(reasons[0]), 400)
        if body.get("model") == TEXT_ONLY and body.get(
            "tools"
        ):  # in Ollama's words: ollama/ollama#10444
            return JSONResponse(api.refusal(f'"{TEXT_ONLY}" does not support tools'), 400)
        try:
            conversation = api.read(body)
            if body["model"] == TEXT_ONLY and has_pictures(
                body
            ):  # in Ollama's words: ollama/ollama#17301
                return JSONResponse(api.refusal("this model does not support image input"), 400)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            return JSONResponse(api.refusal(_UNREADABLE.format(repr(error))), 400)
        model_reply = reply(conversation)
        if not body.get("stream"):
            return JSONResponse(api.whole(model_reply, body), headers=_RATE_HEADERS)
        frames = self._paced(api.stream(model_reply, body), _pace(request, self.pace))
        return StreamingResponse(frames, media_type="text/event-stream", headers=_RATE_HEADERS)

    async def _paced(self, frames: Iterator[str], pace: float) -> AsyncIterator[str]:
        self.streaming += 1
        try:
            for frame in frames:
                yield frame
                await asyncio.sleep(pace)
        finally:
            self.streaming -= 1


def create_app(pace: float = PACE, *, check: Check | None = None) -> Starlette:
    """The app; `pace` is the number of seconds between pieces. `app.state.service` has the state.

    `check` returns the reasons to refuse a request; the first reason is sent as the refusal.
    """
    service = Service(pace, check)
    routes = [Route(path, service.answer, methods=["POST"]) for path in APIS]
    routes += [Route("/v1/models", _models), Route("/health", _health)]
    app = Starlette(routes=routes)
    app.state.service = service
    return app


def _body(raw: bytes) -> dict[str, Any] | str:
    """The request's JSON object, or the reason why its body is not a JSON object."""
    try:
        body = json.loads(raw)
    except ValueError as error:
        return _NOT_JSON.format(error)
    return body if isinstance(body, dict) else _NOT_JSON.format("expected an object")


def _pace(request: Request, default: float) -> float:
    try:
        return max(0.0, float(request.headers[PACE_HEADER]))
    except (KeyError, ValueError):
        return default


async def _health(_: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def _models(_: Request) -> Response:
    """One list for both SDKs; each reads the fields that it knows."""
    models = [
        {
            "id": name,
            "object": "model",
            "created": CREATED,
            "owned_by": "parley",
            "type": "model",
            "display_name": name,
            "created_at": "2026-09-21T14:13:20Z",
            "lifecycle": "active",
        }
        for name in _MODELS
    ]
    page = {"first_id": _MODELS[0], "last_id": _MODELS[-1], "has_more": False}
    return JSONResponse({"object": "list", "data": models} | page)


class DemoServer:
    """A running server; created by `start`, and stopped by `stop` or at the end of `async with`."""

    def __init__(self, app: Starlette, server: uvicorn.Server, url: str) -> None:
        self.url = url
        self._service: Service = app.state.service
        self._server = server

    @property
    def requests(self) -> list[tuple[str, dict[str, Any]]]:
        """The last requests as (path, body), including refused requests, oldest first."""
        return list(self._service.requests)

    @property
    def streaming(self) -> int:
        """The number of streams that are being sent now."""
        return self._service.streaming

    async def stop(self) -> None:
        """Close the socket and every connection, even in the middle of a stream."""
        state = self._server.server_state
        for listener in self._server.servers:
            listener.close()
        running = list(state.tasks)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        for connection in list(state.connections):
            if connection.transport is not None:
                connection.transport.abort()
        await asyncio.sleep(0)  # an aborted connection ends in the event loop's next iteration

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()


async def start(
    host: str = "127.0.0.1", port: int = 0, pace: float = PACE, *, check: Check | None = None
) -> DemoServer:
    """Serve on the running loop, without signal handlers or logs; port 0 means any free port.

    uvicorn's own `serve` handles signals and checks every tenth of a second whether to exit, so
    only its startup and its protocol are used. Raises OSError if the port is in use.
    """
    listener = _listen(host, port)
    app = create_app(pace, check=check)
    config = uvicorn.Config(
        app,
        log_config=None,
        log_level="critical",
        access_log=False,
        lifespan="off",
        http="h11",
        ws="none",
        date_header=False,
    )
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup(sockets=[listener])
    return DemoServer(app, server, f"http://{host}:{listener.getsockname()[1]}")


def _listen(host: str, port: int) -> socket.socket:
    """A listening socket with an explicit protocol, for which asyncio disables Nagle's
    algorithm."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except OSError:
        listener.close()
        raise
    return listener


def main(argv: Sequence[str]) -> int:
    """`python -m parley.demo [--port N] [--pace SECONDS]`: serve until Ctrl-C."""
    parser = argparse.ArgumentParser(
        prog="python -m parley.demo", description="Parley's demo model server."
    )
    parser.add_argument(
        "--port", type=int, default=8127, help="0 takes any free port (default %(default)s)"
    )
    parser.add_argument(
        "--pace", type=float, default=PACE, help="seconds between pieces (default %(default)s)"
    )
    options = parser.parse_args(argv)
    try:
        serve(options.port, options.pace, lambda text: print(text, flush=True))  # noqa: T201 - to a shell
    except OSError as error:
        sys.stderr.write(f"parley: cannot listen on port {options.port}: {reason_of(error)}\n")
        return 1
    return 0


def serve(port: int, pace: float, say: Callable[[str], None]) -> None:
    """Print the variables to set in a shell, and serve until Ctrl-C. Raises OSError if the server
    cannot listen."""
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve(port, pace, say))


async def _serve(port: int, pace: float, say: Callable[[str], None]) -> None:
    async with await start(port=port, pace=pace) as server:
        say(
            f"Demo server: {server.url} (Ctrl-C stops it)\n"
            f"export ANTHROPIC_BASE_URL={server.url}\n"
            f"export OPENAI_BASE_URL={server.url}/v1"
        )
        await asyncio.Event().wait()
