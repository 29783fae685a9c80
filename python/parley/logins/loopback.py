"""A local port to which the browser is sent back once from a page, with the right `state`.

Knows a little HTTP, and that only a request with the right `state` counts; does not know the page's
purpose.
"""

from __future__ import annotations

import asyncio
import errno
import os
import secrets
from collections.abc import Mapping
from types import TracebackType
from typing import Self
from urllib.parse import parse_qsl, urlsplit

from parley.errors import ParleyError

_HOST, PATH = "127.0.0.1", "/callback"
_OTHER_HOST = "::1"
_TRIES = 5
"""How many ports are tried."""
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
        self._servers = list[asyncio.Server]()

    async def __aenter__(self) -> Self:
        for _ in range(_TRIES):
            try:
                self._servers.append(await asyncio.start_server(self._serve, _HOST, self._port))
            except OSError as error:
                place = f"{_HOST}:{self._port}" if self._port else _HOST
                why = os.strerror(error.errno or 0)
                raise ParleyError(f"cannot listen on {place} for the browser: {why}") from error
            if self._host == _HOST or await self._has_other_address():
                return self
            self._close()
        raise ParleyError(f"cannot listen on {_OTHER_HOST} for the browser: its ports are in use")

    async def _has_other_address(self) -> bool:
        """Listen also for the other address of `localhost`, which a browser may try first; false if
        another program, perhaps another user's, listens there.
        """
        try:
            self._servers.append(
                await asyncio.start_server(self._serve, _OTHER_HOST, self._own_port)
            )
        except OSError as error:
            return error.errno != errno.EADDRINUSE  # a machine without IPv6 has no such address
        return True

    def _close(self) -> None:
        for server in self._servers:
            server.close()
        self._servers.clear()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()
        self._answer.cancel()

    @property
    def url(self) -> str:
        """The address to which the browser must return."""
        return f"http://{self._host}:{self._own_port}{PATH}"

    @property
    def _own_port(self) -> int:
        return int(self._servers[0].sockets[0].getsockname()[1])

    async def answer(self, state: str) -> Mapping[str, str]:
        """The parameters of the browser's request with this state; refuses all other requests."""
        self._state = state
        return await self._answer

    def take(self, address: str) -> bool:
        """Take the address of the last page of a browser on another machine; return whether it has
        the right `state`.
        """
        return self._received(address)[0].startswith("200")

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
        return self._received(rest.partition(" ")[0]) if method == "GET" else _NOTHING

    def _received(self, address: str) -> tuple[str, str]:
        try:
            parts = urlsplit(address)
        except ValueError:
            return _NOTHING
        if parts.path != PATH or not self._state or self._answer.done():
            return _NOTHING
        answer = dict(parse_qsl(parts.query))
        if not secrets.compare_digest(answer.get("state", "").encode(), self._state.encode()):
            return "400 Bad Request", "Parley did not request this"
        self._answer.set_result(answer)
        self._close()  # later requests are not for us
        return (
            "200 OK",
            "The sign-in was refused" if "error" in answer else "Parley continues from here",
        )
