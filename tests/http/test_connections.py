"""Parley's own connections, with a real client and real servers."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import repeat
from pathlib import Path

import httpx2
import pytest

from parley.http.connections import MOST_UNREAD, hasten
from tests.local_server import LocalServer
from tests.raw_server import RawServer
from tests.ways_there import Authority

pytestmark = pytest.mark.asyncio(loop_scope="module")

HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
PIECE = b"4\r\nword\r\n"


class PacedServer(LocalServer):
    """Sends pieces with pauses of some seconds, and keeps the connection."""

    def __init__(self, pauses: list[float], *, ends: bool = True) -> None:
        super().__init__()
        self._pauses = pauses
        self._ends = ends

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(HEAD)
            for pause in self._pauses:
                await asyncio.sleep(pause)
                writer.write(PIECE)
            writer.write(b"0\r\n\r\n" if self._ends else b"")


@asynccontextmanager
async def client(
    seconds: float | None = 20, verify: ssl.SSLContext | bool = True
) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(timeout=seconds, verify=verify, trust_env=False) as made:
        hasten(made)
        yield made


async def pieces(at: httpx2.AsyncClient, url: str) -> list[bytes]:
    async with at.stream("GET", url) as response:
        # Fails if a new httpx2 no longer has the attributes that `hasten` sets.
        stream = response.extensions["network_stream"]
        assert type(stream).__module__ == "parley.http.connections"
        assert stream.get_extra_info("server_addr")[0] == "127.0.0.1"
        assert stream.get_extra_info("client_addr")[0] == "127.0.0.1"
        return [piece async for piece in response.aiter_bytes()]


async def test_one_timer_serves_many_pieces_and_limits_each_pause() -> None:
    async with PacedServer([0.05] * 10) as server, client(0.3) as at:
        assert b"".join(await pieces(at, server.url)) == b"word" * 10
        await asyncio.sleep(0.4)  # the timer of the last piece ends meanwhile
        assert len(await pieces(at, server.url)) == 10
        assert server.connections == 1
    async with PacedServer([0, 0.6]) as server, client(0.2) as at:
        with pytest.raises(httpx2.ReadTimeout):
            await pieces(at, server.url)
        short = httpx2.Timeout(20, read=0.1)
        with pytest.raises(httpx2.ReadTimeout):
            await at.get(server.url, timeout=short)
    async with PacedServer([0, 0.1]) as server, client(None) as at:
        assert len(await pieces(at, server.url)) == 2


async def test_over_tls_and_not_with_a_strangers_certificate(tmp_path: Path) -> None:
    authority = Authority.new(tmp_path)
    trusting = ssl.create_default_context(cafile=authority.certificate)
    server = PacedServer([0.01] * 3)
    server.tls = authority.context()
    async with server, client(verify=trusting) as at, client() as stranger, client(0.2) as hasty:
        assert b"".join(await pieces(at, server.url)) == b"word" * 3
        with pytest.raises(httpx2.ConnectError, match="certificate verify failed"):
            await stranger.get(server.url)
        async with PacedServer([]) as silent:  # waits for a request instead of a handshake
            with pytest.raises(httpx2.ConnectTimeout):
                await hasty.get(silent.url.replace("http:", "https:"))


async def test_a_connection_that_the_server_has_closed_is_not_used_again() -> None:
    async with PacedServer([0]) as server, client() as at:
        await pieces(at, server.url)
        await server.hang_up()
        await pieces(at, server.url)
        assert server.connections == 2


async def test_a_server_has_to_wait_for_a_slow_reader() -> None:
    size, chunk = 1 << 14, b"4000\r\n" + bytes(1 << 14) + b"\r\n"
    async with RawServer() as server, client() as at:
        server.plan([HEAD, *repeat(chunk, 4_000), b"0\r\n\r\n"])
        async with at.stream("GET", server.url) as response:
            arriving = response.aiter_bytes()
            await anext(arriving)
            before = -1
            while before != server.size:
                before = server.size
                await asyncio.sleep(0.1)
            assert server.size < 1_000 * size
            connection = response.extensions["network_stream"]
            assert len(connection._arrivals.unread) < MOST_UNREAD + (1 << 18)
            assert sum([len(piece) async for piece in arriving]) > 3_900 * size


async def test_failures_are_those_of_httpx2() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
    async with client() as at, client(0.2) as hasty:
        with pytest.raises(httpx2.ConnectError, match="All connection attempts failed"):
            await at.get(url)
        with pytest.raises(httpx2.ConnectError):
            await at.get("http://no.such.host.invalid")
        with socket.create_server(("127.0.0.1", 0)) as deaf:  # accepts no connection
            url = f"http://127.0.0.1:{deaf.getsockname()[1]}"
            with pytest.raises(httpx2.WriteTimeout):
                await hasty.post(url, content=bytes(1 << 26))
        async with PacedServer([0, 20]) as server, at.stream("GET", server.url) as response:
            arriving = response.aiter_bytes()
            assert await anext(arriving) == b"word"
            response.extensions["network_stream"]._transport.abort()
            with pytest.raises(httpx2.TransportError):
                await anext(arriving)


async def test_a_client_without_the_usual_attributes_stays_as_it_is() -> None:
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(None)) as at:  # type: ignore[arg-type]
        hasten(at)
    async with httpx2.AsyncClient(proxy="http://127.0.0.1:1", trust_env=False) as at:
        hasten(at)
        with pytest.raises(httpx2.ConnectError):
            await at.get("http://127.0.0.1:2")
