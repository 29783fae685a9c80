"""Endless or oversized responses, and redirects to other addresses, with the real SDK clients."""

from __future__ import annotations

import gzip
import itertools
import struct
import tracemalloc
import zlib
from collections.abc import Iterable
from functools import cache

import pytest

from parley.errors import ModelError
from parley.models.events import TextDelta
from parley.models.request import Request
from parley.providers.client import ProviderClient
from parley.providers.sdk_imports import warm
from tests.faulty_providers import FORMATS, KEY, QUESTION, FaultyProviders, check_message
from tests.faulty_server import SAYS, STREAM, Response
from tests.http.far_server import no_tools, remote
from tests.raw_server import RawServer

pytestmark = pytest.mark.asyncio(loop_scope="module")

MB = 1 << 20
GZIP = {"content-encoding": "gzip"}
JSON = {"content-type": "application/json"}


@cache
def bomb(size: int, piece: bytes = b" " * MB, start: bytes = b"") -> bytes:
    """A small gzip (RFC 1952) of `size` decompressed bytes; it repeats one compressed piece."""
    count = size // len(piece)
    check = zlib.crc32(start)
    for _ in range(count):
        check = zlib.crc32(piece, check)
    length = len(start) + count * len(piece)
    header, end = (
        b"\x1f\x8b\x08" + bytes(5) + b"\x02\xff",
        zlib.compressobj(wbits=-zlib.MAX_WBITS).flush(),
    )
    return b"".join(
        [header, _block(start), _block(piece) * count, end, struct.pack("<II", check, length)]
    )


def _block(data: bytes) -> bytes:
    """Compressed independently of the data before it."""
    packer = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush(zlib.Z_FULL_FLUSH)


ERROR = b'{"error":{"message":"so sorry'


@pytest.fixture(scope="module", autouse=True)
def imported() -> None:
    """Import the SDKs, which takes memory and time."""
    for kind in ("anthropic", "openai"):
        warm(kind, builtin=False, has_tls=False)


class Peak:
    """The peak memory during some work, in MB."""

    def __enter__(self) -> Peak:
        tracemalloc.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self.mb = tracemalloc.get_traced_memory()[1] / MB
        tracemalloc.stop()


@pytest.mark.parametrize("status", [400, 529, 200])
@pytest.mark.parametrize("content_type", ["application/json", "text/html"])
@pytest.mark.parametrize("kind", FORMATS)
async def test_a_decompression_bomb_takes_little_memory(
    faulty: FaultyProviders, kind: str, content_type: str, status: int
) -> None:
    headers = {"content-type": content_type, "x-should-retry": "false", **GZIP}
    faulty.plan(Response([bomb(400 * MB, start=ERROR)], status, headers))
    with Peak() as peak:
        error = await faulty.fail(faulty.provider(kind))
    check_message(error, "faulty answered 4" if status == 400 else "faulty ")
    assert ("so sorry" in str(error)) == (status != 200)
    assert peak.mb < 60


@pytest.mark.parametrize("kind", FORMATS)
async def test_a_compressed_reply_is_read(faulty: FaultyProviders, kind: str) -> None:
    content = gzip.compress(b"".join(SAYS[kind]("Whole")))
    faulty.plan(Response([content[:9], content[9:]], 200, {**STREAM, **GZIP}))
    assert TextDelta("Whole") in await faulty.say(faulty.provider(kind))
    assert "accept-encoding: gzip\r\n" in faulty.server.heads[-1]


@pytest.mark.parametrize("wbits", [zlib.MAX_WBITS, -zlib.MAX_WBITS], ids=["zlib", "raw"])
@pytest.mark.parametrize("cut", [0, 1, 2, 9])
async def test_a_reply_in_deflate_is_read_although_not_requested(
    faulty: FaultyProviders, cut: int, wbits: int
) -> None:
    packer = zlib.compressobj(wbits=wbits)
    content = packer.compress(b"".join(SAYS["chat"]("Whole"))) + packer.flush()
    faulty.plan(
        Response([content[:cut], content[cut:]], 200, {**STREAM, "content-encoding": "Deflate"})
    )
    assert TextDelta("Whole") in await faulty.say(faulty.provider("chat"))


async def test_an_error_page_in_deflate_is_read(faulty: FaultyProviders) -> None:
    faulty.plan(
        Response([zlib.compress(ERROR + b'"}}')], 400, {**JSON, "content-encoding": "deflate"})
    )
    check_message(await faulty.fail(faulty.provider("chat")), "faulty answered 400: so sorry")


