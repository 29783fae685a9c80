"""The history that a model is sent, before any provider's wire format: who said what, in order.

Knows which parts of a file never leave it: notes, orphans, broken blocks, choices, problems, the preamble
(text above the first question is the user's own heading) and everything after the exchange that is answered.
Knows nothing of roles, JSON or models.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from parley.chat.grammar import SUMMARY
from parley.chat.rounds import Round, rounds, summary
from parley.chat.transcript import (
    YES,
    Answer,
    Choice,
    Exchange,
    Proposal,
    Status,
    Text,
    Thinking,
    ToolCall,
    Transcript,
)

NO_QUESTION = "[No question]"
OMITTED = "[Previous messages omitted]"
GO_ON = "[Please go on]"

NOT_APPROVED = "The user did not approve this call."
DECLINED = "The user declined this call."
NO_RESULT = "No result was recorded for this call."
NO_REASON = "This call failed, and nothing says why."
"""The text of a failure without a word. Anthropic answers 400 "content cannot be empty if `is_error` is true"
(github.com/bytedance/trae-agent/issues/230, read 2026-11-22), and to others "Error: " says as little."""


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """A call with what came of it; `id` is the call's own, made unique over the whole request."""

    call: ToolCall
    id: str
    status: Status
    content: str


@dataclass(frozen=True, slots=True)
class UserTurn:
    """The user's words; never blank."""

    text: str


@dataclass(frozen=True, slots=True)
class ModelTurn:
    """One reply of the model with the results of its calls; it has text, or calls, or both.

    `open` marks the replies of the answer whose tool loop goes on: only their signed thinking goes back.
    """

    parts: tuple[Text | Thinking, ...]
    calls: tuple[CallOutcome, ...] = ()
    open: bool = False

    @property
    def text(self) -> str:
        """The texts as one, "" where the model only called."""
        return "\n\n".join(part.text for part in self.parts if isinstance(part, Text))


Turn: TypeAlias = UserTurn | ModelTurn


def history(transcript: Transcript, at: int, *, max_full_exchanges: int | None) -> tuple[Turn, ...]:
    """The turns that ask for an answer to exchange number `at`; later exchanges are not sent.

    Of the exchanges before the last `max_full_exchanges` (the answered one is one of them, and always
    whole) only the summary line is sent, where there is one; None sends all whole. A reply that holds
    neither text nor a readable call is not sent, nor is an empty question that nothing sent answers.
    """
    ids = _Ids()
    turns, exchanges = list[Turn](), transcript.exchanges[: at + 1]
    for number, exchange in enumerate(exchanges):
        is_old = max_full_exchanges is not None and number <= at - max(max_full_exchanges, 1)
        short = _shortened(exchange) if is_old else ()
        turns += short or _whole(exchange, ids, is_answered=number == at)
    return _with_the_user_last(tuple(turns), exchanges)


def _with_the_user_last(turns: tuple[Turn, ...], exchanges: tuple[Exchange, ...]) -> tuple[Turn, ...]:
    """The turns, with a stand-in for the user where an answer is begun to which nothing sent leads.

    So it is below an answer that another one is to follow, and in a file that begins with an empty one.
    """
    answers = exchanges[-1].answers if exchanges else ()
    if not answers or _contents(answers[-1]) or (turns and isinstance(turns[-1], UserTurn)):
        return turns
    return (*turns, UserTurn(GO_ON if turns else NO_QUESTION))


def _shortened(exchange: Exchange) -> tuple[Turn, ...]:
    text = next(filter(None, map(summary, reversed(exchange.answers))), None)
    return (UserTurn(OMITTED), ModelTurn((Text(f"{SUMMARY} {text}"),))) if text else ()


def _whole(exchange: Exchange, ids: _Ids, *, is_answered: bool) -> Iterator[Turn]:
    replies = list[ModelTurn]()
    for answer in exchange.answers:
        is_last = is_answered and answer is exchange.answers[-1]
        replies += _replies(answer, ids, is_last=is_last)
    question = exchange.question.text if exchange.question else ""
    if question.strip():
        yield UserTurn(question)
    elif replies:
        yield UserTurn(NO_QUESTION)
    yield from replies


def _replies(answer: Answer, ids: _Ids, *, is_last: bool) -> list[ModelTurn]:
    contents = _contents(answer)
    goes_on = is_last and bool(contents) and bool(contents[-1][1])
    return [
        ModelTurn(parts, tuple(_answered(call, ids) for call in calls), goes_on) for parts, calls in contents
    ]


def _contents(answer: Answer) -> list[tuple[tuple[Text | Thinking, ...], tuple[Proposal, ...]]]:
    """The parts and calls of each round of an answer that is sent."""
    contents = [(_parts(reply), reply.proposals) for reply in rounds(answer)]
    return [(parts, calls) for parts, calls in contents if calls or any(isinstance(p, Text) for p in parts)]


def _parts(reply: Round) -> tuple[Text | Thinking, ...]:
    """The model's words and thoughts; text of unusual spaces alone counts as nothing."""
    return tuple(
        part
        for part in reply.segments
        if isinstance(part, Thinking) or (isinstance(part, Text) and part.text.strip())
    )


def _answered(proposal: Proposal, ids: _Ids) -> CallOutcome:
    call_id = ids.unique(proposal.call.id)
    if result := proposal.result:
        is_mute = result.status != "ok" and not result.body.strip()
        return CallOutcome(proposal.call, call_id, result.status, NO_REASON if is_mute else result.body)
    status, content = _stand_in(proposal.choice)
    return CallOutcome(proposal.call, call_id, status, content)


def _stand_in(choice: Choice | None) -> tuple[Status, str]:
    """Status and text for a call without a result: the mark's letter decides, nothing else."""
    if choice is None:
        return "refused", NOT_APPROVED
    return ("error", NO_RESULT) if choice in YES else ("refused", DECLINED)


class _Ids:
    """Makes ids unique by occurrence: what comes later in the file never changes an earlier one."""

    def __init__(self) -> None:
        self._used_ids = set[str]()
        self._uses = dict[str, int]()

    def unique(self, call_id: str) -> str:
        """The id itself, or with a number behind it if it was given before."""
        candidate, number = call_id, self._uses.get(call_id, 1)
        while candidate in self._used_ids:
            number += 1
            candidate = f"{call_id}_{number}"
        self._uses[call_id] = number
        self._used_ids.add(candidate)
        return candidate
