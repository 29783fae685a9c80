"""Sends requests with the official SDK clients, and decodes the replies.

Only this module uses `anthropic` and `openai`. Importing them is slow, so it is done in a thread
(`sdk_imports`). The module reads raw responses, because decoding plain JSON takes a fraction of the time
of the SDKs' events. Knows nothing about the requests' content.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from types import MappingProxyType, ModuleType
from typing import Any, TypeAlias

from parley.clock import PausableClock
from parley.errors import ModelError
from parley.http.proxies import ProxyError, client_options
from parley.iterators import closing
from parley.models.accumulate import PendingCall
from parley.models.decoder import Decoder
from parley.models.encode import encoded
from parley.models.events import Answered, Aside, Event, RateLimits, joined
from parley.models.formats import PACKAGE, Format, of_kind, sdk, searching_format
from parley.models.package import EVENT, Provider, provider_request
from parley.models.request import Request
from parley.models.sse import SSE, check_size, decode_payload
from parley.policy import status_texts
from parley.providers import sdk_clients as clients
from parley.providers.api_keys import key_of
from parley.providers.capabilities import Capabilities
from parley.providers.own_headers import header_secrets, own_headers, reply_secrets
from parley.providers.packages import PackageProviders
from parley.providers.patience import Patience
from parley.providers.provider_accounts import ProviderAccounts
from parley.providers.provider_errors import (
    LONGEST_WAIT_S,
    broken_off,
    failure,
    in_stream,
    no_proxy,
    no_sdk,
    no_stream,
    rate_limits,
    too_long,
)
from parley.providers.sdk_imports import imported
from parley.settings.values import ProviderSettings

READ_TIMEOUT_S = 60.0
CONNECT_S = 10.0
RETRIES = 3
FIRST_WAIT_S = 0.5
LAST_WAIT_S = 8.0
EVENTS_AT_ONCE = 500
"""How many payloads are read at once, which takes less time than an editor's frame."""
EVENTS_BEFORE_REST = 50
"""After how many payloads other tasks run, even if more of the reply has arrived."""
BODY_BYTES = 128 * 1024 * 1024
"""The maximum size of one reply in bytes: three times the size of the longest reply, 128,000 tokens
with a 300-byte event each.
"""
HEAD_WAITS = 10
"""How many times `idle_s` may elapse before a response begins, because a server could delay the
response forever.
"""
CONTENT_WAITS = 10
"""How many times `idle_s` may elapse with only comments or pings, because models can think for a
long time.
"""
REST_S = 0.2
MOST_OF_THE_REST = 65_536
"""Limits, in seconds and bytes, for reading to the end of a stream, only to reuse a connection."""
_RATE_LIMITED = 429

Tell: TypeAlias = Callable[[str], None]


def _nobody(_: str) -> None:
    """Ignore the text."""


def wire_format(provider: ProviderSettings, request: Request) -> Format:
    """The format for a provider's model; with `api = "auto"`, a format that the model accepts, and
    in which the provider can search the web if it may.
    """
    usual, *others = of_kind(provider.kind)
    name = request.api if provider.api == "auto" else provider.api
    named = [other for other in (usual, *others) if other.name == name]
    preferred = [other for other in others if provider.official and other.preferred(request.model)]
    searching = request.web_search and searching_format(
        provider.kind, provider.api, is_official=provider.official
    )
    return next(iter([*named, *preferred, *([searching] if searching else [])]), usual)


