"""A decoder that removes keys from all events, in case the provider sends them back.

Text that may be the start of the key is held back until more text arrives. Knows no providers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from parley.chat.transcript import ToolCall
from parley.models.accumulate import PendingCall
from parley.models.decoder import Decoder
from parley.models.events import Call, Cited, Event, Ran, RanResult, TextDelta, ThinkingDelta

HIDDEN_KEY = "[key]"
_SHORTEST = 8
"""A key shorter than this is a placeholder such as "none" or "ollama", which a reply may
contain.
"""


class Redacting(Decoder):
    """Wraps another decoder, and removes the secrets from its events."""

    def __init__(self, decoder: Decoder, *secrets: str) -> None:
        super().__init__(decoder.provider, decoder.model)
        self.own_call = decoder.own_call
        self._decoder = decoder
        long = {secret for secret in secrets if len(secret) >= _SHORTEST}
        self._secrets = sorted(long, key=len, reverse=True)  # a secret may contain another one
        self._buffer: TextDelta | ThinkingDelta | None = None

    @property
    def pending_call(self) -> PendingCall | None:
        """The wrapped decoder's pending call."""
        return self._decoder.pending_call

    @property
    def answered(self) -> str:
        """The model that the wrapped decoder names."""
        return self._decoder.answered

    def read(self, payloads: Iterable[Mapping[str, Any]]) -> Iterator[Event]:
        """Decode payloads that arrived together, and remove the key. Raises ModelError."""
        for event in self._decoder.read(payloads):
            yield from self._redacted([event])
        self._follow()

    def resume(self, content: Sequence[Mapping[str, Any]]) -> None:
        """Decode the rest of a reply that began with this content."""
        self._decoder.resume(content)

    def _follow(self) -> None:
        self.wants_no_more, self.is_over = self._decoder.wants_no_more, self._decoder.is_over

    def _take(self, raw: Mapping[str, Any]) -> Iterable[Event]:
        events = self._decoder.feed(raw)
        self._follow()
        return self._redacted(events)

    def _finish(self) -> Iterable[Event]:
        yield from self._redacted(self._decoder.end())
        yield from self._release()

    def _redacted(self, events: Iterable[Event]) -> Iterator[Event]:
        for event in events:
            if not self._secrets:
                yield event
            elif isinstance(event, TextDelta | ThinkingDelta):
                yield from self._piece(event)
            else:
                yield from self._release()
                yield self._whole(event)

    def _piece(self, piece: TextDelta | ThinkingDelta) -> Iterator[Event]:
        if self._buffer is not None and type(self._buffer) is not type(piece):
            yield from self._release()
        text = (self._buffer.text if self._buffer else "") + piece.text
        text = self._hidden(text)
        length = max(_begun(secret, text) for secret in self._secrets)
        self._buffer = replace(piece, text=text[len(text) - length :]) if length else None
        if length < len(text):
            yield replace(piece, text=text[: len(text) - length])

    def _release(self) -> Iterator[Event]:
        piece, self._buffer = self._buffer, None
        if piece is not None:
            yield piece

    def _whole(self, event: Event) -> Event:
        """An event that comes in one piece, without the secrets."""
        match event:
            case Call(call):
                return Call(self._call(call))
            case Ran(call):
                return replace(event, call=self._call(call))
            case RanResult(outcome=outcome):
                text, whole = self._hidden(outcome.text), self._hidden(outcome.whole)
                return replace(event, outcome=replace(outcome, text=text, whole=whole))
            case Cited(url, title):
                return Cited(self._hidden(url), self._hidden(title))
            case _:
                return event

    def _call(self, call: ToolCall) -> ToolCall:
        return replace(call, arguments=self._hidden(call.arguments))

    def _hidden(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN_KEY)
        return text


def _begun(secret: str, text: str) -> int:
    """The length of the text's end that may be the start of the secret."""
    longest = min(len(text), len(secret) - 1)
    return next((n for n in range(longest, 0, -1) if text.endswith(secret[:n])), 0)
