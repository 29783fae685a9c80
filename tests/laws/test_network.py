"""The law of the network: a failure's message is the same through a proxy, over TLS, both or
neither.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from parley.errors import ModelError
from parley.models.request import Request
from parley.providers.client import ProviderClient
from parley.settings.values import ProviderSettings
from tests.examples import examples
from tests.faulty_providers import FORMATS, IDLE_S, QUESTION, begun, refusal
from tests.faulty_server import FaultyServer, Part, Response
from tests.local_server import LocalServer
from tests.ways_there import FAR, Authority, ProxyServer


@dataclass(frozen=True)
class Fault:
    """A failure: a server's response, immediate bytes instead of it, or an unusable address.

    `proxy` is a proxy's response instead; an unusable proxy also has the address.
    """

    says: str
    parts: Sequence[Part] = ()
    status: int = 200
    at_once: bytes | None = None
    proxy: bytes = b""
    host: str = ""
    half: bool = False


class RudeServer(LocalServer):
    """Sends some bytes, or nothing, and resets the connection before it has read any HTTP."""

    def __init__(self, says: bytes) -> None:
        super().__init__()
        self._says = says

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._says:
            await reader.read(65_536)
        writer.write(self._says)
        await writer.drain()


PATIENT_S = 20.0
LOST = "broke off the connection"
FAULTS = {
    "refused": Fault("cannot be reached", host="127.0.0.1"),
    "no such host": Fault("cannot be reached", host="no-such-host.invalid"),
    "reset before the reply": Fault(LOST, ["reset"]),
    "cut before the reply": Fault(LOST, ["cut"]),
    "closed at once": Fault(LOST, at_once=b""),
    "garbage": Fault(LOST, at_once=b"SSH-2.0-OpenSSH\r\n"),
    "silence": Fault("did not answer in time", ["silence"]),
    "silence in mid-text": Fault("did not answer in time", ["silence"], half=True),
    "cut in mid-text": Fault(LOST, ["cut"], half=True),
    "reset in mid-text": Fault(LOST, ["reset"], half=True),
    "407": Fault("answered 407", status=407),
    "407 of the proxy": Fault(
        "answered 407", status=407, proxy=b"407 Proxy Authentication Required"
    ),
    "502 of the proxy": Fault("answered 502", status=502, proxy=b"502 Bad Gateway"),
    "503": Fault("answered 503", status=503),
    "504 of the proxy": Fault("answered 504", status=504, proxy=b"504"),
}


@contextmanager
def environment(**variables: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        yield


def unused() -> int:
    """A port without a listener."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def failure(kind: str, url: str, idle_s: float) -> ModelError:
    """The failure of a model at this address, which may be silent for this time."""

    async def at_once(_: float) -> None:
        pass

    async def no_url() -> str:
        raise AssertionError("nothing here is built in")

    family: Any = "anthropic" if kind == "anthropic" else "openai"
    provider = ProviderSettings(
        "faulty", family, base_url=url + ("" if kind == "anthropic" else "/v1"), api="auto"
    )
    client = ProviderClient({}, no_url, idle_s=idle_s, sleep=at_once, luck=lambda: 0.0)
    try:
        with pytest.raises(ModelError) as caught:
            async for _ in client.stream(
                provider, Request(QUESTION, 0, "faulty", "some-model"), print
            ):
                pass
    finally:
        await client.close()
    return caught.value


async def readings(fault: Fault, kind: str, authority: Authority) -> dict[str, tuple[Any, ...]]:
    """The fault's report on each route: the message, whether it is retried, the remedy."""
    response = refusal(fault.status) if fault.status != 200 else Response(fault.parts)
    if fault.half:
        response = Response([*begun(kind, "after"), *fault.parts])
    async with AsyncExitStack() as stack:

        async def url(tls: ssl.SSLContext | None) -> str:
            server = FaultyServer() if fault.at_once is None else RudeServer(fault.at_once)
            server.tls = tls
            if isinstance(server, FaultyServer):
                server.plan(response)
            return (await stack.enter_async_context(server)).url

        plain, tls = await url(None), await url(authority.context())
        refused = b"HTTP/1.1 " + fault.proxy + b"\r\ncontent-length: 0\r\n\r\n"
        proxy = ProxyServer(plain, tls, [refused] if fault.proxy else ())
        await stack.enter_async_context(proxy)
        place = f"{fault.host}:{unused()}" if fault.host else ""
        ways = {
            "plain": f"http://{place}" if place else plain,
            "TLS": f"https://{place}" if place else tls,
            "proxy": f"http://{FAR}",
            "proxy and TLS": f"https://{FAR}",
        }
        through = f"http://{place}" if place else proxy.url
        with environment(
            HTTP_PROXY=through, HTTPS_PROXY=through, SSL_CERT_FILE=str(authority.certificate)
        ):
            idle_s = IDLE_S if "silence" in fault.parts else PATIENT_S
            errors = await asyncio.gather(*(failure(kind, url, idle_s) for url in ways.values()))
        assert place or {target.split(" ")[0] for target in proxy.targets} == {"CONNECT", "POST"}
    return {
        way: (error.reason, error.status, error.retryable, str(error).rpartition("What to do: ")[2])
        for way, error in zip(ways, errors, strict=True)
    }


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority.new(Path(tmp_path_factory.mktemp("authority")))


@given(st.sampled_from(sorted(FAULTS)), st.sampled_from(FORMATS))
@examples(15)
@example("407 of the proxy", "anthropic")
@example("407 of the proxy", "chat")
@example("502 of the proxy", "responses")
@example("closed at once", "chat")
def test_a_network_failure_reads_the_same_on_every_route(
    authority: Authority, name: str, kind: str
) -> None:
    told = asyncio.run(readings(FAULTS[name], kind, authority))
    assert {reading[0] for reading in told.values()} == {f"faulty {FAULTS[name].says}"}, told
    assert len(set(told.values())) == 1, told