class ProviderClient:
    """The clients, one for each provider with its connections, for the life of the process."""

    def __init__(
        self,
        environ: Mapping[str, str],
        builtin_url: Callable[[], Awaitable[str]],
        *,
        builtin_headers: Mapping[str, str] = MappingProxyType({}),
        idle_s: float = READ_TIMEOUT_S,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        luck: Callable[[], float] = random.random,
        in_process: Provider | None = None,
        has_own_process: bool = False,
    ) -> None:
        """`builtin_url` returns the demo model's address; requests to the demo model have
        `builtin_headers`.

        `in_process` is a provider that was passed in as an object. Parley's own process imports
        only the parts of an SDK that it needs.
        """
        self._environ = environ
        self._builtin_url = builtin_url
        self._builtin_headers = builtin_headers
        self._idle_s = idle_s
        self._sleep = sleep
        self._luck = luck
        self.accounts = ProviderAccounts(environ)
        self._clients: dict[tuple[ProviderSettings, str], tuple[Any, _Keys]] = {}
        """By provider and key of the sign-in, which the user may replace at any time."""
        self._packages = PackageProviders(idle_s, in_process)
        self._capabilities = Capabilities()
        self._has_own_process = has_own_process

    def url(self, provider: ProviderSettings, path: str) -> str:
        """The URL for a provider's requests to this path; a description if there is no valid
        URL."""
        if provider.builtin:
            return "a small program on this machine"
        if provider.kind == PACKAGE:
            return f"the provider {provider.name} from an installed package"
        if provider.is_agent:
            return f"the agent of {provider.name} on this machine"
        try:
            return clients.address(provider, self._environ).rstrip("/") + path
        except ModelError as error:
            return error.reason

    def settled(self, request: Request) -> Request:
        """The request in the form that the provider is known to accept for this model."""
        return self._capabilities.settled(request)

    async def supports_tools(self, provider: ProviderSettings, model: str) -> bool:
        """Whether a model supports tools; only providers from packages can answer no."""
        return provider.kind != PACKAGE or await self._packages.supports_tools(provider.name, model)

    async def stream(
        self,
        provider: ProviderSettings,
        request: Request,
        tell: Tell,
        clock: PausableClock | None = None,
    ) -> AsyncIterator[Event]:
        """Stream a reply's events. Until the first event, temporary failures are retried.

        The SDKs' own retries are off, because they end when the response begins, and do not limit
        the wait that a provider requests. If a refusal tells how to change the request, the request
        is sent again in that form. The clock pauses during waits for the provider's rate limit.
        """
        tries, has_begun, request = 0, False, self.settled(request)
        for notice in self._capabilities.news(request, wire_format(provider, request)):
            yield notice
        while True:
            try:
                async with closing(self._events(provider, request, tell)) as events:
                    async for event in events:
                        has_begun = has_begun or not isinstance(event, RateLimits)
                        self._capabilities.learn(event, request)
                        yield event
            except ModelError as error:
                if has_begun:
                    raise
                form, is_chosen = wire_format(provider, request), provider.api != "auto"
                if other := self._capabilities.amended(request, form, error, is_chosen=is_chosen):
                    request = other.request
                    tell(other.status)
                    if other.aside:
                        yield Aside(other.aside)
                    continue
                tries += 1
                await self._wait(error, tries, tell, clock or PausableClock())
            else:
                return

    async def read(
        self,
        provider: ProviderSettings,
        path: str,
        most: int,
        *,
        headers: Mapping[str, str] = MappingProxyType({}),
        body: Mapping[str, str] | None = None,
    ) -> bytes:
        """The response to a small request, never retried: GET, or POST if there is a body.

        `path` may be a whole address of the provider. With `headers`, the key is not sent in its
        usual header. Raises ModelError, also for a response of more than `most` bytes.
        """
        client, keys, library = await self._client(provider)
        httpx2, content = import_module("httpx2"), bytearray()
        usual = {name: library.Omit() for name in ("Authorization",) if headers}
        options: dict[str, Any] = {"headers": {**usual, **headers}}
        send = client.get if body is None else partial(client.post, body=dict(body))
        try:
            stream = await send(
                path,
                cast_to=object,
                options=options,
                stream=True,
                stream_cls=library.AsyncStream[object],
            )
            try:
                async with closing(stream.response.aiter_bytes()) as pieces:
                    async for piece in pieces:
                        content += piece
                        if len(content) > most:
                            raise too_long(provider, most)
            finally:
                await stream.close()
        except library.APIError as error:
            raise failure(provider, "", error, keys.all) from error
        except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL, TimeoutError) as error:
            raise broken_off(provider, "", error, keys.all) from error
        return bytes(content)

    async def key(self, provider: ProviderSettings) -> str:
        """The provider's key, as its client uses it."""
        return (await self._client(provider))[1].all[0]

    async def once(self, provider: ProviderSettings, request: Request) -> AsyncIterator[Event]:
        """An unstreamed reply's events; never retried, because these replies are optional."""
        async with closing(
            self._events(provider, self.settled(request), _nobody, streamed=False)
        ) as events:
            async for event in events:
                yield event

    async def _wait(self, error: ModelError, tries: int, tell: Tell, clock: PausableClock) -> None:
        """Wait until a failed request may be sent again; raises the error if it may not be
        retried."""
        wait = error.retry_after
        if wait is None or not wait >= 0:  # nan compares false with everything
            wait = min(FIRST_WAIT_S * 2 ** (tries - 1), LAST_WAIT_S) * (1 - 0.25 * self._luck())
        if not error.retryable or tries > RETRIES or wait > LONGEST_WAIT_S:
            raise error
        tell(f"{error.reason}: retry {tries} of {RETRIES}...")
        with clock.paused() if error.status == _RATE_LIMITED else nullcontext():
            await self._sleep(wait)

    def _events(
        self, provider: ProviderSettings, request: Request, tell: Tell, *, streamed: bool = True
    ) -> AsyncIterator[Event]:
        if provider.kind == PACKAGE:
            return self._package_events(provider, request, tell)
        if provider.is_agent:
            raise ModelError(
                f"{provider.name} is an agent of another program, which answers only in chats. Choose "
                "an agent with a model",
                reason="not possible with this agent",
            )
        return self._sdk_events(provider, request, tell, streamed=streamed)

    async def _package_events(
        self, provider: ProviderSettings, request: Request, tell: Tell
    ) -> AsyncIterator[Event]:
        form, secret = wire_format(provider, request), await key_of(provider, self._environ)
        url = self._environ.get(provider.base_url_env or "") or provider.base_url
        headers = own_headers(provider, self._environ)
        body = provider_request(form.body(request), request.thinking, url, secret, headers)
        decoder = form.reader(request, secret, *reply_secrets(provider, headers))
        try:
            async with closing(self._packages.stream(provider.name, body)) as batches:
                async for batch in batches:
                    for event in joined(decoder.read({EVENT: event} for event in batch)):
                        yield event
                    if decoder.is_over:
                        return
                    _tell_call(decoder.pending_call, tell)
            for event in decoder.end():
                yield event
        except ModelError as error:
            raise self._packages.blamed(provider.name, error) from error

    async def _sdk_events(
        self, provider: ProviderSettings, request: Request, tell: Tell, *, streamed: bool
    ) -> AsyncIterator[Event]:
        form = wire_format(provider, request)
        body = form.body(request) if streamed else form.unstreamed_body(request)
        client, keys, library = await self._client(provider)
        decoder, is_empty, kind, httpx2 = (
            form.reader(request, *keys.in_replies),
            True,
            "",
            import_module("httpx2"),
        )
        try:
            content = encoded(body)
            async with _response(
                client, library, form.path, content, self._idle_s * HEAD_WAITS
            ) as response:
                kind = response.headers.get("content-type", "")
                if limits := rate_limits(response.headers):
                    yield limits
                patience = Patience(self._idle_s * CONTENT_WAITS, asyncio.get_running_loop().time)
                async with closing(response.aiter_bytes()) as pieces:
                    async with closing(
                        _payloads(pieces) if streamed else _whole(pieces, form)
                    ) as arriving:
                        async for payloads in arriving:
                            is_empty = is_empty and payloads == ()
                            for event in joined(decoder.read(payloads)):
                                patience.renew()
                                yield event
                            if decoder.is_over:
                                break
                            patience.check(decoder.pending_call)
                            _tell_call(decoder.pending_call, tell)
                    for event in (*decoder.end(), *_by_another(decoder, request)):
                        yield event
                    await _read_on(pieces, 0 if decoder.wants_no_more else REST_S)
        except library.APIError as error:
            raise failure(provider, request.model, error, keys.all) from error
        except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL, TimeoutError) as error:
            raise broken_off(provider, request.model, error, keys.all) from error
        except ModelError as error:
            if is_empty and "event-stream" not in kind:
                raise no_stream(provider, kind) from error
            raise in_stream(error, keys.all) from error

    async def _client(self, provider: ProviderSettings) -> tuple[Any, _Keys, ModuleType]:
        name = sdk(provider.kind).package
        entry = provider, self.accounts.key(provider)
        if entry in self._clients:  # the library is imported already, so no thread is needed
            return *self._clients[entry], sys.modules[name]
        try:
            library = await asyncio.to_thread(
                imported, sdk(provider.kind), is_lean=self._has_own_process
            )
        except ImportError as error:
            raise no_sdk(provider, error) from error
        if entry not in self._clients:
            self._clients.setdefault(entry, await self._connected(*entry, library))
        return *self._clients[entry], library

    async def _connected(
        self, provider: ProviderSettings, login: str, library: ModuleType
    ) -> tuple[Any, _Keys]:
        from parley.http import bodies  # imports httpx2, too

        secret = "" if provider.builtin else await key_of(provider, self._environ, login)
        headers = {} if provider.builtin else own_headers(provider, self._environ)
        keys = _Keys(
            (secret, *header_secrets(headers)), (secret, *reply_secrets(provider, headers))
        )
        url, httpx2 = await self._base_url(provider), import_module("httpx2")
        try:
            client = clients.client(
                provider,
                library,
                url,
                api_key=secret or "none",
                max_retries=0,
                default_headers=self._builtin_headers if provider.builtin else None,
                timeout=httpx2.Timeout(self._idle_s, connect=CONNECT_S),
                http_client=library.DefaultAsyncHttpxClient(
                    **client_options(url),
                    **bodies.client_options(),
                    event_hooks={
                        "request": [_with(headers)],
                        "response": [bodies.stay, bodies.bounded(BODY_BYTES, streams=True)],
                    },
                ),
            )
        except ProxyError as error:
            raise no_proxy(provider, error) from error
        except httpx2.InvalidURL as error:
            raise broken_off(provider, "", error, keys.all) from error
        return client, keys

    async def _base_url(self, provider: ProviderSettings) -> str:
        if provider.builtin:
            return await self._builtin_url() + sdk(provider.kind).root
        return clients.address(provider, self._environ)

    async def close(self) -> None:
        """Close all connections."""
        clients, self._clients = list(self._clients.values()), {}
        closings = [self._packages.close(), *(client.close() for client, _ in clients)]
        await asyncio.gather(*closings, return_exceptions=True)


