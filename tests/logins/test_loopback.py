"""The port for the browser: other programs of this machine, and pages, also send requests to it."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from parley.errors import ParleyError
from parley.logins.loopback import Loopback

STATE = "s" * 20


def port_of(loopback: Loopback) -> int:
    return int(loopback.url.split(":")[2].split("/")[0])


async def sent(port: int, head: bytes, host: str = "127.0.0.1") -> bytes:
    """The first line of the response."""
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(head)
    writer.write_eof()
    reply = await reader.read()
    writer.close()
    return reply.split(b"\r\n")[0]


@pytest.mark.parametrize(
    "head",
    [b"GET //[ HTTP/1.1\r\n\r\n", b"GET http://[::1 HTTP/1.1\r\n\r\n", b"GET\r\n\r\n", b"\r\n\r\n",
     b"\xff\x00\r\n\r\n", b"GET /callback?state=%ff%00 HTTP/1.1\r\n\r\n", b"GET /callback", b""],
)  # fmt: skip
async def test_no_request_is_an_error_that_anybody_reports(head: bytes) -> None:
    reported = list[dict[str, Any]]()
    asyncio.get_running_loop().set_exception_handler(lambda _, what: reported.append(what))
    async with Loopback() as loopback:
        answer = asyncio.ensure_future(loopback.answer(STATE))
        await asyncio.sleep(0)
        assert await sent(port_of(loopback), head) in (
            b"HTTP/1.1 404 Not Found", b"HTTP/1.1 400 Bad Request", b"")  # fmt: skip
        assert not answer.done()
        good = f"GET /callback?state={STATE}&code=1 HTTP/1.1\r\n\r\n".encode()
        assert await sent(port_of(loopback), good) == b"HTTP/1.1 200 OK"
        assert (await answer)["code"] == "1"
    assert reported == []


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
async def test_nobody_else_can_listen_for_the_other_address_of_localhost() -> None:
    """A browser may try ::1 first, and any user of the machine can listen there."""
    async with Loopback(host="localhost") as loopback:
        answer, port = asyncio.ensure_future(loopback.answer(STATE)), port_of(loopback)
        await asyncio.sleep(0)
        with socket.socket(socket.AF_INET6) as thief:
            thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with pytest.raises(OSError, match="in use"):
                thief.bind(("::1", port))
        good = f"GET /callback?state={STATE}&code=1 HTTP/1.1\r\n\r\n".encode()
        assert await sent(port, good, "::1") == b"HTTP/1.1 200 OK"
        assert (await answer)["code"] == "1"
        with pytest.raises(ConnectionError):
            await sent(port, good)


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
async def test_a_port_on_which_another_program_listens_is_not_used() -> None:
    with socket.socket(socket.AF_INET6) as thief:
        thief.bind(("::1", 0))
        thief.listen()
        with pytest.raises(ParleyError, match="::1 for the browser"):
            async with Loopback(thief.getsockname()[1], "localhost"):
                pass
