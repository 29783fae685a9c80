"""Decides which part of a chat is sent to a model whose window has no room for the whole chat.

Each step of a ladder leaves out a little more, and the ladder stops as soon as the request fits.
The order does not depend on the room, so a model with more room never receives less of the chat. No
step separates a call from its result. The last steps cut the current question, so every chat can be
sent. Knows bytes and turns, but not tokens or wire formats.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, TypeAlias

from parley.chat.history import (
    OMITTED,
    ModelTurn,
    ProviderCall,
    Turn,
    UserTurn,
    joined,
    portions,
    shortened,
    whole,
)
from parley.chat.omissions import (
    bare,
    cut_question,
    cut_results,
    cut_texts,
    question_only,
    short_question,
    size,
    without_pictures,
    without_provider_calls,
    without_results,
    without_thinking,
)
from parley.chat.transcript import Attachment, Exchange, Text, Thinking
from parley.frozen import frozen

RECENT = 3
"""How many exchanges, including the current exchange, stay complete as long as possible."""
QUESTION = 400
"""How many bytes of the question are kept from an exchange without a summary, if space is short."""
RESULT = 16_000
"""How many bytes of the current answer's results are kept until older parts have been left out."""
LEAST_TOKENS = 400
"""How many bytes of every text are kept."""
FRAME = 16
"""The overhead of a text in bytes, for its author, its beginning and its end."""
PICTURE = 6_000
"""The approximate cost of a picture, in bytes of text."""
_BESIDE_QUESTION = FRAME + size(f"\n\n{OMITTED}")
_LONGEST_NAME = 64

Form: TypeAlias = Literal["bare", "summary", "question", "nothing"]
"""How an older exchange is sent if it is not sent in full; "bare" means without results."""


@frozen
class Memory:
    """The turns to send, their `size` and the size of `all` turns in bytes, and what was left out.

    `results` counts the results of which only the size is sent. `summaries`, `questions` and
    `missing` count the older exchanges of which only the summary, only the beginning of the
    question, or nothing is sent. `is_cut` means that the current exchange is cut.
    """

    turns: tuple[Turn, ...]
    size: int
    all: int
    results: int = 0
    summaries: int = 0
    questions: int = 0
    missing: int = 0
    is_cut: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether everything is sent."""
        return self.size == self.all


def memory(
    exchanges: Sequence[Exchange],
    max_full_exchanges: int | None,
    room: int,
    goes_back: Callable[[Thinking, ModelTurn], bool],
) -> Memory:
    """The turns to send for an answer to the last exchange, in at most `room` bytes if possible.

    `goes_back` decides which thinking is sent.
    """
    turns = portions(exchanges, max_full_exchanges)
    sizes = [
        _size_of(exchange, portion)
        for exchange, portion in zip(exchanges[:-1], turns, strict=False)
    ]
    own_sizes = [_size(turn, goes_back) for turn in turns[-1]] if turns else []
    total = sum(sizes) + sum(own_sizes)
    if total <= room:
        return Memory(joined(turns, exchanges), total, total)
    ladder = _Ladder(exchanges, turns, sizes, own_sizes, total - room, goes_back)
    for excess in ladder.steps():
        if excess <= 0:
            break
    return ladder.memory(total)


def _size_of(exchange: Exchange, turns: tuple[Turn, ...]) -> int:
    """The size of an older exchange's turns, cached in the exchange."""
    sizes: dict[int, tuple[tuple[Turn, ...], int]] = exchange.derived.setdefault("sizes", {})
    if id(turns) not in sizes:
        sizes[id(turns)] = turns, sum(map(_size, turns))
    return sizes[id(turns)][1]


def _size(turn: Turn, goes_back: Callable[[Thinking, ModelTurn], bool] = lambda *_: False) -> int:
    if isinstance(turn, UserTurn):
        return FRAME + size(turn.text) + _pictures(turn.parts)
    thoughts = [p for p in turn.parts if isinstance(p, Thinking) and goes_back(p, turn)]
    names = [
        min(size(each.call.name), _LONGEST_NAME) + size(each.call.extra) for each in turn.calls
    ]
    searches = map(_size_of_search, (p for p in turn.parts if isinstance(p, ProviderCall)))
    texts = [
        *(size(p.text or "") + size(p.signature) for p in thoughts),
        *searches,
        *names,
        *_lengths(turn),
    ]
    return FRAME * len(texts) + sum(texts) + sum(_pictures(outcome.parts) for outcome in turn.calls)


