"""Tools for a model without any: a request that describes them in words, a reply read from its text.

Wraps any provider's format. The `Request` has no tools, and its history is in the syntax of the mode; the
decoder around the provider's own finds the calls in the text. So a chat may change its mode at any point.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from parley.chat.history import CallOutcome, ModelTurn, Turn, UserTurn
from parley.chat.transcript import Text
from parley.errors import ParleyError
from parley.models import decoder
from parley.models.accumulate import PartialCall
from parley.models.events import Call, Event, Finished, TextDelta, ThinkingDelta, ThinkingEnd
from parley.models.request import Request
from parley.models.text_tools.json import JsonExtractor
from parley.models.text_tools.prompt import TOOLS_OFF, Syntax, corrections, results, tool_prompt, written
from parley.models.text_tools.template import Template, builtin_templates
from parley.models.text_tools.text_calls import (
    Failed,
    Found,
    Item,
    Prose,
    Reader,
    Thought,
    ThoughtEnd,
    ToolLimitReached,
    wrong_with,
)
from parley.models.text_tools.xml import XmlParser
from parley.tools.catalogue import Catalogue

Mode: TypeAlias = Literal["auto", "json", "xml"]

MAX_TOKENS = 4096
"""Upper bound of `max_tokens` where the settings name none."""


class TryFailed(ParleyError):  # noqa: N818 - one try of several
    """The model tried to call a tool and failed: an error in words for the model, and what it had `said`."""

    def __init__(self, error: str, said: str) -> None:
        super().__init__(error)
        self.said = said


@dataclass(frozen=True, slots=True)
class TextToolRequest(Request):
    """A `Request` whose tools may have to be described in words: in `auto` only if the provider has none.

    `filter` says how many calls a reply in XML may have; `errors` are those of the tries before.
    """

    mode: Mode = "auto"
    template: Template = field(default_factory=lambda: builtin_templates()[-1])
    filter: Literal["single", "unlimited"] = "single"
    most_tokens: int = MAX_TOKENS
    errors: tuple[str, ...] = ()

    @property
    def syntax(self) -> Syntax | None:
        """How calls are written in the text; None where the provider's own tools are used."""
        return None if self.mode == "auto" else self.mode

    @property
    def offers_tools(self) -> bool:
        """Whether the reply may hold calls."""
        return bool(self.tools_on and self.catalogue.tools)

    @classmethod
    def of(cls, request: Request, **further: Any) -> TextToolRequest:
        """The same request, with what its tools need."""
        return cls(**{name: getattr(request, name) for name in Request.__dataclass_fields__}, **further)


@dataclass(frozen=True, slots=True)
class _Worded(Request):
    """A request whose turns are made already."""

    said: tuple[Turn, ...] = ()

    def turns(self) -> tuple[Turn, ...]:
        return self.said


def worded(request: Request) -> Request:
    """The request as a provider without tools takes it; one that uses the provider's own is left as it is."""
    if not isinstance(request, TextToolRequest) or request.syntax is None:
        return request
    turns = request.turns()
    fields: dict[str, Any] = {name: getattr(request, name) for name in Request.__dataclass_fields__}
    fields |= {"catalogue": Catalogue(), "tools_on": False}
    fields["system"] = "\n\n".join(
        filter(None, (request.system, _about_tools(request, request.syntax, turns)))
    )
    fields["max_tokens"] = min(request.max_tokens or request.most_tokens, request.most_tokens)
    return _Worded(**fields, said=tuple(_turns(request, request.syntax, turns)))


def _about_tools(request: TextToolRequest, syntax: Syntax, turns: Sequence[Turn]) -> str:
    if request.offers_tools:
        return tool_prompt(syntax, request.template, request.catalogue)
    has_called = any(isinstance(turn, ModelTurn) and turn.calls for turn in turns)
    return TOOLS_OFF if has_called else ""


