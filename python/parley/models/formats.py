"""The table of wire formats; each entry contains everything that is specific to its format.

It is used by the settings, clients, shell, health report and tool conversion. Knows the adapters
and the SDKs' names, but never imports an SDK. Knows nothing about keys or hosts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from parley.frozen import frozen
from parley.models import acp, anthropic, openai_chat, openai_responses
from parley.models.body_fields import (
    refused_field,
    with_parameters,
    without_fields,
    without_parameters,
)
from parley.models.decoder import Decoder
from parley.models.package import EventDecoder, parameters_apart
from parley.models.parameter_names import own_call, wire_catalogue, wire_request
from parley.models.quirks import Quirk
from parley.models.redact import Redacting
from parley.models.request import Request
from parley.models.thinking import prefers_responses, takes_temperature
from parley.tools.convert import Definition

Raw: TypeAlias = Mapping[str, Any]


@frozen
class SDK:
    """A provider's client library: its package, its client class and its default URL."""

    package: str
    client: str
    url: str

    @property
    def root(self) -> str:
        """The path that precedes a format's path on the provider's own host."""
        return urlsplit(self.url).path

    @property
    def variables(self) -> str:
        """The common prefix of all environment variables that the SDK reads."""
        return f"{self.package.upper()}_"


@frozen
class Format:
    """One wire format.

    `name` is the value of `api` in a provider's entry, and `kind` is the entry's `kind`. A kind's
    first format is used for all models, except models for which another format is `preferred` on
    the provider's own host. `option` is the format's name in the shell, and `title` its name in
    messages.

    `request_body` returns the body of a streaming request. `unstreamed` converts an unstreamed
    reply to the payloads of an equivalent stream. `tool` converts an offered tool to the format,
    and `definition` converts it back to MCP. `notice` returns a message for the user before a
    request. `other` is the format to try if `is_for_other(model, status, words)` recognizes a
    refusal that asks for it. `takes_temperature` returns whether a model accepts the setting.
    `adds` puts the user's parameters into a body, and returns the ignored ones. `most_tools` limits
    a request's tools; None if no limit is known. `searches` means that the provider can search the
    web itself.
    """

    name: str
    kind: str
    option: str
    title: str
    sdk: SDK
    path: str
    request_body: Callable[[Request], dict[str, Any]]
    decoder: Callable[[str, str, tuple[Quirk, ...]], Decoder]
    unstreamed: Callable[[Raw], Iterable[Raw]]
    tool: Callable[[str, Definition], dict[str, Any]]
    definition: Callable[[Raw], dict[str, Any]]
    preferred: Callable[[str], bool] = lambda _: False
    notice: Callable[[Request], str] = lambda _: ""
    other: str | None = None
    is_for_other: Callable[[str, int, str], bool] = lambda *_: False
    takes_temperature: Callable[[str], bool] = lambda _: True
    adds: Callable[[Raw, Raw], tuple[dict[str, Any], tuple[str, ...]]] = with_parameters
    most_tools: int | None = None
    searches: bool = False

    def body(self, request: Request) -> dict[str, Any]:
        """The request's body, with the tools described in its text if the model needs that, with
        the user's parameters, and without refused fields.
        """
        return self._whole(request)[0]

    def ignored(self, request: Request) -> tuple[str, ...]:
        """The user's parameters that Parley sets itself."""
        return self._whole(request)[1] if request.parameters else ()

    def refused_field(self, request: Request, words: str) -> str | None:
        """The field of this request's body that a refusal names; None if there is none."""
        kept = without_parameters(request.parameters, request.refused_fields)
        return refused_field(self.body(request), kept, words)

    def _whole(self, request: Request) -> tuple[dict[str, Any], tuple[str, ...]]:
        body = self.request_body(_as_text(wire_request(request)))
        if request.refused_fields:
            body = without_fields(body, request.refused_fields)
        own = without_parameters(request.parameters, request.refused_fields)
        return self.adds(body, own) if own else (body, ())

    def unstreamed_body(self, request: Request) -> dict[str, Any]:
        """The body of a request whose reply arrives in one piece."""
        return {
            key: value for key, value in self.body(request).items() if key != "stream_options"
        } | {"stream": False}

    def reader(self, request: Request, *secrets: str) -> Decoder:
        """The decoder for the reply to this request; `secrets` are the keys that were used."""
        decoder, catalogue = (
            self.decoder(request.provider, request.model, request.quirks),
            request.catalogue,
        )
        decoder.own_call = lambda call: own_call(call, catalogue)
        if request.paused:
            decoder.resume(request.paused)
        redacting = Redacting(decoder, *secrets)
        if not request.has_text_calls:
            return redacting
        from parley.models.text_tools.adapter import text_decoder  # few models need it

        return text_decoder(redacting, replace(request, catalogue=wire_catalogue(catalogue)))


