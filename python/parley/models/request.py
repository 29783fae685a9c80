"""Everything that a request depends on, as one value from which the adapters build the body.

Knows which tools are offered with which history, but no wire format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Literal

from parley.chat.history import ModelTurn, ProviderCall, Turn
from parley.chat.omissions import size
from parley.chat.options import ThinkingSettings
from parley.chat.transcript import Attachment, Exchange, Thinking, Transcript
from parley.frozen import frozen
from parley.instructions.project import Instructions
from parley.models.context_window import ASSUMED_OUTPUT, BYTES_PER_TOKEN, Limit, context_window
from parley.models.encode import wire_name
from parley.models.events import Price
from parley.models.memory import Memory, memory
from parley.models.model_facts import NO_FACTS, ModelFacts
from parley.models.picture_limits import attachments_of, room, sees, selection, short_name
from parley.models.quirks import Quirk
from parley.models.searches import opened
from parley.models.text_tools.template import Template
from parley.models.tool_room import ToolRoom
from parley.text import counted
from parley.tools.catalogue import Catalogue, Tool

GONE = "This tool was called earlier; it cannot be called now."


@frozen
class TextTools:
    """How tools are described in a request's text; in mode `auto`, only if the provider does not
    support tools.

    `filter` is the number of calls allowed in an XML reply, `most_tokens` limits the request's
    `max_tokens`, and `errors` are the errors from earlier attempts.
    """

    mode: Literal["auto", "json", "xml"]
    template: Template
    filter: Literal["single", "unlimited"]
    most_tokens: int
    errors: tuple[str, ...] = ()

    @property
    def syntax(self) -> Literal["json", "xml"] | None:
        """The syntax of calls in the text; None if the provider's own tools are used."""
        return None if self.mode == "auto" else self.mode


