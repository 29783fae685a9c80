"""Providers from installed packages: the interface, the request, and checks of the reply.

Messages have the shape of Chat Completions, the best-known format; a reply consists of Parley's own
events. Knows nothing about packages, threads or time.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import field, fields
from types import MappingProxyType
from typing import Any, Literal, Protocol, TypeAlias, get_args

from parley.chat.options import ThinkingSettings
from parley.chat.transcript import ToolCall
from parley.frozen import frozen
from parley.models import decoder
from parley.models.accumulate import PartialCall
from parley.models.encode import encoded, fit_body
from parley.models.events import Call, Event, Finished, Reason, TextDelta, ThinkingDelta, Usage
from parley.models.quirks import Quirk
from parley.tables import LARGEST
from parley.text import one_line

ProviderEvent: TypeAlias = TextDelta | ThinkingDelta | Call | Usage | Finished
"""The events in a provider's stream; `Finished` is the last event."""

_REASONS: tuple[Reason, ...] = get_args(Reason)
_LONGEST_NAME = 60


@frozen
class ProviderRequest:
    """The request to a provider.

    `messages` and `tools` are JSON as in OpenAI's Chat Completions; the system prompt comes first.
    If `tool_choice` is "none", the model must not call tools. None means the model's default.
    `base_url`, `api_key`, `headers` and `parameters` come from the settings; Parley has already
    read the key from its variable or command, and the headers' variables. `parameters` are the
    user's own, in the provider's words.
    """

    model: str
    messages: tuple[Mapping[str, Any], ...]
    tools: tuple[Mapping[str, Any], ...] = ()
    tool_choice: Literal["auto", "none"] = "auto"
    max_tokens: int | None = None
    temperature: float | None = None
    thinking: ThinkingSettings = field(default_factory=ThinkingSettings)
    base_url: str | None = None
    api_key: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    parameters: Mapping[str, Any] = field(default_factory=dict)


class Provider(Protocol):
    """Provides models' replies. A package offers a provider as an entry point in the group
    `parley.providers`.

    The entry point refers to a class or function that returns the provider when called without
    arguments. All the provider's code runs in a separate thread with its own event loop.
    """

    @property
    def name(self) -> str:
        """The entry point's name."""
        ...

    def supports_tools(self, model: str) -> bool:
        """Whether this model accepts `tools`; otherwise Parley describes them in the text."""
        ...

    def stream(self, request: ProviderRequest) -> AsyncIterator[ProviderEvent]:
        """Yield a reply's events as they arrive: text and thinking in pieces, calls in one piece,
        and the end last.

        An exception ends the reply; a `ModelError` specifies whether and when the request may be
        retried. Parley closes the iterator early to stop a reply.
        """
        ...


_PARAMETERS = "parameters"


def parameters_apart(
    body: Mapping[str, Any], parameters: Mapping[str, Any]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The body with the user's parameters in a field of their own; Parley ignores none."""
    return {**body, _PARAMETERS: fit_body(parameters)}, ()


def provider_request(
    body: Mapping[str, Any],
    thinking: ThinkingSettings,
    base_url: str | None,
    api_key: str,
    headers: Mapping[str, str] = MappingProxyType({}),
) -> ProviderRequest:
    """Create the request from a Chat Completions request's body; no value is shared with the
    body."""
    own = json.loads(encoded(body))
    return ProviderRequest(
        model=own["model"],
        messages=tuple(own["messages"]),
        tools=tuple(own.get("tools", ())),
        tool_choice=own.get("tool_choice", "auto"),
        max_tokens=own.get("max_completion_tokens", own.get("max_tokens")),
        temperature=own.get("temperature"),
        thinking=thinking,
        base_url=base_url,
        api_key=api_key,
        headers=dict(headers),
        parameters=own.get(_PARAMETERS, {}),
    )


EVENT = "event"
"""The event's key in the mapping that the decoder reads."""


class EventDecoder(decoder.Decoder):
    """Checks and orders a provider's events, so that the outcome is always a valid reply."""

    def __init__(self, provider: str, model: str, quirks: tuple[Quirk, ...] = ()) -> None:
        super().__init__(provider, model, quirks)
        self._calls = list[PartialCall]()

    def _prose_of(self, raw: Mapping[str, Any]) -> str | None:
        match raw[EVENT]:
            case TextDelta(str(text)):
                return text
            case _:
                return None

    def _take(self, raw: Mapping[str, Any]) -> Iterator[Event]:
        match raw[EVENT]:
            case TextDelta(str(text)):
                yield from self._say(text)
            case ThinkingDelta(str(text)):
                yield from self._think(text)
            case Call(ToolCall(str(id), str(name), str(arguments))):
                self._calls.append(PartialCall(id, name, arguments))
            case Usage() as usage if all(
                _is_count(getattr(usage, each.name)) for each in fields(Usage)
            ):
                yield usage
            case Finished(reason, str(detail)) if reason in _REASONS:
                yield from self._conclude(self._calls, reason, detail)
            case TextDelta() | ThinkingDelta() | Call() | Usage() | Finished() as event:
                raise ValueError(
                    f"a field of the {type(event).__name__} has an invalid type or value"
                )
            case other:
                raise ValueError(f"it is of type {one_line(type(other).__name__, _LONGEST_NAME)}")

    def _finish(self) -> Iterator[Event]:
        raise ValueError("the stream ended without Finished")


def _is_count(number: object) -> bool:
    return type(number) is int and 0 <= number <= LARGEST
