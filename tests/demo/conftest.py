"""A running demo server at full speed, for the tests that connect the real SDK clients to it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import pytest

from parley.demo.server import DemoServer, start
from tests.strict import check

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from openai import AsyncOpenAI


@pytest.fixture
async def demo() -> AsyncIterator[DemoServer]:
    async with await start(pace=0, check=check) as server:
        yield server


@pytest.fixture
async def claude(demo: DemoServer) -> AsyncIterator[AsyncAnthropic]:
    # a slow import, only for the tests that use it
    from anthropic import (
        AsyncAnthropic,
    )

    async with AsyncAnthropic(api_key="none", base_url=demo.url, max_retries=0) as client:
        yield client


@pytest.fixture
async def gpt(demo: DemoServer) -> AsyncIterator[AsyncOpenAI]:
    from openai import AsyncOpenAI

    async with AsyncOpenAI(api_key="none", base_url=f"{demo.url}/v1", max_retries=0) as client:
        yield client
