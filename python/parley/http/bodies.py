"""Safe HTTP responses: limited in size even when unpacked, and only from the requested origin.

Knows HTTP, but nothing about providers, servers or the meaning of their responses.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, TypeAlias

import httpx2

from parley.iterators import closing
from parley.text import size_text

HEADERS = {"accept-encoding": "gzip"}
"""Headers for a client that request an encoding that this module can unpack."""

MOST_OF_AN_ERROR = 65_536
"""The maximum length of an error page; more would not help the user."""

_PIECE = 1 << 20
_GZIP = 16 + zlib.MAX_WBITS
_HEADER = 2

Hook: TypeAlias = Callable[[httpx2.Response], Awaitable[None]]


def client_options() -> dict[str, Any]:
    """Headers, and a jar that never stores cookies: a non-ASCII cookie breaks later requests."""
    return {"headers": HEADERS, "cookies": CookieJar(DefaultCookiePolicy(allowed_domains=[]))}


class UnreadableError(httpx2.StreamError):
    """Raised if a body is too large, damaged, or in an encoding that was not requested."""


class ElsewhereError(httpx2.RequestError):
    """Raised instead of sending a request with a chat or a key to another address."""


def bounded(most: int, *, streams: bool) -> Hook:
    """A hook that limits a body to `most` unpacked bytes, and an error page to fewer.

    An error page is cut; any other body raises `UnreadableError`. If `streams` is false, event
    streams may be endless; set this only if the size of each event is limited.
    """

    async def bound(response: httpx2.Response) -> None:
        encoding = response.headers.pop("content-encoding", "").strip().lower()
        is_stream = response.headers.get("content-type", "").lower().startswith("text/event-stream")
        stream = response.stream
        assert isinstance(stream, httpx2.AsyncByteStream)
        if response.status_code >= 300:
            response.stream = _Bounded(stream, encoding, MOST_OF_AN_ERROR, cuts=True)
        else:
            response.stream = _Bounded(stream, encoding, most if streams or not is_stream else None)

    return bound


async def stay(response: httpx2.Response) -> None:
    """Refuse a redirect to another origin, and a redirect that would drop the request's body.

    307 and 308 repeat the request with its body; after 301, 302 and 303, clients send GET (RFC
    9110, 15.4, read 2026-11-22). An SDK's client follows all redirects, with its own headers, which
    contain keys.
    """
    if not response.has_redirect_location:
        return
    url = response.request.url
    try:
        there = url.join(response.headers["location"])
    except httpx2.InvalidURL as error:
        raise ElsewhereError(f"HTTP {response.status_code}: no address") from error
    is_same = (there.scheme, there.host, there.port) == (url.scheme, url.host, url.port)
    if not (is_same and response.status_code in (307, 308)):
        bare = there.copy_with(query=None, fragment=None, userinfo=b"")
        raise ElsewhereError(f"HTTP {response.status_code}: {bare}")


class _Bounded(httpx2.AsyncByteStream):
    """A body that is unpacked piece by piece, and counts its unpacked bytes."""

    def __init__(
        self, stream: httpx2.AsyncByteStream, encoding: str, most: int | None, *, cuts: bool = False
    ) -> None:
        self._stream = stream
        self._unpacked = _unpacking(encoding)
        self._most = most
        self._cuts = cuts

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async with closing(aiter(self._stream)) as arriving:
            async for packed in arriving:
                for piece in self._unpacked(packed):
                    size += len(piece)
                    if self._most is None or size <= self._most:
                        yield piece
                    elif self._cuts:
                        yield piece[: self._most - size]
                        return
                    else:
                        raise UnreadableError(f"it sent more than {size_text(self._most)}")

    async def aclose(self) -> None:
        await self._stream.aclose()


def _unpacking(encoding: str) -> Callable[[bytes], Iterator[bytes]]:
    if encoding in ("", "identity"):
        return lambda packed: iter((packed,))
    if encoding in ("gzip", "x-gzip"):
        return _inflating(lambda _: zlib.decompressobj(_GZIP))
    if encoding == "deflate":  # some servers send it unrequested
        return _inflating(
            lambda start: zlib.decompressobj(zlib.MAX_WBITS * (1 if _is_zlib(start) else -1))
        )
    return lambda _: _refused(
        f"it answered in the encoding {encoding[:20]!r}, which was not requested"
    )


def _refused(why: str) -> Iterator[bytes]:
    raise UnreadableError(why)


def _is_zlib(start: bytes) -> bool:
    """Whether data starts with an RFC 1950 header, which is missing in some "deflate" data (RFC
    9110, 8.4.1.2).
    """
    return start[0] & 0x0F == zlib.DEFLATED and int.from_bytes(start[:2], "big") % 31 == 0


def _inflating(unpacker_of: Callable[[bytes], Any]) -> Callable[[bytes], Iterator[bytes]]:
    """A function that unpacks a body piece by piece; the first two bytes select the method."""
    start, unpacker = b"", None

    def unpacked(packed: bytes) -> Iterator[bytes]:
        nonlocal start, unpacker
        if unpacker is None:
            start = packed = start + packed
            if len(start) < _HEADER:
                return
            unpacker = unpacker_of(start)
        try:
            while piece := unpacker.decompress(packed, _PIECE):
                yield piece
                packed = unpacker.unconsumed_tail
        except zlib.error as error:
            raise UnreadableError(f"it cannot be decompressed ({error})") from error

    return unpacked