def _size_of_search(part: ProviderCall) -> int:
    """The size of a call that a provider ran, for example a search, with its result. The size of
    the result is only known from its label.
    """
    return (
        size(part.call.name) + size(part.call.arguments) + (part.raw.byte_count if part.raw else 0)
    )


def _pictures(parts: Iterable[str | Attachment]) -> int:
    return PICTURE * sum(isinstance(part, Attachment) for part in parts)


def _lengths(turn: Turn) -> Iterator[int]:
    """The sizes of the texts in a model's turn that can be cut."""
    if isinstance(turn, ModelTurn):
        yield from (size(part.text) for part in turn.parts if isinstance(part, Text))
        yield from (size(outcome.call.arguments) for outcome in turn.calls)
        yield from _results(turn)


def _results(turn: Turn) -> Iterator[int]:
    """The sizes of a turn's results."""
    if isinstance(turn, ModelTurn):
        yield from (size(outcome.content) for outcome in turn.calls)


class _Ladder:
    """Reduces the exchanges' turns step by step."""

    def __init__(
        self,
        exchanges: Sequence[Exchange],
        portions: Sequence[tuple[Turn, ...]],
        sizes: list[int],
        own_sizes: list[int],
        excess: int,
        goes_back: Callable[[Thinking, ModelTurn], bool],
    ) -> None:
        """`excess` is the number of bytes over the limit; `own` refers to the current exchange."""
        self._exchanges = exchanges
        self._older = list(portions[:-1])
        self._sizes = sizes
        self._own: list[Turn | None] = list(portions[-1])
        self._own_sizes = own_sizes
        self._excess = excess
        self._goes_back = goes_back
        self._forms: dict[int, Form] = {}
        self._has_marker = False
        self._own_results = 0
        self._is_cut = False

    def memory(self, total: int) -> Memory:
        """The remaining turns."""
        own = tuple(turn for turn in self._own if turn is not None)
        forms = list(self._forms.values())
        numbers = [number for number, form in self._forms.items() if form == "bare"]
        bare = [whole(self._exchanges[number], is_answered=False) for number in numbers]
        return Memory(
            joined([*self._older, own], self._exchanges),
            sum(self._sizes) + sum(self._own_sizes),
            total,
            self._own_results + sum(_omitted(turn) for turns in bare for turn in turns),
            forms.count("summary"),
            forms.count("question"),
            forms.count("nothing"),
            self._is_cut,
        )

    def steps(self) -> Iterator[int]:
        """Take one step after another; yields the number of bytes that are still over the limit."""
        count = len(self._older)
        older = range(max(count - RECENT + 1, 0))
        recent = range(len(older), count)
        yield from self._without_results(older)
        yield from self._summaries(older)
        yield from self._questions(older)
        yield from self._without_results(recent)
        yield from self._without_own_results()
        yield from self._cut_own(_results, cut_results, RESULT)
        yield from self._summaries(recent)
        yield from self._questions(recent)
        yield from self._nothing(range(count))
        yield from self._change_own(without_thinking)
        yield from self._change_own(without_provider_calls)
        yield from self._change_own(
            lambda turn: turn if isinstance(turn, UserTurn) else without_pictures(turn)
        )
        yield from self._cut_own(_lengths, cut_texts, LEAST_TOKENS)
        yield from self._last_reply_only()
        yield from self._change_own(without_pictures)
        yield from self._cut_own(_question, cut_question, LEAST_TOKENS)

    # --- Older exchanges --------------------------------------------------------------------------

    def _without_results(self, numbers: range) -> Iterator[int]:
        for number in numbers:
            exchange = self._exchanges[number]
            if self._older[number] is whole(exchange, is_answered=False):
                turns = bare(exchange)
                if turns is not self._older[number] and self._put(number, "bare", turns):
                    yield self._excess

    def _summaries(self, numbers: range) -> Iterator[int]:
        for number in numbers:
            turns = shortened(self._exchanges[number])
            if turns and self._put(number, "summary", turns):
                yield self._excess

    def _questions(self, numbers: range) -> Iterator[int]:
        """Reduce exchanges without a summary to the beginning of the question, as much as fits."""
        for number in numbers:
            exchange = self._exchanges[number]
            if not shortened(exchange):
                spare = self._sizes[number] - self._excess - _BESIDE_QUESTION
                if self._put(number, "question", short_question(exchange, QUESTION)):
                    if spare > QUESTION:
                        turns = question_only(exchange, spare)
                        self._replace(number, "question", turns, sum(map(_size, turns)))
                    yield self._excess

    def _nothing(self, numbers: range) -> Iterator[int]:
        """Omit these exchanges; one marker replaces all of them."""
        waiting, marker = list[int](), (UserTurn(OMITTED),)
        for number in filter(self._sizes.__getitem__, numbers):
            waiting.append(number)
            if self._has_marker or sum(self._sizes[n] for n in waiting) > _size(marker[0]):
                for each in waiting:
                    turns, self._has_marker = () if self._has_marker else marker, True
                    self._replace(each, "nothing", turns, sum(map(_size, turns)))
                waiting.clear()
                yield self._excess

    def _put(self, number: int, form: Form, turns: tuple[Turn, ...]) -> bool:
        """Send an exchange in another form, which is cached in the exchange; returns False if this
        form is not smaller.
        """
        smaller = _size_of(self._exchanges[number], turns)
        if smaller >= self._sizes[number]:
            return False
        self._replace(number, form, turns, smaller)
        return True

    def _replace(self, number: int, form: Form, turns: tuple[Turn, ...], smaller: int) -> None:
        self._excess -= self._sizes[number] - smaller
        self._older[number], self._sizes[number], self._forms[number] = turns, smaller, form

    # --- The current exchange ---------------------------------------------------------------------

    def _without_own_results(self) -> Iterator[int]:
        """Omit the results of all rounds except the last, oldest first."""
        for number, turn in enumerate(self._own[:-1]):
            if turn and self._put_own(number, without_results(turn)):
                self._own_results += _omitted(turn)
                yield self._excess

    def _cut_own(
        self,
        lengths: Callable[[Turn], Iterable[int]],
        change: Callable[[Turn, int], Turn],
        least: int,
    ) -> Iterator[int]:
        """Cut the longest texts to the same length, which is as long as possible, at least
        `least`."""
        most = _most(
            [length for turn in self._own if turn for length in lengths(turn)], least, self._excess
        )
        yield from self._change_own(lambda turn: change(turn, most))

    def _change_own(self, change: Callable[[Turn], Turn]) -> Iterator[int]:
        changes = [self._put_own(n, change(turn)) for n, turn in enumerate(self._own) if turn]
        if any(changes):
            self._is_cut = True
            yield self._excess

    def _last_reply_only(self) -> Iterator[int]:
        """Drop all replies except the last, oldest first, with their calls and results."""
        replies = [number for number, turn in enumerate(self._own) if isinstance(turn, ModelTurn)]
        for number in replies[:-1]:
            self._put_own(number, None)
            self._is_cut = True
            yield self._excess

    def _put_own(self, number: int, turn: Turn | None) -> bool:
        """Replace a turn with a shorter turn; returns False if the two turns are the same."""
        if turn is self._own[number]:
            return False
        smaller = _size(turn, self._goes_back) if turn else 0
        self._excess -= self._own_sizes[number] - smaller
        self._own[number], self._own_sizes[number] = turn, smaller
        return True


def _omitted(turn: Turn) -> int:
    """The number of results that are omitted from a turn."""
    if isinstance(turn, UserTurn):
        return 0
    return len(turn.calls) + sum(isinstance(part, ProviderCall) for part in turn.parts)


def _question(turn: Turn) -> Iterator[int]:
    if isinstance(turn, UserTurn):
        yield size(turn.text)


def _most(lengths: Sequence[int], least: int, excess: int) -> int:
    """The maximum length in bytes to which texts must be cut if together they have to lose `excess`
    bytes.
    """

    def is_too_much(most: int) -> bool:
        return sum(max(length - most, 0) for length in lengths) < excess

    lengths = [length for length in lengths if length > least]
    return least + max(
        bisect_left(range(least, max([least, *lengths])), True, key=is_too_much) - 1, 0
    )
