"""Failing providers, for the clients' tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest_asyncio

from parley.providers.client import ProviderClient
from tests.faulty_providers import IDLE_S, KEY, FaultyProviders
from tests.faulty_server import FaultyServer


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def faulty() -> AsyncIterator[FaultyProviders]:
    waits = list[float]()

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async def no_url() -> str:
        raise AssertionError("nothing here is built in")

    async with FaultyServer() as server:
        clients = {
            hasty: ProviderClient(
                {"FAULTY_KEY": f" {KEY}\n"}, no_url, idle_s=idle_s, sleep=sleep, luck=lambda: 0.0
            )
            for hasty, idle_s in ((False, 20.0), (True, IDLE_S))
        }
        yield FaultyProviders(server, clients, waits)
        await asyncio.gather(*(client.close() for client in clients.values()))