@dataclass(frozen=True, slots=True, repr=False)
class _Keys:
    """A client's secrets: `all` are hidden in errors, and those `in_replies` in replies, too."""

    all: tuple[str, ...]
    in_replies: tuple[str, ...]


def _with(headers: Mapping[str, str]) -> Callable[[Any], Awaitable[None]]:
    """A function that sets headers of a request, even if the SDK has set them."""

    async def put(request: Any) -> None:
        request.headers.update(headers)

    return put


def _by_another(decoder: Decoder, request: Request) -> Iterator[Answered]:
    """The name of the model that wrote a complete reply, if it is not the requested model."""
    if decoder.answered not in ("", request.model):
        yield Answered(decoder.answered)


def _tell_call(call: PendingCall | None, tell: Tell) -> None:
    """Report that a call has begun or is still being written, because its pieces are not events."""
    if call and call.is_running:
        tell(status_texts.using([call.name]))
    elif call:
        tell(status_texts.writing(call.name, call.size) or status_texts.SELECTING)


@asynccontextmanager
async def _response(
    client: Any, library: ModuleType, path: str, content: bytes, seconds: float
) -> AsyncIterator[Any]:
    """The response to a request; must begin within this many seconds.

    Uses the client's `post`, not `create`, in which `openai` checks each message against its types.
    In a long chat, the check takes several times as long as everything else.
    """
    async with asyncio.timeout(seconds):
        stream = await client.post(
            path,
            content=content,
            cast_to=object,
            stream=True,
            stream_cls=library.AsyncStream[object],
        )
    try:
        yield stream.response
    finally:
        await stream.close()


