"""The providers: the official SDK clients send what the adapters made, and decoders read what comes back.

The only client of `anthropic` and `openai`, which take a second and more to import: that is done in a thread.
The response is read raw, since a decoder fed with plain JSON costs a fraction of the SDKs' own events.
Knows clients, keys, retries and failures; knows nothing of what is asked or answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

from parley.drivers.failures import broken_off, failure, no_key
from parley.errors import ModelError
from parley.models import anthropic, openai_chat, openai_responses
from parley.models.ask import Ask
from parley.models.decoder import Decoder
from parley.models.events import Event
from parley.models.prompted import reading, worded
from parley.models.sse import SSE, decode_payload
from parley.models.thinking import prefers_responses
from parley.settings import Provider

if TYPE_CHECKING:
    import httpx2

IDLE_S = 60.0
CONNECT_S = 10.0
RETRIES = 3

Tell: TypeAlias = Callable[[str], None]
_tell: ContextVar[Tell | None] = ContextVar("parley_tell", default=None)
"""Where the request that runs in this task says that it is tried again."""


@dataclass(frozen=True, slots=True)
class Format:
    """One wire format: what makes a request, what reads its stream, which method of a client sends it."""

    request: Callable[[Ask], dict[str, Any]]
    decoder: Callable[[str, str], Decoder]
    method: tuple[str, ...]

    def body(self, ask: Ask) -> dict[str, Any]:
        """The request's body, with the tools in words where they are to be."""
        return self.request(worded(ask))

    def reader(self, ask: Ask) -> Decoder:
        """What reads the reply to this request."""
        return reading(self.decoder(ask.provider, ask.model), ask)


FORMATS: Mapping[str, Format] = {
    "anthropic": Format(anthropic.request, anthropic.Decoder, ("messages",)),
    "chat": Format(openai_chat.request, openai_chat.Decoder, ("chat", "completions")),
    "responses": Format(openai_responses.request, openai_responses.Decoder, ("responses",)),
}


def wire_format(provider: Provider, ask: Ask) -> Format:
    """The format in which a provider's model is asked: with `api = "auto"`, the one the model accepts."""
    if provider.kind == "anthropic":
        return FORMATS["anthropic"]
    if provider.api == "auto":
        return FORMATS["responses" if provider.official and prefers_responses(ask.model) else "chat"]
    return FORMATS[provider.api]


class Wire:
    """The clients: one of each provider, with its connections, for the life of this process."""

    def __init__(self, environ: Mapping[str, str], builtin_url: Callable[[], Awaitable[str]]) -> None:
        self._environ = environ
        self._builtin_url = builtin_url
        self._clients: dict[Provider, Any] = {}

    async def stream(self, provider: Provider, ask: Ask, tell: Tell) -> AsyncIterator[Event]:
        """What the model says. Thinking that the provider no longer takes back is dropped, once."""
        try:
            async for event in self._events(provider, ask, tell):
                yield event
        except ModelError as error:
            if not (error.status == 400 and ask.keep_thinking and "signature" in str(error).lower()):
                raise
            async for event in self._events(provider, replace(ask, keep_thinking=False), tell):
                yield event

    async def _events(self, provider: Provider, ask: Ask, tell: Tell) -> AsyncIterator[Event]:
        form = wire_format(provider, ask)
        client, sdk = await self._client(provider)
        decoder, sse = form.reader(ask), SSE()
        _tell.set(tell)
        try:
            async with _send(client, form, form.body(ask)) as response:
                async for chunk in response.iter_bytes():
                    for payload in sse.feed(chunk):
                        for event in decoder.feed(decode_payload(payload)):
                            yield event
                    if sse.done or decoder.wants_no_more:
                        break
        except sdk.APIError as error:
            raise failure(provider, ask.model, error) from error
        except import_module("httpx2").HTTPError as error:
            raise broken_off(provider, error) from error
        for payload in sse.end():
            for event in decoder.feed(decode_payload(payload)):
                yield event
        for event in decoder.end():
            yield event

    async def _client(self, provider: Provider) -> tuple[Any, ModuleType]:
        sdk = await _sdk(provider.kind)
        if provider not in self._clients:
            self._clients[provider] = await self._connected(provider, sdk)
        return self._clients[provider], sdk

    async def _connected(self, provider: Provider, sdk: ModuleType) -> Any:
        is_anthropic = provider.kind == "anthropic"
        key = "demo" if provider.builtin else await self._key(provider)
        url = await self._base_url(provider)
        client = (sdk.AsyncAnthropic if is_anthropic else sdk.AsyncOpenAI)(
            api_key=key, base_url=url, max_retries=RETRIES, timeout=_timeout()
        )
        client._client.event_hooks["request"].append(_say_retry)  # noqa: SLF001 - the SDKs offer no other way
        return client

    async def _base_url(self, provider: Provider) -> str | None:
        if provider.builtin:
            return await self._builtin_url() + ("" if provider.kind == "anthropic" else "/v1")
        return self._environ.get(provider.base_url_env or "") or provider.base_url

    async def _key(self, provider: Provider) -> str:
        """The key, from the environment or a command; a provider that names neither needs none."""
        if provider.api_key_command:
            return await _printed(provider)
        if not provider.api_key_env:
            return "none"
        if key := self._environ.get(provider.api_key_env):
            return key
        raise no_key(provider)

    async def close(self) -> None:
        """Close all connections."""
        clients, self._clients = list(self._clients.values()), {}
        await asyncio.gather(*(client.close() for client in clients), return_exceptions=True)


def _send(client: Any, form: Format, body: dict[str, Any]) -> AbstractAsyncContextManager[Any]:
    resource = client
    for name in form.method:
        resource = getattr(resource, name)
    sent: AbstractAsyncContextManager[Any] = resource.with_streaming_response.create(**body)
    return sent


async def _sdk(name: str) -> ModuleType:
    return await asyncio.to_thread(import_module, name)


def warm(kind: str) -> None:
    """Import what requests of this kind need; for a thread."""
    import_module(kind)


def _timeout() -> httpx2.Timeout:
    timeout: httpx2.Timeout = import_module("httpx2").Timeout(IDLE_S, connect=CONNECT_S)
    return timeout


async def _say_retry(request: httpx2.Request) -> None:
    """The SDKs count their retries in a header."""
    count, tell = request.headers.get("x-stainless-retry-count", "0"), _tell.get()
    if tell and count not in ("", "0"):
        tell(f"The provider did not answer: retry {count} of {RETRIES}...")


async def _printed(provider: Provider) -> str:
    command = provider.api_key_command or ()
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        printed, _ = await asyncio.wait_for(process.communicate(), 30)
    except (OSError, TimeoutError) as error:
        raise no_key(provider, f"{command[0]}: {type(error).__name__}") from error
    if process.returncode or not printed.strip():
        raise no_key(provider, f"{command[0]} printed no key")
    return printed.decode("utf-8", "replace").strip()
