"""A local port to which the browser is sent back once from a page, with the right `state`.

Knows a little HTTP, and that only a request with the right `state` counts; does not know the page's
purpose.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Mapping
from types import TracebackType
from typing import Self
from urllib.parse import parse_qsl, urlsplit

from parley.errors import ParleyError

_HOST, PATH = "127.0.0.1", "/callback"
_REQUEST_S = 10.0
_NOTHING = "404 Not Found", "There is nothing here"
_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Parley</title>
<body style="font-family: sans-serif; margin: 4em"><h1>{}</h1><p>You can close this page.</p></body></html>
"""


class Loopback:
    """Listens for one answer, and closes after the answer or when this context ends. Port 0 stands
    for any free port; `host` is this machine's name in the address.
    """

    def __init__(self, port: int = 0, host: str = _HOST) -> None:
        self._port = port
        self._host = host
        self._answer: asyncio.Future[Mapping[str, str]] = asyncio.get_running_loop().create_future()
        self._state = ""
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        try:
            self._server = await asyncio.start_server(self._serve, _HOST, self._port)
        except OSError as error:
            place = f"{_HOST}:{self._port}" if self._port else _HOST
            why = os.strerror(error.errno or 0)
            raise ParleyError(f"cannot listen on {place} for the browser: {why}") from error
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._server is not None:
            self._server.close()
        self._answer.cancel()

    @property
    def url(self) -> str:
        """The address to which the browser must return."""
        assert self._server
        return f"http://{self._host}:{self._server.sockets[0].getsockname()[1]}{PATH}"

    async def answer(self, state: str) -> Mapping[str, str]:
        """The parameters of the browser's request with this state; refuses all other requests."""
        self._state = state
        return await self._answer

    def take(self, address: str) -> bool:
        """Take the address at which the user's browser ended, because it runs on another machine;
        return whether it has the right `state`.
        """
        try:
            parts = urlsplit(address)
        except ValueError:
            return False
        return self._received(parts.path, parts.query)[0].startswith("200")

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_REQUEST_S):
                head = await reader.readuntil(b"\r\n\r\n")
                status, title = self._take(head.split(b"\r\n")[0].decode("latin-1"))
                body = _PAGE.format(title).encode()
                writer.write(
                    f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\n"
                    f"Content-Length: {len(body)}\r\nCache-Control: no-store\r\n"
                    "Referrer-Policy: no-referrer\r\n"
                    "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'\r\n"
                    "Connection: close\r\n\r\n".encode()
                    + body
                )
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    def _take(self, line: str) -> tuple[str, str]:
        """The status and page title for the request with this first line."""
        method, _, rest = line.partition(" ")
        parts = urlsplit(rest.partition(" ")[0])
        if method != "GET":
            return _NOTHING
        return self._received(parts.path, parts.query)

    def _received(self, path: str, query: str) -> tuple[str, str]:
        if path != PATH or not self._state or self._answer.done():
            return _NOTHING
        answer = dict(parse_qsl(query))
        if not secrets.compare_digest(answer.get("state", "").encode(), self._state.encode()):
            return "400 Bad Request", "Parley did not request this"
        self._answer.set_result(answer)
        assert self._server
        self._server.close()  # later requests are not for us
        return (
            "200 OK",
            "The sign-in was refused" if "error" in answer else "Parley continues from here",
        )
