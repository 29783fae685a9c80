"""Tools for a model that does not support them: describes tools in the request's text, and reads
calls from the reply's text.

Wraps any provider's format. The `Request` contains no tools, and the history uses the mode's
syntax; a decoder that wraps the provider's own decoder finds the calls in the text. A chat may
therefore change its mode at any point.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from parley.chat.history import CallOutcome, ModelTurn, Turn, UserTurn
from parley.chat.transcript import Attachment, Text
from parley.models import decoder
from parley.models.accumulate import PartialCall, PendingCall
from parley.models.attempts import TryFailed
from parley.models.events import Call, Event, Finished, TextDelta, ThinkingDelta, ThinkingEnd
from parley.models.request import Request, TextTools
from parley.models.text_tools.json import JsonExtractor
from parley.models.text_tools.prompt import TOOLS_OFF, corrections, results, text_call, tool_prompt
from parley.models.text_tools.text_calls import (
    Failed,
    Item,
    Prose,
    ReplyReader,
    TextCall,
    Thought,
    ThoughtEnd,
    problem_of,
)
from parley.models.text_tools.xml import XmlParser
from parley.tools.catalogue import Catalogue


def text_request(request: Request) -> Request:
    """The request for a provider without tools; the same request if it uses the provider's own
    tools.
    """
    text_tools = request.text_tools
    if text_tools is None or text_tools.syntax is None:
        return request
    turns = request.turns()
    return replace(
        request,
        system="\n\n".join(
            filter(None, (request.system, _about_tools(request, text_tools, turns)))
        ),
        max_tokens=min(request.max_tokens or text_tools.most_tokens, text_tools.most_tokens),
        catalogue=Catalogue(),
        tools_on=False,
        text_tools=None,
        wire_turns=tuple(_turns(request, text_tools, turns)),
    )


def _about_tools(request: Request, text_tools: TextTools, turns: Sequence[Turn]) -> str:
    if request.offers_tools:
        return tool_prompt(text_tools, request.catalogue)
    has_called = any(isinstance(turn, ModelTurn) and turn.calls for turn in turns)
    return TOOLS_OFF if has_called else ""


def _turns(request: Request, text_tools: TextTools, turns: Sequence[Turn]) -> Iterator[Turn]:
    """The turns without calls: each call is text, and the user reports its result."""
    is_one_by_one = text_tools.syntax == "xml" and text_tools.filter == "single"
    for turn in turns:
        if isinstance(turn, ModelTurn) and turn.calls:
            batches = [[call] for call in turn.calls] if is_one_by_one else [list(turn.calls)]
            yield from _batch(replace(turn, calls=()), text_tools, batches[0])
            for batch in batches[1:]:
                yield from _batch(ModelTurn((), (), turn.open), text_tools, batch)
        else:
            yield turn
    if text_tools.errors and request.offers_tools:
        yield UserTurn(corrections(text_tools))


def _batch(reply: ModelTurn, text_tools: TextTools, calls: Sequence[CallOutcome]) -> Iterator[Turn]:
    text = "\n".join(
        text_call(text_tools, outcome.call.name, outcome.call.arguments) for outcome in calls
    )
    yield replace(reply, parts=(*reply.parts, Text(text)))
    text, pictures = (
        results(calls),
        [p for call in calls for p in call.parts if isinstance(p, Attachment)],
    )
    yield UserTurn(text, (text, *pictures) if pictures else ())


# --- The stream -----------------------------------------------------------------------------------

_HEAD = 300
"""The number of characters within which a call has to contain its tool's name."""
_WHOLE = ("complete", "tool_calls", "pause")
"""The reasons for an end that do not mean that the reply was cut off."""


def text_decoder(inner: decoder.Decoder, request: Request) -> decoder.Decoder:
    """The decoder for a request's reply: the provider's own decoder, possibly inside a decoder that
    finds calls in text.
    """
    text_tools = request.text_tools
    if text_tools is None or text_tools.syntax is None or not request.offers_tools:
        return inner
    return TextToolDecoder(inner, text_tools, request.catalogue)


