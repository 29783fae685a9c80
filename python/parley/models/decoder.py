"""The common part of all formats' decoders: text, thinking, the end of a reply, and failures.

Unknown event types are ignored, because providers add new types every month. A malformed event of a
known type raises `ModelError`, and so does every later event.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from parley.chat.grammar import fit
from parley.chat.transcript import ToolCall
from parley.errors import ModelError
from parley.late_patterns import late_pattern
from parley.models.accumulate import PartialCall, PendingCall, Pieces, finished_calls
from parley.models.events import (
    Call,
    Event,
    Finished,
    Reason,
    TextDelta,
    ThinkingDelta,
    ThinkingEnd,
)
from parley.models.model_list import is_model_name
from parley.models.quirks import Quirk
from parley.text import one_line

MESSAGE_SHOWN = 300
REASON_SHOWN = 100

_WHOLE: frozenset[Reason] = frozenset({"complete", "tool_calls", "pause"})
"""After any other reason, the last call may be incomplete."""

_KEY = late_pattern(r"\b(?:sk-|gsk_|xai-|AIza|Bearer )[\w.-]{8,}")
_SIGNATURE = late_pattern(r"\S([^\n]*\S)?")


class Decoder(ABC):
    """Turns the decoded payloads of one stream into events; after one failure, every later call
    fails, too.
    """

    def __init__(self, provider: str, model: str, quirks: tuple[Quirk, ...] = ()) -> None:
        """`quirks` are the quirks of the provider's server."""
        self.provider = provider
        self.model = model
        self.wants_no_more = False
        """Whether the reply is complete although the provider would continue, so that the caller
        has to close the stream."""
        self.own_call: Callable[[ToolCall], ToolCall] = lambda call: call
        """Translates a call from the wire into the parameter names that the tool's server uses."""
        self._answered = ""
        self._failure: ModelError | None = None
        self.is_over = False
        """Whether the reply is complete, so that later payloads are ignored."""
        self._is_thinking = False
        self._open_call: PartialCall | None = None
        """The call whose pieces are arriving, or that the provider runs now."""
        self._prose = Pieces()
        self._thoughts = Pieces()
        self._has_said = False
        """Whether prose has arrived since the last thinking; more prose is appended to it."""
        self._gap = ""

    @property
    def answered(self) -> str:
        """The model that writes the reply, according to the provider; "" if it does not say."""
        return self._answered

    @property
    def pending_call(self) -> PendingCall | None:
        """The call that the model is writing, or the provider is running, now; None if there is no
        such call."""
        call = self._open_call
        return PendingCall(call.name, call.size, call.is_running) if call else None

    def read(self, payloads: Iterable[Mapping[str, Any]]) -> Iterator[Event]:
        """Decode payloads that arrived together, and join adjacent prose. Raises ModelError.

        Most of a stream is prose, which has a fast path because a full check of each payload would
        take several times as long.
        """
        prose = list[str]()
        try:
            for raw in payloads:
                if not self.is_over and (piece := self._prose_of(raw)) is not None:
                    prose.append(piece)
                    continue
                said, prose = prose, []
                yield from self._prose_events(said)
                yield from self.feed(raw)
                if self.is_over:
                    return
        except ModelError:
            yield from self._prose_events(prose)
            raise
        yield from self._prose_events(prose)

    def _prose_events(self, prose: list[str]) -> list[Event]:
        return self._guarded(lambda: self._say("".join(prose))) if prose else []

    def _prose_of(self, raw: Mapping[str, Any]) -> str | None:
        """The text of a payload that certainly contains nothing else; otherwise None."""
        return None

    def feed(self, raw: Mapping[str, Any]) -> list[Event]:
        """Decode a payload into the events that are now certain; raises ModelError."""
        return self._guarded(lambda: self._take(raw))

    def end(self) -> list[Event]:
        """The events at the end of the stream; raises ModelError if the stream ended too early."""
        return self._guarded(self._finish)

    def _guarded(self, step: Callable[[], Iterable[Event]]) -> list[Event]:
        if self._failure is not None:
            raise self._failure
        try:
            return [] if self.is_over else list(step())
        except ModelError as error:
            self._failure = error
            raise
        except ValueError as error:
            self._failure = ModelError(
                f"{self.provider} sent an event that cannot be read: {error}",
                reason="a malformed event",
                is_broken=True,
            )
            raise self._failure from error

    def _note_model(self, raw: Mapping[str, Any]) -> None:
        """Note the model that a payload names; an unusable name is ignored."""
        name = raw.get("model")
        if not self._answered and isinstance(name, str) and is_model_name(name):
            self._answered = name

    def resume(self, content: Sequence[Mapping[str, Any]]) -> None:  # noqa: B027 - most need not
        """Decode the rest of a paused reply with this content so far; only some formats have
        pauses."""

    @abstractmethod
    def _take(self, raw: Mapping[str, Any]) -> Iterable[Event]:
        """Decode one payload."""

    @abstractmethod
    def _finish(self) -> Iterable[Event]:
        """The events at the end of the stream, if the reply has not ended yet."""

    def _say(self, piece: str) -> Iterator[Event]:
        """Add prose; also ends a thinking block if the format does not mark its end."""
        if whole := self._prose.feed(piece):
            self._open_call = None
            yield from self._end_thinking()
            gap, self._gap, self._has_said = self._gap, "", True
            yield TextDelta(gap + whole)

    def _part(self) -> None:
        """Separate the next prose from the previous prose, because the model did something else in
        between."""
        self._gap = "\n\n" if self._has_said else ""

    def _think(self, piece: str) -> Iterator[Event]:
        if whole := self._thoughts.feed(piece):
            self._is_thinking, self._open_call = True, None
            self._has_said, self._gap = False, ""
            yield ThinkingDelta(whole)

    def _end_thinking(self, signature: str = "") -> Iterator[Event]:
        if rest := self._thoughts.end():
            yield ThinkingDelta(rest)
        signed = sound_signature(signature)
        if rest or self._is_thinking or signed:
            self._has_said, self._gap = False, ""
            yield ThinkingEnd(signed)
        self._is_thinking = False

    def _interrupt(self) -> Iterator[Event]:
        """End thinking and prose before a call that the provider runs."""
        self._open_call = None
        yield from self._end_thinking()
        if rest := self._prose.end():
            yield TextDelta(rest)
        self._has_said, self._gap = False, ""

    def _conclude(
        self, calls: Sequence[PartialCall], reason: Reason, detail: str
    ) -> Iterator[Event]:
        """Yield the calls, then the end. The calls, not the provider's reason, decide whether the
        end's reason is `tool_calls`.
        """
        self.is_over, self._open_call = True, None
        yield from self._end_thinking()
        if rest := self._prose.end():
            yield TextDelta(rest)
        events = finished_calls(calls, cut=reason not in _WHOLE)
        yield from (Call(self.own_call(event.call)) for event in events)
        if reason in ("complete", "tool_calls"):
            reason = "tool_calls" if events else "complete"
        yield Finished(reason, _words(detail))