def _turns(request: TextToolRequest, syntax: Syntax, turns: Sequence[Turn]) -> Iterator[Turn]:
    """The turns without calls: each call in words, and the user telling what it returned."""
    is_one_by_one = syntax == "xml" and request.filter == "single"
    for turn in turns:
        if isinstance(turn, ModelTurn) and turn.calls:
            batches = [[each] for each in turn.calls] if is_one_by_one else [list(turn.calls)]
            yield from _batch(replace(turn, calls=()), syntax, batches[0])
            for batch in batches[1:]:
                yield from _batch(ModelTurn((), (), turn.open), syntax, batch)
        else:
            yield turn
    if request.errors and request.offers_tools:
        yield UserTurn(corrections(syntax, request.errors))


def _batch(reply: ModelTurn, syntax: Syntax, calls: Sequence[CallOutcome]) -> Iterator[Turn]:
    text = "\n".join(written(syntax, each.call.name, each.call.arguments) for each in calls)
    yield replace(reply, parts=(*reply.parts, Text(text)))
    yield UserTurn(results(calls))


# --- The stream -------------------------------------------------------------------------------------------

_WHOLE = ("complete", "tool_calls", "pause")
"""Ends of a reply that is not cut."""


def reading(inner: decoder.Decoder, request: Request) -> decoder.Decoder:
    """The decoder for a request's reply: the provider's own, or one around it that finds calls in text."""
    if not isinstance(request, TextToolRequest) or request.syntax is None or not request.offers_tools:
        return inner
    return TextToolDecoder(inner, request)


class TextToolDecoder(decoder.Decoder):
    """Takes the calls out of the text of the events that a provider's decoder gives.

    Raises TryFailed where the model tried to call and failed. When a reply has had all the calls it may
    have, it is finished, and `wants_no_more`.
    """

    def __init__(self, inner: decoder.Decoder, request: TextToolRequest) -> None:
        super().__init__(inner.provider, inner.model)
        self._inner = inner
        self._catalogue = request.catalogue
        self._is_strict = request.syntax == "json"
        self._reader = _reader(request)
        self._said = list[str]()
        self._made = list[PartialCall]()

    def _take(self, raw: Mapping[str, Any]) -> Iterator[Event]:
        return self._heard(self._inner.feed(raw))

    def _finish(self) -> Iterator[Event]:
        return self._heard(self._inner.end())

    def _heard(self, events: Iterable[Event]) -> Iterator[Event]:
        for event in events:
            match event:
                case TextDelta(text):
                    yield from self._read(text)
                case Call(call):
                    self._made.append(PartialCall(call.id, call.name, call.arguments))
                case Finished(reason, detail):
                    yield from self._events(self._reader.end(cut=reason not in _WHOLE))
                    yield from self._conclude(self._made, reason, detail)
                case _:
                    yield event
            if self._is_over:
                return

    def _read(self, text: str) -> Iterator[Event]:
        self._said.append(text)
        try:
            yield from self._events(self._reader.feed(text))
        except ToolLimitReached as limit:
            yield from self._events(limit.items)
            self.wants_no_more = True
            yield from self._conclude(self._made, "tool_calls", "")

    def _events(self, items: Iterable[Item]) -> Iterator[Event]:
        for item in items:
            match item:
                case Prose(text):
                    yield TextDelta(text)
                case Thought(text):
                    yield ThinkingDelta(text)
                case ThoughtEnd():
                    yield ThinkingEnd()
                case Found(name, arguments):
                    self._check(item)
                    self._made.append(PartialCall("", name, arguments))
                case Failed(error):
                    raise TryFailed(error, "".join(self._said))

    def _check(self, found: Found) -> None:
        """In JSON a call that does not fit its tool is a failed try; in XML it is answered in the file."""
        if self._is_strict and (error := wrong_with(found, self._catalogue)):
            raise TryFailed(error, "".join(self._said))


def _reader(request: TextToolRequest) -> Reader:
    if request.syntax == "xml":
        return XmlParser(request.catalogue, single=request.filter == "single")
    return JsonExtractor([*request.catalogue.names(), *(tool.name for _, tool in request.catalogue.tools)])
