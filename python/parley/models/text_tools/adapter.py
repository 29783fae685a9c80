"""Tools for a model without any: a request that describes them in words, a reply read from its text.

Wraps any provider's format. The request is an `Ask` without tools, its history in the mode's own syntax; the
decoder around the provider's own finds the calls in the text. So a chat may change its mode at any point.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from parley.chat.history import Answered, Asked, Reply, Turn
from parley.chat.transcript import Text
from parley.errors import ParleyError
from parley.models import decoder
from parley.models.accumulate import Arriving
from parley.models.events import Call, Event, Finished, TextDelta, ThinkingDelta, ThinkingEnd
from parley.models.request import Ask
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
class PromptAsk(Ask):
    """An `Ask` whose tools may have to be described in words: in `auto` only if the provider has none.

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
    def of(cls, ask: Ask, **further: Any) -> PromptAsk:
        """The same request, with what its tools need."""
        return cls(**{name: getattr(ask, name) for name in Ask.__dataclass_fields__}, **further)


@dataclass(frozen=True, slots=True)
class _Worded(Ask):
    """A request whose turns are made already."""

    said: tuple[Turn, ...] = ()

    def turns(self) -> tuple[Turn, ...]:
        return self.said


def worded(ask: Ask) -> Ask:
    """The request as a provider without tools takes it; one that uses the provider's own is left as it is."""
    if not isinstance(ask, PromptAsk) or ask.syntax is None:
        return ask
    turns = ask.turns()
    fields: dict[str, Any] = {name: getattr(ask, name) for name in Ask.__dataclass_fields__}
    fields |= {"catalogue": Catalogue(), "tools_on": False}
    fields["system"] = "\n\n".join(filter(None, (ask.system, _about_tools(ask, ask.syntax, turns))))
    fields["max_tokens"] = min(ask.max_tokens or ask.most_tokens, ask.most_tokens)
    return _Worded(**fields, said=tuple(_turns(ask, ask.syntax, turns)))


def _about_tools(ask: PromptAsk, syntax: Syntax, turns: Sequence[Turn]) -> str:
    if ask.offers_tools:
        return tool_prompt(syntax, ask.template, ask.catalogue)
    has_called = any(isinstance(turn, Reply) and turn.calls for turn in turns)
    return TOOLS_OFF if has_called else ""


def _turns(ask: PromptAsk, syntax: Syntax, turns: Sequence[Turn]) -> Iterator[Turn]:
    """The turns without calls: each call in words, and the user telling what it returned."""
    is_one_by_one = syntax == "xml" and ask.filter == "single"
    for turn in turns:
        if isinstance(turn, Reply) and turn.calls:
            batches = [[each] for each in turn.calls] if is_one_by_one else [list(turn.calls)]
            yield from _batch(replace(turn, calls=()), syntax, batches[0])
            for batch in batches[1:]:
                yield from _batch(Reply((), (), turn.open), syntax, batch)
        else:
            yield turn
    if ask.errors and ask.offers_tools:
        yield Asked(corrections(syntax, ask.errors))


def _batch(reply: Reply, syntax: Syntax, calls: Sequence[Answered]) -> Iterator[Turn]:
    text = "\n".join(written(syntax, each.call.name, each.call.arguments) for each in calls)
    yield replace(reply, parts=(*reply.parts, Text(text)))
    yield Asked(results(calls))


# --- The stream -------------------------------------------------------------------------------------------

_WHOLE = ("complete", "tool_calls", "pause")
"""Ends of a reply that is not cut."""


def reading(inner: decoder.Decoder, ask: Ask) -> decoder.Decoder:
    """The decoder for a request's reply: the provider's own, or one around it that finds calls in text."""
    if not isinstance(ask, PromptAsk) or ask.syntax is None or not ask.offers_tools:
        return inner
    return PromptedDecoder(inner, ask)


class PromptedDecoder(decoder.Decoder):
    """Takes the calls out of the text of the events that a provider's decoder gives.

    Raises TryFailed where the model tried to call and failed. When a reply has had all the calls it may
    have, it is finished, and `wants_no_more`.
    """

    def __init__(self, inner: decoder.Decoder, ask: PromptAsk) -> None:
        super().__init__(inner.provider, inner.model)
        self._inner = inner
        self._catalogue = ask.catalogue
        self._is_strict = ask.syntax == "json"
        self._reader = _reader(ask)
        self._said = list[str]()
        self._made = list[Arriving]()

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
                    self._made.append(Arriving(call.id, call.name, call.arguments))
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
                    self._made.append(Arriving("", name, arguments))
                case Failed(error):
                    raise TryFailed(error, "".join(self._said))

    def _check(self, found: Found) -> None:
        """In JSON a call that does not fit its tool is a failed try; in XML it is answered in the file."""
        if self._is_strict and (error := wrong_with(found, self._catalogue)):
            raise TryFailed(error, "".join(self._said))


def _reader(ask: PromptAsk) -> Reader:
    if ask.syntax == "xml":
        return XmlParser(ask.catalogue, single=ask.filter == "single")
    return JsonExtractor([*ask.catalogue.names(), *(tool.name for _, tool in ask.catalogue.tools)])
