"""Everything a request depends on, as one value; the adapters make a request body of it and of nothing else.

Knows which tools are offered with which history. Knows no wire format.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain
from typing import Any, Literal

from parley.chat.history import ModelTurn, Turn, UserTurn, history, shortened, whole
from parley.chat.options import ThinkingSettings
from parley.chat.transcript import Exchange, Thinking, Transcript
from parley.models.context_window import ASSUMED_OUTPUT, BYTES_PER_TOKEN, context_window, size
from parley.models.encode import wire_name
from parley.models.quirks import Quirk
from parley.models.text_tools.template import Template
from parley.tools.catalogue import Catalogue, Tool

GONE = "This tool was called earlier; it cannot be called now."


@dataclass(frozen=True, slots=True)
class TextTools:
    """How tools are described in the text of a request; in mode `auto` only if the provider has none.

    `filter` says how many calls a reply in XML may have, `most_tokens` bounds the request's `max_tokens`;
    `errors` are those of the tries before.
    """

    mode: Literal["auto", "json", "xml"]
    template: Template
    filter: Literal["single", "unlimited"]
    most_tokens: int
    errors: tuple[str, ...] = ()

    @property
    def syntax(self) -> Literal["json", "xml"] | None:
        """How calls are written in the text; None where the provider's own tools are used."""
        return None if self.mode == "auto" else self.mode


@dataclass(frozen=True, slots=True)
class Request:
    """A request to be: exchange `at` of the transcript, asked of a provider's model.

    `tools_on` False forbids calls, and leaves the tools out only when the history holds none.
    `keep_thinking` False sends no thinking back, for when the provider refused a signature.
    `quirks` are the oddities of the provider's server. `api` and `window` are what the provider was found to
    want: one of its wire formats, and the tokens that it takes; else the model's name tells. `text_tools` is
    there where tools have to be, or may have to be, described in the text; `text_turns` are the turns where
    they have been.
    """

    transcript: Transcript
    at: int
    provider: str
    model: str
    system: str = ""
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
    text_turns: tuple[Turn, ...] | None = None

    @property
    def offers_tools(self) -> bool:
        """Whether the reply may hold calls."""
        return bool(self.tools_on and self.catalogue.tools)

    def turns(self) -> tuple[Turn, ...]:
        """The part of the transcript that is sent."""
        if self.text_turns is not None:
            return self.text_turns
        return self._history(self._fitting(_Sizes(self)))

    def tokens(self) -> int:
        """The tokens that are sent, by the estimate that decides what fits."""
        sizes = _Sizes(self)
        return sizes.of(self._fitting(sizes)) // BYTES_PER_TOKEN

    def crowded(self) -> int | None:
        """How many exchanges are sent whole where the model takes no more of them; None where all fit."""
        fewer = self._fitting(_Sizes(self))
        return fewer if self._history(fewer) != self._history(self.max_full_exchanges) else None

    def narrowed(self) -> Request | None:
        """The request made a quarter smaller, where older exchanges can stand back; None where none can."""
        sizes = _Sizes(self)
        full = self._fitting(sizes)
        narrow = replace(self, window=sizes.of(full) // BYTES_PER_TOKEN * 3 // 4 + self._answer())
        return narrow if narrow.turns() != self.turns() else None

    def _history(self, full: int | None) -> tuple[Turn, ...]:
        return history(self.transcript, self.at, max_full_exchanges=full)

    def _fitting(self, sizes: _Sizes) -> int | None:
        """As many exchanges as are wanted and fit, the one that is answered at least; None is all."""

        def fits(full: int | None) -> bool:
            window = self.window or context_window(self.model)
            return sizes.of(full) // BYTES_PER_TOKEN + self._answer() <= window

        if fits(self.max_full_exchanges):
            return self.max_full_exchanges
        most = min(filter(None, (self.max_full_exchanges, self.at + 1)))
        fewer = bisect_left(range(most), True, key=lambda n: fits(most - n))
        return max(most - fewer, 1)

    def _answer(self) -> int:
        return self.max_tokens or ASSUMED_OUTPUT

    def goes_back(self, part: Thinking, reply: ModelTurn) -> bool:
        """Whether thinking is sent: only signed, in the open loop, and to the model that made it."""
        is_own = (part.provider, part.model) == (self.provider, self.model)
        return reply.open and self.keep_thinking and is_own and bool(part.signature)


class _Sizes:
    """Bytes of what is sent, by how many exchanges are sent whole."""

    def __init__(self, request: Request) -> None:
        exchanges = request.transcript.exchanges[: request.at + 1]
        tools = (f"{tool.description}{tool.input_schema}" for _, tool in request.catalogue.tools)
        self._rest = sum(map(size, chain([request.system], tools)))
        sizes = [_sizes(exchange) for exchange in exchanges[:-1]]
        sizes += [(_size(whole(exchange, is_answered=True)), 0) for exchange in exchanges[-1:]]
        self._whole = [0, *accumulate(whole for whole, _ in sizes)]
        self._short = [0, *accumulate(short for _, short in sizes)]

    def of(self, full: int | None) -> int:
        """Where so many exchanges are sent whole; None is all."""
        count = len(self._whole) - 1
        old = 0 if full is None else max(count - max(full, 1), 0)
        return self._rest + self._short[old] + self._whole[-1] - self._whole[old]


def _sizes(exchange: Exchange) -> tuple[int, int]:
    """The bytes of an exchange that is sent whole, or shortened."""
    if "sizes" not in exchange.derived:
        long = whole(exchange, is_answered=False)
        exchange.derived["sizes"] = _size(long), _size(shortened(exchange) or long)
    sizes: tuple[int, int] = exchange.derived["sizes"]
    return sizes


def _size(turns: Iterable[Turn]) -> int:
    return sum(size(text) for turn in turns for text in _texts(turn))


def _texts(turn: Turn) -> Iterator[str]:
    match turn:
        case UserTurn(text):
            yield text
        case ModelTurn():
            yield turn.text
            for outcome in turn.calls:
                yield from (outcome.call.name, outcome.call.arguments, outcome.content)


def tool_fields(
    request: Request, turns: Sequence[Turn], shape: Callable[[str, Tool], dict[str, Any]], none: object
) -> dict[str, Any]:
    """The fields `tools`, each in the format's `shape`, and where calls are forbidden `tool_choice` none.

    Providers refuse a history with calls and no tools, so where the catalogue has become empty the tools
    that were called are named, and forbidden.
    """
    names = {
        wire_name(outcome.call.name)
        for turn in turns
        if isinstance(turn, ModelTurn)
        for outcome in turn.calls
    }
    if not names and not request.tools_on:
        return {}
    tools = request.catalogue.tools or tuple(
        (name, Tool("", name, description=GONE)) for name in sorted(names)
    )
    offered = {"tools": [shape(name, tool) for name, tool in tools]} if tools else {}
    return offered if request.offers_tools or not tools else offered | {"tool_choice": none}