class TextToolDecoder(decoder.Decoder):
    """Takes the calls out of the text in another decoder's events.

    Raises TryFailed if the model tried to call a tool and failed. A reply that has made all the
    calls it may make is finished, and `wants_no_more`.
    """

    def __init__(self, inner: decoder.Decoder, text_tools: TextTools, catalogue: Catalogue) -> None:
        super().__init__(inner.provider, inner.model)
        self._inner = inner
        self.own_call = inner.own_call
        self._catalogue = catalogue
        self._is_strict = text_tools.syntax == "json"
        self._reader = _reader(text_tools, catalogue)
        self._texts = list[str]()
        self._calls = list[PartialCall]()
        names = [*catalogue.names(), *(tool.name for _, tool in catalogue.tools)]
        self._names = re.compile(rf"[\"'<]({'|'.join(map(re.escape, names))})[\"'>]")
        self._size = 0
        """The number of characters since the last settled item."""
        self._head = self._name = ""
        """The first of these characters, and the tool whose name they contain."""

    @property
    def pending_call(self) -> PendingCall | None:
        """The text that is held back, if it contains a tool's name."""
        return PendingCall(self._name, self._size) if self._name else None

    @property
    def answered(self) -> str:
        """The model that the wrapped decoder names."""
        return self._inner.answered

    def _take(self, raw: Mapping[str, Any]) -> Iterator[Event]:
        return self._translated(self._inner.feed(raw))

    def _finish(self) -> Iterator[Event]:
        return self._translated(self._inner.end())

    def _translated(self, events: Iterable[Event]) -> Iterator[Event]:
        for event in events:
            match event:
                case TextDelta(text):
                    yield from self._read(text)
                case Call(call):
                    self._calls.append(PartialCall(call.id, call.name, call.arguments))
                case Finished(reason, detail):
                    yield from self._events(self._reader.end(cut=reason not in _WHOLE))
                    yield from self._conclude(self._calls, reason, detail)
                case _:
                    yield event
            if self.is_over:
                return

    def _read(self, text: str) -> Iterator[Event]:
        self._texts.append(text)
        items = self._reader.feed(text)
        self._hold(text, is_settled=bool(items))
        yield from self._events(items)
        if self._reader.limit:
            self.wants_no_more = True
            yield from self._conclude(self._calls, "tool_calls", "")

    def _hold(self, text: str, *, is_settled: bool) -> None:
        if is_settled:
            self._size, self._head, self._name = 0, "", ""
        self._size += len(text)
        if not self._name and len(self._head) < _HEAD:
            self._head += text[:_HEAD]
            match = self._names.search(self._head)
            self._name = match[1] if match else ""

    def _events(self, items: Iterable[Item]) -> Iterator[Event]:
        for item in items:
            match item:
                case Prose(text):
                    yield TextDelta(text)
                case Thought(text):
                    yield ThinkingDelta(text)
                case ThoughtEnd():
                    yield ThinkingEnd()
                case TextCall(name, arguments):
                    self._check(item)
                    self._calls.append(PartialCall("", name, arguments))
                case Failed(error):
                    raise TryFailed(error, "".join(self._texts))

    def _check(self, call: TextCall) -> None:
        """In JSON, a call that does not match its tool's schema is a failed attempt; in XML, the
        call is answered in the file.
        """
        if self._is_strict and (error := problem_of(call, self._catalogue)):
            raise TryFailed(error, "".join(self._texts))


def _reader(text_tools: TextTools, catalogue: Catalogue) -> ReplyReader:
    if text_tools.syntax == "xml":
        return XmlParser(catalogue, single=text_tools.filter == "single")
    return JsonExtractor([*catalogue.names(), *(tool.name for _, tool in catalogue.tools)])
