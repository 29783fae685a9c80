"""The history that is sent to a model, independent of wire formats: who said what, in order.

Knows which parts of a file are never sent: notes, orphans, broken blocks, choices, problems, the
preamble (the user's own heading above the first question), and everything after the exchange that
is being answered. Knows nothing about roles, JSON or models.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import field, replace
from typing import Any, TypeAlias

from parley.chat.grammar import SUMMARY
from parley.chat.rounds import Round, rounds, summary
from parley.chat.transcript import (
    YES,
    Answer,
    Attachment,
    Exchange,
    Note,
    Proposal,
    Question,
    Result,
    Segment,
    Status,
    Text,
    Thinking,
    ToolCall,
    Transcript,
)
from parley.frozen import frozen

NO_QUESTION = "[No question]"
OMITTED = "[Previous messages omitted]"
GO_ON = "[Please go on]"

NOT_APPROVED = "The user did not approve this call."
DECLINED = "The user declined this call."
NO_RESULT = "No result was recorded for this call."
NO_REASON = "This call failed, and nothing says why."
"""Replaces the empty text of a failed call. Anthropic returns 400 "content cannot be empty if
`is_error` is true" (github.com/bytedance/trae-agent/issues/230, read 2026-11-22); in other formats,
a bare "Error: " would be just as unhelpful."""


@frozen
class CallOutcome:
    """A call with its outcome; `id` is the call's id, made unique within the request.

    In `content`, text replaces the pictures; if there are any pictures, `parts` contains the same
    content with the pictures themselves. If a text is too long for the file, `content` is its
    beginning and `whole` is the attachment with the whole text.
    """

    call: ToolCall
    id: str
    status: Status
    content: str
    parts: tuple[str | Attachment, ...] = ()
    whole: Attachment | None = None


@frozen
class ProviderCall:
    """A call that the model's provider ran while it wrote the reply, for example a search.

    `raw` is the attachment with the parts of the result that only this provider understands; other
    providers are sent nothing of the call.
    """

    call: ToolCall
    status: Status | None
    """None if the result has not arrived yet, because the reply ended before it."""
    raw: Attachment | None = None


Part: TypeAlias = Text | Thinking | ProviderCall
"""A part of a model's reply before its calls."""


@frozen
class UserTurn:
    """The user's text; never blank.

    In `text`, text replaces the pictures; if there are any pictures, `parts` contains the same
    content with the pictures themselves.
    """

    text: str
    parts: tuple[str | Attachment, ...] = ()
    derived: dict[Hashable, Any] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )
    """Values derived from this turn, cached for as long as the turn exists."""


@frozen
class ModelTurn:
    """One of the model's replies, with the results of its calls; it has text, calls, or both.

    `open` marks the replies of an answer whose tool loop continues: only their signed thinking is
    sent back. A reply in which an agent ran calls is several turns: each ends with its calls.
    """

    parts: tuple[Part, ...]
    calls: tuple[CallOutcome, ...] = ()
    open: bool = False
    derived: dict[Hashable, Any] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )
    """Values derived from this turn, cached for as long as the turn exists."""

    @property
    def text(self) -> str:
        """All texts, joined; "" if the model only made calls."""
        return "\n\n".join(part.text for part in self.parts if isinstance(part, Text))


Turn: TypeAlias = UserTurn | ModelTurn


def history(transcript: Transcript, at: int, *, max_full_exchanges: int | None) -> tuple[Turn, ...]:
    """The turns to send for an answer to exchange number `at`; later exchanges are not sent.

    For exchanges before the last `max_full_exchanges`, only the summary line is sent, if there is
    one. The exchange that is being answered counts as one of the last exchanges, and is always sent
    whole. If `max_full_exchanges` is None, all exchanges are sent in full. Replies with neither
    text nor a readable call are not sent, nor are empty questions without a sent answer.
    """
    exchanges = transcript.exchanges[: at + 1]
    return joined(portions(exchanges, max_full_exchanges), exchanges)


def portions(
    exchanges: Sequence[Exchange], max_full_exchanges: int | None
) -> list[tuple[Turn, ...]]:
    """The turns of each exchange, with the call ids from the file; the last exchange is being
    answered.
    """
    last = len(exchanges) - 1
    turns = list[tuple[Turn, ...]]()
    for number, exchange in enumerate(exchanges):
        is_old = max_full_exchanges is not None and number <= last - max(max_full_exchanges, 1)
        short = shortened(exchange) if is_old else ()
        turns.append(short or whole(exchange, is_answered=number == last))
    return turns


def joined(portions: Iterable[Sequence[Turn]], exchanges: Sequence[Exchange]) -> tuple[Turn, ...]:
    """Join the turns of these exchanges into one history with unique call ids.

    If the last answer is empty, the history ends with a user turn.
    """
    ids = _Ids()
    turns = tuple(ids.applied(turn) for portion in portions for turn in portion)
    return _with_the_user_last(turns, exchanges)


def whole(exchange: Exchange, *, is_answered: bool) -> tuple[Turn, ...]:
    """The turns of an exchange that is sent in full, with the call ids from the file."""
    if is_answered:
        return tuple(_whole(exchange, is_answered=True))
    if "whole" not in exchange.derived:
        exchange.derived["whole"] = tuple(_whole(exchange, is_answered=False))
    turns: tuple[Turn, ...] = exchange.derived["whole"]
    return turns


def shortened(exchange: Exchange) -> tuple[Turn, ...]:
    """The turns of an exchange that is sent as its summary; empty if it has no summary."""
    if "short" not in exchange.derived:
        text = next(filter(None, map(summary, reversed(exchange.answers))), None)
        short = (UserTurn(OMITTED), ModelTurn((Text(f"{SUMMARY} {text}"),))) if text else ()
        exchange.derived["short"] = short
    turns: tuple[Turn, ...] = exchange.derived["short"]
    return turns


