"""Shortens parts of a chat before they are sent, with a text in place of the omitted content.

Knows how to shorten a result, a question or a text; `models/memory.py` decides when.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from operator import is_

from parley.chat.history import OMITTED, CallOutcome, ProviderCall, Turn, UserTurn, whole
from parley.chat.transcript import Exchange, Text, Thinking
from parley.text import size_text

MIDDLE = "\n\n[the middle of this text was left out]\n\n"
"""The text between the beginning and the end of a text that is too long."""


def size(text: str) -> int:
    """A text's size in bytes."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def without_results(turn: Turn) -> Turn:
    """Replace long results and pictures with text, and leave out the calls that a provider ran;
    returns the same turn if it contains none of these.
    """
    turn = without_provider_calls(turn)
    if isinstance(turn, UserTurn) or not any(map(_is_longer, turn.calls)):
        return turn
    return replace(turn, calls=tuple(map(_without_result, turn.calls)))


def without_provider_calls(turn: Turn) -> Turn:
    """The turn without the calls that a provider ran, and their results."""
    return _without(turn, ProviderCall)


def _is_longer(outcome: CallOutcome) -> bool:
    return bool(outcome.parts) or size(outcome.content) > size(_result_omitted(outcome))


def _without_result(outcome: CallOutcome) -> CallOutcome:
    return (
        replace(outcome, content=_result_omitted(outcome), parts=())
        if _is_longer(outcome)
        else outcome
    )


def _result_omitted(outcome: CallOutcome) -> str:
    return f"[result omitted: {size_text(size(outcome.content))}]"


def bare(exchange: Exchange) -> tuple[Turn, ...]:
    """The turns of an exchange that is sent without its calls' results."""
    if "bare" not in exchange.derived:
        long = whole(exchange, is_answered=False)
        short = tuple(map(without_results, long))
        exchange.derived["bare"] = long if all(map(is_, short, long)) else short
    turns: tuple[Turn, ...] = exchange.derived["bare"]
    return turns


def short_question(exchange: Exchange, most: int) -> tuple[Turn, ...]:
    """Does the same as `question_only`, but caches the turns in the exchange; `most` must always be
    the same.
    """
    if "question" not in exchange.derived:
        exchange.derived["question"] = question_only(exchange, most)
    turns: tuple[Turn, ...] = exchange.derived["question"]
    return turns


def question_only(exchange: Exchange, most: int) -> tuple[Turn, ...]:
    """The turn for an exchange if only its question is sent, cut to `most` bytes."""
    question = exchange.question.text if exchange.question else ""
    return (UserTurn(f"{cut(question, most)}\n\n{OMITTED}" if question.strip() else OMITTED),)


def cut(text: str, most: int) -> str:
    """Cut out a text's middle if it exceeds `most` bytes, which must exceed `MIDDLE`'s size."""
    if size(text) <= most:
        return text
    content, half = text.encode("utf-8", "surrogatepass"), (most - len(MIDDLE)) // 2
    return f"{_decoded(content[:half])}{MIDDLE}{_decoded(content[-half:])}"


def _decoded(content: bytes) -> str:
    """Decode a text, and drop incomplete characters at the cut."""
    return content.decode("utf-8", "ignore")


def cut_results(turn: Turn, most: int) -> Turn:
    """Cut each of the turn's results to at most `most` bytes."""
    return _changed(turn, lambda outcome: _cut_content(outcome, most))


def cut_texts(turn: Turn, most: int) -> Turn:
    """Cut each text, argument and result in a model's turn to at most `most` bytes."""
    if isinstance(turn, UserTurn):
        return turn
    parts = tuple(
        Text(cut(part.text, most)) if isinstance(part, Text) else part for part in turn.parts
    )
    shorter = turn if parts == turn.parts else replace(turn, parts=parts)
    return _changed(shorter, lambda outcome: _cut_arguments(_cut_content(outcome, most), most))


def cut_question(turn: Turn, most: int) -> Turn:
    """Cut the text of a user's turn to at most `most` bytes."""
    if isinstance(turn, UserTurn) and size(turn.text) > most:
        return UserTurn(cut(turn.text, most))
    return turn


def _cut_content(outcome: CallOutcome, most: int) -> CallOutcome:
    if size(outcome.content) <= most:
        return outcome
    return replace(outcome, content=cut(outcome.content, most), parts=())


def _cut_arguments(outcome: CallOutcome, most: int) -> CallOutcome:
    return replace(outcome, call=replace(outcome.call, arguments=cut(outcome.call.arguments, most)))


def _changed(turn: Turn, change: Callable[[CallOutcome], CallOutcome]) -> Turn:
    """Apply `change` to the turn's calls; returns the same turn if no call changes."""
    if isinstance(turn, UserTurn):
        return turn
    calls = tuple(map(change, turn.calls))
    return turn if calls == turn.calls else replace(turn, calls=calls)


def without_pictures(turn: Turn) -> Turn:
    """Replace the turn's pictures with text."""
    if isinstance(turn, UserTurn):
        return UserTurn(turn.text) if turn.parts else turn
    return _changed(turn, lambda outcome: replace(outcome, parts=()))


def without_thinking(turn: Turn) -> Turn:
    """The turn without the model's thinking."""
    return _without(turn, Thinking)


def _without(turn: Turn, kind: type[Thinking | ProviderCall]) -> Turn:
    """The turn without its parts of a kind; the same turn if there are none."""
    if isinstance(turn, UserTurn) or not any(isinstance(part, kind) for part in turn.parts):
        return turn
    return replace(turn, parts=tuple(part for part in turn.parts if not isinstance(part, kind)))