def _as_text(request: Request) -> Request:
    """The request, with its tools in its text for a model without tools."""
    if not request.has_text_calls:
        return request
    from parley.models.text_tools.adapter import text_request  # few models need it

    return text_request(request)


_ANTHROPIC = SDK("anthropic", "AsyncAnthropic", "https://api.anthropic.com")
_OPENAI = SDK("openai", "AsyncOpenAI", "https://api.openai.com/v1")

# "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with
# length 142 instead." (github.com/anomalyco/opencode/issues/4909, of 2025-11-29, read 2026-11-23).
_OPENAI_TOOLS = 128

FORMATS: dict[str, Format] = {
    entry.name: entry
    for entry in (
        Format(
            name="chat",
            kind="openai",
            option="openai",
            title="Chat Completions",
            sdk=_OPENAI,
            path="/chat/completions",
            request_body=openai_chat.request_body,
            decoder=openai_chat.Decoder,
            unstreamed=openai_chat.unstreamed,
            tool=openai_chat.tool,
            definition=openai_chat.definition,
            other="responses",
            is_for_other=openai_chat.is_for_other,
            takes_temperature=takes_temperature,
            most_tools=_OPENAI_TOOLS,
        ),
        Format(
            name="responses",
            kind="openai",
            option="openai-responses",
            title="the Responses API",
            sdk=_OPENAI,
            path="/responses",
            request_body=openai_responses.request_body,
            decoder=openai_responses.Decoder,
            unstreamed=openai_responses.unstreamed,
            tool=openai_responses.tool,
            definition=openai_responses.definition,
            preferred=prefers_responses,
            other="chat",
            is_for_other=openai_responses.is_for_other,
            takes_temperature=takes_temperature,
            most_tools=_OPENAI_TOOLS,
            searches=True,
        ),
        Format(
            name="anthropic",
            kind="anthropic",
            option="anthropic",
            title="the Messages API",
            sdk=_ANTHROPIC,
            path="/v1/messages",
            request_body=anthropic.request_body,
            decoder=anthropic.Decoder,
            unstreamed=anthropic.unstreamed,
            tool=anthropic.tool,
            definition=anthropic.definition,
            notice=anthropic.thinking_paused,
            takes_temperature=lambda _: False,
            searches=True,
        ),
    )
}

PACKAGE = "package"
"""The kind of provider that comes from an installed package and uses no SDK."""
_OF_PACKAGES = replace(
    FORMATS["chat"],
    name=PACKAGE,
    kind=PACKAGE,
    title="an installed package",
    decoder=EventDecoder,
    adds=parameters_apart,
    other=None,
    most_tools=None,
)
"""Requests have the shape of Chat Completions; replies are Parley's own events."""

ACP = "acp"
"""The kind of provider that is an agent of another program, and uses no SDK."""
_OF_AGENTS = replace(
    FORMATS["chat"],
    name=ACP,
    kind=ACP,
    title="the Agent Client Protocol",
    request_body=acp.request_body,
    decoder=acp.Decoder,
    unstreamed=acp.unstreamed,
    adds=lambda body, own: (dict(body), tuple(own)),
    other=None,
    most_tools=None,
)
"""A request is the prompt of a new session; a reply is a part of the agent's turn."""


def kinds() -> tuple[str, ...]:
    """All kinds of providers."""
    return (*dict.fromkeys(entry.kind for entry in FORMATS.values()), PACKAGE, ACP)


def of_kind(kind: str) -> tuple[Format, ...]:
    """A kind's formats; the default format comes first."""
    return tuple(
        entry for entry in (*FORMATS.values(), _OF_PACKAGES, _OF_AGENTS) if entry.kind == kind
    )


def searching_format(kind: str, api: str, *, is_official: bool) -> Format | None:
    """The format in which a provider can search the web; None if there is none.

    A server that is only compatible has the format if the user chose it, or if it is the only one.
    """
    entries = of_kind(kind)
    for entry in entries:
        is_used = is_official or len(entries) == 1 if api == "auto" else entry.name == api
        if entry.searches and is_used:
            return entry
    return None


def apis() -> tuple[str, ...]:
    """The allowed values of `api`: "auto", and the formats of kinds with several formats."""
    return ("auto", *(name for name, entry in FORMATS.items() if len(of_kind(entry.kind)) > 1))


def sdk(kind: str) -> SDK:
    """A kind's SDK, which all its formats share."""
    return of_kind(kind)[0].sdk


def sdks() -> tuple[SDK, ...]:
    """All SDKs."""
    return tuple(dict.fromkeys(entry.sdk for entry in FORMATS.values()))


def format_for(option: str) -> Format:
    """The format with this name in the shell."""
    return next(entry for entry in FORMATS.values() if entry.option == option)


def options() -> tuple[str, ...]:
    """The formats' names in the shell."""
    return tuple(entry.option for entry in FORMATS.values())