@pytest.mark.parametrize("packed", ["br", "zstd", "gzip, gzip", "gzip", "deflate"])
async def test_a_reply_in_another_encoding_is_reported(
    faulty: FaultyProviders, packed: str
) -> None:
    faulty.plan(
        Response([b"\x1b\x7f nothing that unpacks"], 200, {**STREAM, "content-encoding": packed})
    )
    check_message(await faulty.fail(faulty.provider("chat")), "faulty sent an unreadable response")
    assert len(faulty.server.requests) == 1


async def test_a_stream_with_only_comments_ends(faulty: FaultyProviders) -> None:
    comments = bomb(200 * MB, piece=b":" + b" " * (MB - 2) + b"\n")
    faulty.plan(Response([comments], 200, {**STREAM, **GZIP}))
    with Peak() as peak:
        error = await faulty.fail(faulty.provider("chat"))
    check_message(error, "faulty sent an unreadable response (it sent more than 134.2 MB)")
    assert peak.mb < 60
    assert len(faulty.server.requests) == 1


@pytest.mark.parametrize("kind", FORMATS)
async def test_an_unstreamed_reply_is_limited(faulty: FaultyProviders, kind: str) -> None:
    faulty.plan(Response([bomb(100 * MB, start=b"{")], 200, {**JSON, **GZIP}))
    with (
        pytest.raises(ModelError, match="answered with application/json") as caught,
        Peak() as peak,
    ):
        async for _ in faulty.client.once(
            faulty.provider(kind), Request(QUESTION, 0, "faulty", "m")
        ):
            pass
    assert "more than 16777216 bytes" in str(caught.value.__cause__)
    assert peak.mb < 60


def without_end(*start: bytes, piece: bytes) -> Iterable[bytes]:
    return itertools.chain(start, itertools.repeat(piece))


HEADS = {
    "a header line": (b"HTTP/1.1 200 OK\r\nx-long: ", b"x" * 10_000),
    "headers": (b"HTTP/1.1 200 OK\r\n", b"x-more: of it\r\n" * 1000),
    "a status line": (b"HTTP/1.1 200 ", b"OK " * 1000),
    "no HTTP at all": (b"", b"SSH-2.0-OpenSSH\n" * 1000),
    "a size of a chunk": (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", b"0" * 10_000),
    "trailers": (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n", b"x: y\r\n" * 1000),
}


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("kind", ["anthropic", "chat"])
async def test_an_endless_head_is_read_up_to_a_limit(
    faulty: FaultyProviders, kind: str, head: str
) -> None:
    start, piece = HEADS[head]
    async with RawServer() as server:
        server.plan(without_end(start, piece=piece))
        error = await faulty.fail(faulty.provider(kind, base_url=server.url))
        check_message(error, "faulty ")
        assert server.size < 40 * MB  # in four tries, including the kernel's buffers


async def test_a_response_with_only_a_head_is_not_awaited_forever(
    faulty: FaultyProviders,
) -> None:
    async with RawServer() as server:
        server.plan(without_end(piece=b"HTTP/1.1 103 Early Hints\r\n\r\n" * 10))
        client = ProviderClient(
            {"FAULTY_KEY": KEY}, faulty.client._builtin_url, idle_s=0.03, sleep=faulty.client._sleep
        )
        with pytest.raises(ModelError) as caught:
            await anext(
                client.stream(
                    faulty.provider("chat", base_url=server.url),
                    Request(QUESTION, 0, "", "m"),
                    print,
                )
            )
        await client.close()
    check_message(caught.value, "faulty did not answer in time")


# --- MCP over HTTP --------------------------------------------------------------------------------


PACKED = {
    "a reply": (200, JSON, b"{"),
    "an error": (400, JSON, ERROR),
    "an event": (200, STREAM, b"data: "),
    "a page": (200, {"content-type": "text/html"}, ERROR),
}


@pytest.mark.parametrize("what", PACKED)
async def test_a_servers_decompressed_response_is_limited(
    faulty: FaultyProviders, what: str
) -> None:
    status, headers, start = PACKED[what]
    faulty.plan(Response([bomb(400 * MB, start=start)], status, {**headers, **GZIP}))
    with Peak() as peak:
        error = await no_tools(remote(faulty.server.url))
    assert error.startswith("MCP server 'far'")
    assert len(error) < 1000
    assert peak.mb < 300