def _with_the_user_last(turns: tuple[Turn, ...], exchanges: Sequence[Exchange]) -> tuple[Turn, ...]:
    """Add a placeholder from the user if the history would end with the model's text.

    This happens if the last answer is empty and does not follow a question, that is, below another
    answer and in a file that starts with an empty answer. It also happens if a reply continues after
    a call that the provider ran.
    """
    answers = exchanges[-1].answers if exchanges else ()
    if not answers or _is_over(answers[-1]) or (turns and isinstance(turns[-1], UserTurn)):
        return turns
    return (*turns, UserTurn(GO_ON if turns else NO_QUESTION))


def _is_over(answer: Answer) -> bool:
    """Whether an answer has contents, and either ends with calls or is complete."""
    contents = _contents(answer)
    return bool(contents) and (bool(contents[-1][1]) or rounds(answer)[-1].is_over)


def _whole(exchange: Exchange, *, is_answered: bool) -> Iterator[Turn]:
    replies = list[ModelTurn]()
    for answer in exchange.answers:
        replies += _replies(answer, is_last=is_answered and answer is exchange.answers[-1])
    question = exchange.question or Question()
    if question.text.strip():
        yield UserTurn(question.text, _with_pictures(question))
    elif replies:
        yield UserTurn(NO_QUESTION)
    yield from replies


def _with_pictures(question: Question) -> tuple[str | Attachment, ...]:
    """The parts of a question that has pictures; empty for any other question.

    Text that consists only of unusual whitespace is ignored.
    """
    if not any(isinstance(part, Attachment) for part in question.parts):
        return ()
    parts = (part for part in question.parts if not isinstance(part, Note))
    return tuple(
        part if isinstance(part, Attachment) else part.text for part in parts if part.text.strip()
    )


def _replies(answer: Answer, *, is_last: bool) -> list[ModelTurn]:
    contents = _contents(answer)
    goes_on = is_last and bool(contents) and bool(contents[-1][1])
    return [ModelTurn(parts, tuple(map(_answered, calls)), goes_on) for parts, calls in contents]


def _contents(answer: Answer) -> list[tuple[tuple[Part, ...], tuple[Proposal, ...]]]:
    """The parts and calls of each turn to send."""
    contents = (content for reply in rounds(answer) for content in _pieces(reply))
    return [
        (tuple(parts), tuple(calls))
        for parts, calls in contents
        if calls or any(isinstance(p, Text) for p in parts)
    ]


def _pieces(reply: Round) -> Iterator[tuple[list[Part], list[Proposal]]]:
    """The model's parts and the calls that follow them; text that consists only of unusual
    whitespace is ignored."""
    parts, calls = list[Part](), list[Proposal]()
    for segment in reply.segments:
        part = _part(segment)
        if part and calls:
            yield parts, calls
            parts, calls = [], []
        if part:
            parts.append(part)
        elif isinstance(segment, Proposal):
            calls.append(segment)
    yield parts, calls


def _part(segment: Segment) -> Part | None:
    match segment:
        case Thinking():
            return segment
        case Text(text=text) if text.strip():
            return segment
        case Proposal(call=call, result=result, ran_by="provider"):
            attached = result.attachments if result else ()
            raw = next((attachment for attachment in attached if attachment.is_text), None)
            return ProviderCall(call, result.status if result else None, raw)
        case _:
            return None


def _answered(proposal: Proposal) -> CallOutcome:
    call = proposal.call
    if result := proposal.result:
        return _outcome(call, result)
    status, content = _stand_in(proposal)
    return CallOutcome(call, call.id, status, content)


def _outcome(call: ToolCall, result: Result) -> CallOutcome:
    is_mute = result.status != "ok" and not result.body.strip()
    body, pictures = (
        NO_REASON if is_mute else result.body,
        [a for a in result.attachments if not a.is_text],
    )
    whole = next((attachment for attachment in result.attachments if attachment.is_text), None)
    content = (
        "\n".join(filter(None, [body, *(picture.text for picture in pictures)]))
        if pictures
        else body
    )
    parts: tuple[str | Attachment, ...] = (
        (*([body] if body.strip() else []), *pictures) if pictures else ()
    )
    return CallOutcome(call, call.id, result.status, content, parts, whole)


def _stand_in(proposal: Proposal) -> tuple[Status, str]:
    """The status and text for a call without a result, which depend only on its mark."""
    if proposal.mark is None:
        return "refused", NOT_APPROVED
    may_have_run = proposal.ran_by or proposal.choice in YES
    return ("error", NO_RESULT) if may_have_run else ("refused", DECLINED)


class _Ids:
    """Makes ids unique, in file order, so that later content never changes an earlier id."""

    def __init__(self) -> None:
        self._used_ids = set[str]()
        self._uses = dict[str, int]()

    def applied(self, turn: Turn) -> Turn:
        """The turn with ids that no earlier turn has; the same object if they are unique."""
        if isinstance(turn, UserTurn) or not turn.calls:
            return turn
        ids = [self.unique(outcome.id) for outcome in turn.calls]
        if all(outcome.id == call_id for outcome, call_id in zip(turn.calls, ids, strict=True)):
            return turn
        calls = (replace(o, id=call_id) for o, call_id in zip(turn.calls, ids, strict=True))
        return replace(turn, calls=tuple(calls))

    def unique(self, call_id: str) -> str:
        """The id itself, or with a number appended if it was used before."""
        candidate, number = call_id, self._uses.get(call_id, 1)
        while candidate in self._used_ids:
            number += 1
            candidate = f"{call_id}_{number}"
        self._uses[call_id] = number
        self._used_ids.add(candidate)
        return candidate