async def _read_on(pieces: AsyncIterator[bytes], seconds: float) -> None:
    """Read the rest of a response, if it is small and arrives within this many seconds.

    The pool keeps only connections whose response was read to its end, which comes after the
    stream's last event: after `[DONE]`, HTTP/1.1 still sends a final, empty chunk. The reply is
    already complete, so a failure here only loses the connection.
    """
    size, httpx2 = 0, import_module("httpx2")
    with suppress(TimeoutError, httpx2.HTTPError, httpx2.StreamError):
        async with asyncio.timeout(seconds):
            async for piece in pieces:
                size += len(piece)
                if size > MOST_OF_THE_REST:
                    return


async def _payloads(pieces: AsyncIterator[bytes]) -> AsyncIterator[Iterable[Mapping[str, Any]]]:
    """The data from a response's server-sent events, grouped by arrival.

    A group is empty if only part of an event, or a comment, arrived.
    """
    sse, since_rest = SSE(), 0
    async for chunk in pieces:
        payloads = sse.feed(chunk)
        if not payloads:
            yield ()  # lets the caller notice a stream that has only comments
        for start in range(0, len(payloads), EVENTS_AT_ONCE):
            together = payloads[start : start + EVENTS_AT_ONCE]
            yield map(decode_payload, together)
            since_rest += len(together)
            if since_rest >= EVENTS_BEFORE_REST:
                await asyncio.sleep(0)  # the editor draws the text while the rest is read
                since_rest = 0
        if sse.is_over:
            return
    if payloads := sse.end():
        yield map(decode_payload, payloads)


async def _whole(
    pieces: AsyncIterator[bytes], form: Format
) -> AsyncIterator[Iterable[Mapping[str, Any]]]:
    """An unstreamed reply as the payloads of an equivalent stream."""
    content = bytearray()
    async for chunk in pieces:
        content += chunk
        check_size(len(content))
    reply = decode_payload(content.decode("utf-8", "replace"))
    try:
        yield list(form.unstreamed(reply))
    except ValueError as error:
        raise ModelError(
            f"The reply cannot be read: {error}", reason="a malformed reply"
        ) from error
