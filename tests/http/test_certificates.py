"""TLS certificates: read when the first connection needs them, and again after a change."""

from __future__ import annotations

import threading
from pathlib import Path

import httpx2
import pytest

from parley.errors import ModelError
from parley.http import certificates
from parley.http.proxies import client_options
from parley.providers.client import ProviderClient
from parley.providers.sdk_imports import warm
from parley.settings.values import ProviderSettings
from tests.faulty_server import FaultyServer, Response
from tests.ways_there import Authority

OTHER = Path(__file__).parents[1] / "authority.pem"


async def _no_demo() -> str:
    return ""


def reads() -> int:
    """How often certificates were read, or found in memory."""
    found = certificates._read.cache_info()
    return found.misses + found.hits


async def test_a_client_trusts_the_certificates_that_the_user_names_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority, server = Authority.new(tmp_path), FaultyServer()
    server.tls = authority.context()
    server.plan(Response([b"{}"]))
    async with server, httpx2.AsyncClient(**client_options(server.url)) as client:
        monkeypatch.setenv("SSL_CERT_FILE", str(OTHER))
        with pytest.raises(httpx2.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            await client.get(server.url)
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.certificate))
        assert (await client.get(server.url)).content == b"{}"


async def test_a_client_trusts_the_certificates_that_are_in_the_users_file_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority, server, named = Authority.new(tmp_path), FaultyServer(), tmp_path / "named.pem"
    server.tls = authority.context()
    server.plan(Response([b"{}"]))
    monkeypatch.setenv("SSL_CERT_FILE", str(named))
    async with server, httpx2.AsyncClient(**client_options(server.url)) as client:
        named.write_bytes(OTHER.read_bytes())
        with pytest.raises(httpx2.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            await client.get(server.url)
        named.write_bytes(authority.certificate.read_bytes())
        assert (await client.get(server.url)).content == b"{}"


def test_certificates_that_cannot_be_read_ahead_are_left_to_the_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/authority.pem")
    warm("openai", builtin=False, has_tls=True)  # an error in the thread would be a warning
    for thread in threading.enumerate():
        if thread.name == "certificates":
            thread.join()


async def test_an_unreadable_certificate_file_is_a_failed_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/authority.pem")
    client = ProviderClient({"KEY": "k"}, _no_demo)
    async with FaultyServer() as server:
        url = server.url.replace("http:", "https:")
        provider = ProviderSettings("far", kind="openai", base_url=url, api_key_env="KEY")
        with pytest.raises(ModelError, match="far cannot be reached"):
            await client.read(provider, "/models", 10)
    await client.close()


def test_certificates_are_read_during_the_imports_for_a_tls_address() -> None:
    for has_tls in (False, True):
        certificates._read.cache_clear()
        warm("openai", builtin=False, has_tls=has_tls)
        for thread in threading.enumerate():
            if thread.name == "certificates":
                thread.join()
        assert certificates._read.cache_info().currsize == has_tls


async def test_a_plain_connection_reads_no_certificates() -> None:
    async with FaultyServer() as server:
        server.plan(Response([b"{}"]))
        before = reads()
        client_options("https://models.example")
        async with httpx2.AsyncClient(**client_options(server.url)) as client:
            assert (await client.get(server.url)).status_code == 200
        assert reads() == before
