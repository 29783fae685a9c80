"""Providers that fail: a server with planned faults, and the real SDK clients that connect to it."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import AsyncGeneratorType
from typing import Any, Literal

import pytest

from parley.chat.transcript import Exchange, Question, Text, Transcript
from parley.errors import ModelError
from parley.models.events import Event
from parley.models.request import Request
from parley.providers.client import ProviderClient
from parley.settings.values import ProviderSettings
from tests.fakes import Turns
from tests.faulty_server import BEGUN, SAYS, FaultyServer, Forever, Part, Response

KEY = "a-Secret-of-no-known-shape-0123456789"
IDLE_S = 0.1
"""Seconds after which a client reports silence: short in the tests of silence, long in the others,
because a busy machine must not seem silent.
"""
FORMATS = ["anthropic", "chat", "responses"]
Where = Literal["before", "after"]


@dataclass
class FaultyProviders:
    """A server, its clients, their notices and the seconds that they waited."""

    server: FaultyServer
    clients: dict[bool, ProviderClient]
    waits: list[float]
    notices: list[str] = field(default_factory=list)
    is_hasty: bool = False

    @property
    def client(self) -> ProviderClient:
        return self.clients[self.is_hasty]

    def plan(self, *script: Response) -> None:
        """Restart with these responses."""
        self.server.plan(*script)
        parts = [part for response in script for part in response.parts]
        self.is_hasty = any(part == "silence" or isinstance(part, Forever) for part in parts)

    def provider(self, kind: str, **more: Any) -> ProviderSettings:
        family: Any = "anthropic" if kind == "anthropic" else "openai"
        url = self.server.url + ("" if kind == "anthropic" else "/v1")
        settings = {
            "base_url": url,
            "api_key_env": "FAULTY_KEY",
            "api": "auto" if family == kind else kind,
        }
        return ProviderSettings("faulty", family, **(settings | more))

    async def say(self, provider: ProviderSettings, **more: Any) -> list[Event]:
        """The model's reply to a question."""
        self.notices.clear()
        self.waits.clear()
        request = Request(QUESTION, 0, provider.name, "some-model", **more)
        with no_forgotten_generators():
            events = self.client.stream(provider, request, self.notices.append)
            return [event async for event in events]

    async def fail(self, provider: ProviderSettings) -> ModelError:
        """The error with which the model fails."""
        with pytest.raises(ModelError) as caught:
            await self.say(provider)
        return caught.value


@contextmanager
def no_forgotten_generators() -> Iterator[None]:
    """Check that each async generator that this task begins in this context also ends in it.

    `httpcore2` does not close its own generators.
    """
    begun, hooks = list[AsyncGeneratorType[Any, Any]](), sys.get_asyncgen_hooks()
    task = asyncio.current_task()

    def begin(generator: Any) -> None:
        if asyncio.current_task() is task:
            begun.append(generator)
        if hooks.firstiter:
            hooks.firstiter(generator)

    sys.set_asyncgen_hooks(firstiter=begin)
    try:
        yield
    finally:
        sys.set_asyncgen_hooks(firstiter=hooks.firstiter)
        assert begun
        left = [
            g.__qualname__ for g in begun if g.ag_frame and "httpcore2" not in g.ag_code.co_filename
        ]
        assert left == [], left


QUESTION = Transcript((Exchange(Question((Text("hi"),))),))


def begun(kind: str, where: Where) -> list[Part]:
    """A stream up to a fault."""
    return list(SAYS[kind]("Half", " of it")[: BEGUN[kind]]) if where == "after" else []


def refusal(status: int, **headers: str) -> Response:
    body = f'{{"error":{{"type":"x","message":"it was {KEY}\\nthat failed"}}}}'
    return Response([body.encode()], status, {"content-type": "application/json", **headers})


HTML = (
    "<!DOCTYPE html><html><head><style>body { color: red "
    "}</style><script>go()</script></head><body><h1>Bad"
    " gateway</h1><p>" + "sorry " * 500 + KEY + "</p></body></html>"
)


def check_message(error: ModelError, *words: str) -> None:
    """Check that the message is one bounded line that names the provider, the cause and the remedy,
    and contains no key.
    """
    line = str(error)
    assert "\n" not in line
    assert line.isprintable()
    assert len(line) < 500
    assert line.startswith(("faulty ", "The provider ", "The reply ", "No key"))
    assert any(action in line for action in ("What to do: ", ":ParleyRespond"))
    assert "Errno" not in line
    assert not re.search(r"\(\w+Error\)", line)
    assert KEY not in line
    assert KEY not in error.reason
    assert 0 < len(error.reason) <= 100
    for word in words:
        assert word in line


class ProviderModel:
    """The engine's model port, over the wire."""

    def __init__(self, faulty: FaultyProviders, provider: ProviderSettings, turns: Turns) -> None:
        self.faulty, self.provider, self.turns = faulty, provider, turns

    def stream(self, request: Request) -> AsyncIterator[Event]:
        return self.faulty.client.stream(self.provider, request, self.turns.observer.status)