@frozen
class Request:
    """A planned request for exchange `at` in the transcript, to a provider's model.

    If `tools_on` is False, calls are forbidden; the tools are left out only if the history contains
    no calls. If `keep_thinking` is False, no thinking is sent back, because the provider refused a
    signature. `quirks` are the quirks of the provider's server. `api` (the wire format) and
    `window` (the accepted tokens) were learnt from the provider; if None, the model's name decides.
    `text_tools` is set if tools have to, or may have to, be described in the text. `wire_turns` are
    the turns with wire names, if these differ from the names in the file.

    `pictures` maps the paths of `attachments` to their contents, or to the reasons why these are
    missing. `refused` are the paths of the pictures that the provider refused; `is_blind` means
    that it refused all pictures. `refused_tools` are the tools that the provider refused, which are
    no longer in the catalogue. `parameters` are the user's own fields for the body, and
    `refused_fields` the fields of the body that the provider refused. `price` is the price of
    the model's tokens, if known. `tool_room` limits the tools' schemas; if it is None, all
    schemas are sent. `may_wait` means that the next request may be late, because calls of this
    one's reply may wait for the user. `instructions` are the texts that `system` contains. The
    provider's list, or the settings, state the `facts` about the model. `web_search` means that the
    provider may search the web itself. `mode` is the mode that the chat wants for an agent of another
    program; "" for the one that asks.
    If `keep_searches` is False, nothing of earlier searches is sent back, because the
    provider refused it. `paused` is the content of a paused reply that the
    provider is asked to continue.
    """

    transcript: Transcript
    at: int
    provider: str
    model: str
    system: str = ""
    instructions: Instructions = ()
    max_tokens: int | None = None
    temperature: float | None = None
    thinking: ThinkingSettings = field(default_factory=ThinkingSettings)
    catalogue: Catalogue = field(default_factory=Catalogue)
    tools_on: bool = True
    max_full_exchanges: int | None = None
    keep_thinking: bool = True
    quirks: tuple[Quirk, ...] = ()
    api: str | None = None
    window: int | None = None
    text_tools: TextTools | None = None
    wire_turns: tuple[Turn, ...] | None = None
    price: Price | None = None
    pictures: Mapping[str, bytes | str] = field(default_factory=dict)
    refused: frozenset[str] = frozenset()
    is_blind: bool = False
    refused_tools: frozenset[Tool] = frozenset()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    refused_fields: frozenset[str] = frozenset()
    tool_room: ToolRoom | None = None
    may_wait: bool = False
    facts: ModelFacts = NO_FACTS
    web_search: bool = False
    mode: str = ""
    keep_searches: bool = True
    paused: tuple[Mapping[str, Any], ...] = ()
    _memories: list[Memory] = field(default_factory=list, init=False, compare=False, repr=False)
    """Computed once from the other fields."""

    @property
    def offers_tools(self) -> bool:
        """Whether the reply may contain calls."""
        return bool(self.tools_on and self.catalogue.tools)

    @property
    def has_text_calls(self) -> bool:
        """Whether tools are described in the text, and calls are read from it."""
        return self.text_tools is not None and self.text_tools.syntax is not None

    @property
    def may_search(self) -> bool:
        """Whether the provider may search the web, and can do so for this model, as far as known."""
        return self.web_search and self.facts.searches is not False

    def turns(self) -> tuple[Turn, ...]:
        """The turns to send."""
        return self.memory().turns if self.wire_turns is None else self.wire_turns

    def memory(self) -> Memory:
        """The part of the transcript to send: the whole transcript if it fits in the model's
        window.
        """
        if not self._memories:
            exchanges = self.transcript.exchanges[: self.at + 1]
            self._memories.append(
                memory(exchanges, self.max_full_exchanges, self.space, self.goes_back)
            )
        return self._memories[0]

    @property
    def space(self) -> int:
        """The bytes that remain for the transcript in the model's window."""
        return (self.reach - self._answer(self.reach)) * BYTES_PER_TOKEN - self._rest()

    @property
    def reach(self) -> int:
        """The tokens that the model accepts for prompt and reply together: as learnt, as listed, or
        according to its name."""
        return self.window or context_window(self.model, self.facts)

    def tokens(self) -> int:
        """The estimated number of tokens to send."""
        return (self._rest() + self.memory().size) // BYTES_PER_TOKEN

    def fullness(self) -> float:
        """The fraction of the model's window that the whole chat would fill."""
        return (self._rest() + self.memory().all) / BYTES_PER_TOKEN / self.reach

    def narrowed(self, limit: Limit | None = None) -> Request | None:
        """Make the request fit the limit from a refusal; without a limit, make it a quarter
        smaller.

        None if the request cannot be made smaller.
        """
        tokens = self.tokens()
        window = self._window_for(tokens * 3 // 4)
        if limit:
            reply = self._answer(limit.tokens) if limit.reply is None else limit.reply
            room = limit.tokens - reply
            fewer = room * tokens // limit.prompt if limit.prompt else room
            window = self._window_for(fewer) if fewer < tokens else window
        narrow = replace(self, window=window)
        return narrow if narrow.memory().size < self.memory().size else None

    def without(self, refused: frozenset[Tool]) -> Request:
        """Remove tools that the provider refused; returns the same request if it contains no such
        tools.
        """
        catalogue = self.catalogue.without(refused)
        if catalogue == self.catalogue and refused <= self.refused_tools:
            return self
        return replace(self, catalogue=catalogue, refused_tools=self.refused_tools | refused)

    def attachments(self) -> tuple[Attachment, ...]:
        """The attachments to read, without duplicates: the chat's pictures that may be sent, and the
        data that providers stored about the calls that they ran, the newest first.
        """
        exchanges = self.transcript.exchanges[: self.at + 1]
        unique = {a.path: a for exchange in exchanges for a in _pictures(exchange)}
        pictures = [a for a in reversed(unique.values()) if self._takes(a)]
        raw = {a.path: a for exchange in exchanges for a in _raw(exchange)}
        return (*pictures[: room(self.model).count], *reversed(raw.values()))

    def raw(self, call: ProviderCall, form: str) -> Any:
        """What a provider with this wire format stored about a call that it ran; None if there is
        nothing. Its shape is unknown, because anyone may have written it.
        """
        content = self.pictures.get(call.raw.path) if call.raw else None
        return opened(content, form) if isinstance(content, bytes) else None

    def images(self, turns: Sequence[Turn]) -> Mapping[str, bytes]:
        """The contents to send with the turns, by attachment path."""
        return self._selection(turns)[0] if self.pictures else {}

    def unseen(self) -> Iterator[str]:
        """Notices about pictures in the chat that are sent only as text."""
        every = [
            a for exchange in self.transcript.exchanges[: self.at + 1] for a in _pictures(exchange)
        ]
        if any(
            not self._takes(attachment) and attachment.path not in self.refused
            for attachment in every
        ):
            yield f"{self.model} cannot read some pictures or PDFs, so Parley sends text instead"
        if self.pictures:
            for path, why in self._selection(self.turns())[1].items():
                yield f"{short_name(path)}: {why}. Parley sends text instead"

    def _takes(self, attachment: Attachment) -> bool:
        is_fit = not self.is_blind and attachment.path not in self.refused
        return is_fit and sees(self.model, attachment.media_type, self.facts)

    def _selection(self, turns: Sequence[Turn]) -> tuple[Mapping[str, bytes], Mapping[str, str]]:
        fit = {
            a.path: self.pictures.get(a.path, "")
            for t in turns
            for a in attachments_of(t)
            if self._takes(a)
        }
        return selection(turns, fit, self.model)

    def _rest(self) -> int:
        """The bytes sent in addition to the transcript."""
        return size(self.system) + sum(tool.size for _, tool in self.catalogue.in_full)

    def _answer(self, window: int) -> int:
        """The tokens that are reserved for the reply in a window."""
        return self.max_tokens or min(ASSUMED_OUTPUT, window // 4)

    def _window_for(self, tokens: int) -> int:
        """The smallest window for a prompt of this many tokens."""
        is_small = not self.max_tokens and tokens < 3 * ASSUMED_OUTPUT
        return max(1, tokens * 4 // 3 if is_small else tokens + (self.max_tokens or ASSUMED_OUTPUT))

    def goes_back(self, part: Thinking, reply: ModelTurn) -> bool:
        """Whether to send thinking back: only if it is signed, in the open loop, and from the same
        model."""
        return self.keep_thinking and goes_back(part, reply, (self.provider, self.model))


def instruction_tokens(request: Request) -> list[tuple[str, str]]:
    """The names of a request's instructions, each with its estimated number of tokens."""
    return [
        (each.name, f"about {counted(size(each.text) // BYTES_PER_TOKEN, 'token')}")
        for each in request.instructions
    ]


def goes_back(part: Thinking, reply: ModelTurn, model: tuple[str, str]) -> bool:
    """Whether thinking is sent to this model; `model` is a provider and a model."""
    return reply.open and (part.provider, part.model) == model and bool(part.signature)


def _pictures(exchange: Exchange) -> tuple[Attachment, ...]:
    """The pictures in an exchange, in order."""
    if "pictures" not in exchange.derived:
        parts = exchange.question.parts if exchange.question else ()
        results = (p.result for answer in exchange.answers for p in answer.calls if p.result)
        returned = (a for result in results for a in result.attachments if not a.is_text)
        exchange.derived["pictures"] = (*(p for p in parts if isinstance(p, Attachment)), *returned)
    pictures: tuple[Attachment, ...] = exchange.derived["pictures"]
    return pictures


def _raw(exchange: Exchange) -> tuple[Attachment, ...]:
    """The attachments of an exchange that only a provider understands, in order."""
    if "raw" not in exchange.derived:
        results = (
            call.result
            for answer in exchange.answers
            for call in answer.calls
            if call.result and call.ran_by == "provider"
        )
        exchange.derived["raw"] = tuple(a for r in results for a in r.attachments if a.is_text)
    raw: tuple[Attachment, ...] = exchange.derived["raw"]
    return raw


def tool_fields(
    request: Request,
    turns: Sequence[Turn],
    shape: Callable[[str, Tool], dict[str, Any]],
    none: object,
) -> dict[str, Any]:
    """The field `tools` in the format's `shape`, and `tool_choice` if calls are forbidden.

    Providers refuse a history with calls but no tools. Therefore, if the catalogue has become
    empty, the called tools are listed and forbidden.
    """
    names = {
        wire_name(outcome.call.name)
        for turn in turns
        if isinstance(turn, ModelTurn)
        for outcome in turn.calls
    }
    if not names and not request.tools_on:
        return {}
    tools = request.catalogue.in_full or tuple(
        (name, Tool("", name, description=GONE)) for name in sorted(names)
    )
    offered = {"tools": [shape(name, tool) for name, tool in tools]} if tools else {}
    return offered if request.offers_tools or not tools else offered | {"tool_choice": none}
