"""The meaning of a choice key: which proposals it decides, and whether their tools are remembered.

`REACH` is the whole rule for the proposals that a key decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from parley.chat.rounds import last_notice
from parley.chat.transcript import YES, Broken, Choice, Exchange, Proposal, Transcript
from parley.frozen import frozen
from parley.policy.approval import Approvals
from parley.policy.plan import waiting

UNREADABLE = "this tool call cannot be read: fix the line, or decline it with yn"
RUN_BY_OTHERS = "this call was run by the {}: there is nothing to decide"

Scope: TypeAlias = Literal["letter", "case"]
Reach: TypeAlias = Literal["one", "tool", "all"]

REACH: dict[Scope, dict[Choice, Reach]] = {
    "letter": {"ya": "all", "yA": "all", "yo": "one", "yO": "tool", "yn": "one", "yN": "all"},
    "case": {"ya": "one", "yA": "all", "yo": "one", "yO": "all", "yn": "one", "yN": "all"},
}
"""For each setting of the keys: only the call under the cursor, also the other calls of its tool,
or all calls in the answer."""


@frozen
class Chosen:
    """The proposals that a key decides, or a message that says why there are none."""

    proposals: tuple[Proposal | Broken, ...] = ()
    message: str = ""
    is_from_afar: bool = False
    """Whether there are several proposals and the cursor is not on a call, so that the key may be
    half of a Vim command such as `yap`.
    """


def exchange_at(transcript: Transcript, line: int) -> int | None:
    """The number of the exchange that contains a line, both counted from 0; 0 for a line above the
    first exchange.

    None if the transcript has no exchange.
    """
    if not transcript.exchanges:
        return None
    above = (at for at, exchange in enumerate(transcript.exchanges) if exchange.span.start <= line)
    return max(above, default=0)


def answered_at(transcript: Transcript, at: int) -> int:
    """The number of the exchange whose answer the user wants to regenerate: exchange `at` or, from
    the empty question at the end, the exchange above.
    """
    exchange = transcript.exchanges[at]
    is_empty = exchange.question is None or not exchange.question.parts
    is_last = at == len(transcript.exchanges) - 1
    return at - 1 if at and is_last and is_empty and not exchange.answers else at


def continued_at(transcript: Transcript, at: int) -> int:
    """The number of the exchange that the user wants to continue: exchange `at` or, from the empty
    question at the end, the exchange above if its answer ends in a notice.
    """
    above = answered_at(transcript, at)
    answers = transcript.exchanges[above].answers
    return above if answers and last_notice(answers[-1]) else at


def open_calls(exchange: Exchange) -> list[Proposal | Broken]:
    """The calls in an exchange that may be decided, or decided again: all calls in its last round
    without a result."""
    return waiting(exchange.answers[-1]) if exchange.answers else []


def others_call(exchange: Exchange, line: int) -> Proposal | None:
    """The call on a line of an exchange, or whose result is there, if others ran it."""
    calls = (call for answer in exchange.answers for call in answer.calls if call.ran_by)
    return next((call for call in calls if _is_at(call, line)), None)


def _is_at(call: Proposal, line: int) -> bool:
    spans = [call.span, *([call.result.span] if call.result else [])]
    return any(span.start <= line < span.end for span in spans)


def open_keys(transcript: Transcript) -> list[tuple[str, str]]:
    """The id and arguments of each call in a chat that may be decided."""
    return [key for exchange in transcript.exchanges for key in _open_keys(exchange)]


def _open_keys(exchange: Exchange) -> Sequence[tuple[str, str]]:
    if "open" not in exchange.derived:
        calls = (call for call in open_calls(exchange) if isinstance(call, Proposal))
        exchange.derived["open"] = [(call.call.id, call.call.arguments) for call in calls]
    keys: Sequence[tuple[str, str]] = exchange.derived["open"]
    return keys


def readable(choice: Chosen) -> list[Proposal]:
    """The calls of a choice whose lines can be read."""
    return [call for call in choice.proposals if isinstance(call, Proposal)]


def chosen(
    exchange: Exchange,
    line: int,
    key: Choice,
    scope: Scope,
    approvals: Approvals,
    reach: Reach | None = None,
) -> Chosen:
    """The calls that a key decides on a line of an exchange; `reach` overrides the key's own
    scope.

    On a call that others ran, no key approves any call.
    """
    wide = reach or REACH[scope][key]
    if (record := others_call(exchange, line)) and (key in YES or wide != "all"):
        return Chosen(message=RUN_BY_OTHERS.format(record.ran_by))
    calls = open_calls(exchange)
    if not calls:
        return Chosen(message="no tool call is waiting for a choice here")
    undecided = [c for c in calls if _is_undecided(c, approvals)]
    under = next((c for c in calls if c.span.start == line), None)
    match wide:
        case "all":
            if not undecided:
                return Chosen(message="every tool call here is already decided")
            lines = {call.span.start for call in (*calls, *exchange.answers[-1].proposals)}
            return Chosen(tuple(undecided), is_from_afar=len(undecided) > 1 and line not in lines)
        case "one" | "tool" if under is None:
            return Chosen(
                message=(
                    f"{key} applies to the tool call under the cursor: put the cursor on its ❓ line"
                )
            )
        case "one":
            assert under is not None
            return Chosen((under,))
        case "tool":
            assert under is not None
            others = (c for c in undecided if c is not under and _same_tool(c, under))
            return Chosen((under, *others))


def _is_undecided(call: Proposal | Broken, approvals: Approvals) -> bool:
    if isinstance(call, Broken):
        return call.choice not in ("yn", "yN")
    return approvals.standing(call) in ("undecided", "may have run")


def _same_tool(one: Proposal | Broken, other: Proposal | Broken) -> bool:
    return (
        isinstance(one, Proposal)
        and isinstance(other, Proposal)
        and one.call.name == other.call.name
    )
