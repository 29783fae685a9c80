"""A running demo server at full speed, for the tests that talk to it through the real SDK clients."""

from collections.abc import AsyncIterator

import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from parley.demo.server import DemoServer, start


@pytest.fixture
async def demo() -> AsyncIterator[DemoServer]:
    async with await start(pace=0) as server:
        yield server


@pytest.fixture
async def claude(demo: DemoServer) -> AsyncIterator[AsyncAnthropic]:
    async with AsyncAnthropic(api_key="none", base_url=demo.url, max_retries=0) as client:
        yield client


@pytest.fixture
async def gpt(demo: DemoServer) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(api_key="none", base_url=f"{demo.url}/v1", max_retries=0) as client:
        yield client
