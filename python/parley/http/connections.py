"""Connections for `httpx2`, directly on asyncio.

For each piece of a reply, an `httpx2` connection opens a cancel scope, starts and cancels a timer, and
changes twice what the loop waits for. That takes longer than decoding and showing the piece. Here,
the loop keeps reading, up to a limit, and one timer serves many pieces. Connections through a proxy
remain as they are.
"""

from __future__ import annotations

import asyncio
import select
import socket
import ssl
from collections.abc import Iterable
from typing import Any

import httpcore2

MOST_UNREAD = 1 << 16
"""How many bytes may arrive before they are read; then the sender has to wait."""
_NEXT_ADDRESS_S = 0.25
"""After how long a host's next address is tried as well (RFC 8305, 8, read 2026-11-26)."""


def hasten(client: Any) -> None:
    """Have an `httpx2` client open such connections, unless they go through a proxy."""
    for transport in (client._transport, *client._mounts.values()):  # noqa: SLF001
        pool = getattr(transport, "_pool", None)
        # httpcore2 has an argument for this, but httpx2 does not pass it on. A client without these
        # attributes only stays slower.
        if type(pool) is httpcore2.AsyncConnectionPool and hasattr(pool, "_network_backend"):
            pool._network_backend = _Network()  # noqa: SLF001


class _Network(httpcore2.AsyncNetworkBackend):
    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore2's interface
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(timeout):
                transport, arrivals = await loop.create_connection(
                    lambda: _Arrivals(loop),
                    host,
                    port,
                    local_addr=(local_address, 0) if local_address else None,
                    happy_eyeballs_delay=_NEXT_ADDRESS_S,
                )
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout from error
        except socket.gaierror as error:
            raise httpcore2.ConnectError(str(error)) from error
        except OSError as error:
            raise httpcore2.ConnectError("All connection attempts failed") from error
        for option in socket_options or ():
            transport.get_extra_info("socket").setsockopt(*option)
        return _Connection(transport, arrivals)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class _Connection(httpcore2.AsyncNetworkStream):
    def __init__(self, transport: asyncio.Transport, arrivals: _Arrivals) -> None:
        self._transport = transport
        self._arrivals = arrivals

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        arrivals = self._arrivals
        if not arrivals.unread and not arrivals.is_over:
            await arrivals.wait(timeout)
        if not arrivals.unread and arrivals.failure:
            raise httpcore2.ReadError from arrivals.failure
        return arrivals.take(max_bytes)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        if not buffer:
            return
        if self._transport.is_closing():
            raise httpcore2.WriteError from self._arrivals.failure
        self._transport.write(buffer)
        try:
            async with asyncio.timeout(timeout):
                await self._arrivals.can_write.wait()
        except TimeoutError as error:
            raise httpcore2.WriteTimeout from error
        if self._arrivals.failure:
            raise httpcore2.WriteError from self._arrivals.failure

    async def aclose(self) -> None:
        self._arrivals.end_timer()
        self._transport.abort()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> httpcore2.AsyncNetworkStream:
        loop, transport = asyncio.get_running_loop(), None
        try:
            async with asyncio.timeout(timeout):
                transport = await loop.start_tls(
                    self._transport, self._arrivals, ssl_context, server_hostname=server_hostname
                )
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout from error
        except OSError as error:  # also errors of TLS
            raise httpcore2.ConnectError(str(error)) from error
        finally:
            if transport is None:
                await self.aclose()
        assert transport is not None
        self._arrivals.connection_made(transport)
        return _Connection(transport, self._arrivals)

    def get_extra_info(self, info: str) -> Any:
        match info:
            case "is_readable":  # an idle connection with something to read has been closed
                return bool(self._arrivals.unread) or self._arrivals.is_over or self._has_more()
            case "client_addr":
                return self._transport.get_extra_info("sockname")
            case "server_addr":
                return self._transport.get_extra_info("peername")
            case _:
                return self._transport.get_extra_info(info)

    def _has_more(self) -> bool:
        """Whether something has arrived that the loop has not read yet."""
        number = self._transport.get_extra_info("socket").fileno()
        if number < 0 or self._transport.is_closing():
            return True
        if not hasattr(select, "poll"):
            return False
        poll = select.poll()
        poll.register(number, select.POLLIN)
        return bool(poll.poll(0))


class _Arrivals(asyncio.Protocol):
    """Collects what arrives until it is read."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.unread = bytearray()
        self.is_over = False
        self.failure: Exception | None = None
        self.can_write = asyncio.Event()
        self.can_write.set()
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._is_paused = False
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._deadline = 0.0

    async def wait(self, seconds: float | None) -> None:
        """Return when something has arrived, or nothing more will. Raises ReadTimeout."""
        self._waiter = self._loop.create_future()
        if seconds is not None:
            self._deadline = self._loop.time() + seconds
            if self._timer and self._timer.when() > self._deadline:
                self.end_timer()
            self._timer = self._timer or self._loop.call_at(self._deadline, self._check)
        else:
            self.end_timer()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def take(self, most: int) -> bytes:
        """What has arrived, up to a number of bytes."""
        taken = bytes(self.unread[:most])
        del self.unread[:most]
        if self._is_paused and len(self.unread) < MOST_UNREAD and self._transport:
            self._is_paused = False
            self._transport.resume_reading()
        return taken

    def end_timer(self) -> None:
        """End the time limit."""
        if self._timer:
            self._timer.cancel()
            self._timer = None

    def _check(self) -> None:
        """If a read has waited for too long, let it fail. A timer outlasts the read that started it."""
        self._timer = None
        if self._waiter and not self._waiter.done():
            if self._deadline > self._loop.time():
                self._timer = self._loop.call_at(self._deadline, self._check)
            else:
                self._waiter.set_exception(httpcore2.ReadTimeout())

    def _wake(self) -> None:
        if self._waiter and not self._waiter.done():
            self._waiter.set_result(None)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self.unread += data
        if len(self.unread) >= MOST_UNREAD and self._transport and not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        self.is_over = True
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_over, self.failure = True, exc
        self.end_timer()
        self.can_write.set()
        self._wake()

    def pause_writing(self) -> None:
        self.can_write.clear()

    def resume_writing(self) -> None:
        self.can_write.set()