def stream_failed(provider: str, error: object) -> ModelError:
    """The error for a failure that a provider reports within the stream, in any form."""
    facts = error if isinstance(error, Mapping) else {"message": error}
    kinds = [kind for key in ("type", "code") if (kind := str(facts.get(key) or ""))]
    kind = kinds[0].replace("_", " ") if kinds else ""
    message = _words(str(facts.get("message") or kind or "no reason given"))
    has_failed, is_busy = not _OWN.isdisjoint(kinds), not _BUSY.isdisjoint(kinds)
    return ModelError(
        f"{provider} broke off the reply: {message}",
        reason=message[:REASON_SHOWN],
        retryable=has_failed or is_busy,
        is_broken=has_failed and not is_busy,
    )


# Anthropic's page says that an error may come in a stream after status 200, and lists `api_error`,
# `overloaded_error`, `rate_limit_error` and `timeout_error` (docs.anthropic.com/zh-CN/api/errors,
# 2026-11-22). For the other types, no source was kept; 529 is `OverloadedError` in anthropic 2.12,
# _exceptions.py. `internal_server_error` with code "500" is LiteLLM 1.110's event for a connection
# to its provider that was lost (2026-11-26).
_OWN = frozenset(
    ["api_error", "server_error", "internal_server_error", "500", "502"]  # 502: OpenRouter
)
"""Failures of the server itself; a gateway reports a lost connection to its provider in this
way."""
_BUSY = frozenset(
    [
        *["overloaded_error", "rate_limit_error", "timeout_error"],  # Anthropic
        *["rate_limit_exceeded", "malformed_function_call"],  # OpenAI, Gemini
        *["429", "503", "504", "529"],  # compatible servers that pass a status on
    ]
)
"""Other errors that the request did not cause; asking again at once would not help."""


def ended_early(provider: str) -> ModelError:
    """The error for a stream that ends before the reply is complete."""
    return ModelError(
        f"{provider} ended the stream before the reply was complete.",
        reason="the stream ended early",
        is_broken=True,
    )


def part_missing(provider: str) -> ModelError:
    """The error for a text with a piece that has not arrived."""
    return ModelError(
        f"{provider} did not send a part of the reply's text.",
        reason="a part of the text did not arrive",
        is_broken=True,
    )


def _words(words: str) -> str:
    """A provider's message as one bounded line, without text that looks like an API key."""
    line = _KEY.sub("…", one_line(words[: 4 * MESSAGE_SHOWN]))
    return line if len(line) <= MESSAGE_SHOWN else line[: MESSAGE_SHOWN - 1] + "…"


def sound_signature(signature: str) -> str:
    """The signature, or "" if a file cannot contain it unchanged."""
    is_sound = _SIGNATURE.fullmatch(signature) and fit(signature) == signature
    return signature if is_sound and signature.split(" ")[0] != "redacted" else ""
