"""The next step: a pure function of the transcript, the settings, the tools and the ledger's view.

The function is level-triggered: the current file decides, not the past. The function never
remembers and never acts: the loop takes the step, writes its outcome into the file, and asks again.
"""

from __future__ import annotations

from dataclasses import field
from typing import TypeAlias

from parley.chat.history import DECLINED
from parley.chat.rounds import Round, last_notice, rounds, rounds_since_resumption
from parley.chat.transcript import Answer, Broken, Exchange, Proposal, Result, Transcript
from parley.frozen import frozen
from parley.policy import turn_limits as lim
from parley.policy.approval import (
    Approvals,
    Decision,
    LedgerView,
    decide,
    is_declined,
    written_key,
)
from parley.policy.previews import Previews
from parley.policy.rules import Rules
from parley.policy.safety import blocked_by
from parley.policy.turn_limits import Limits
from parley.tools.catalogue import Catalogue
from parley.tools.schema import check_call
from parley.tools.search import available

_NOW_KNOWN = " You were sent only the name of this tool; its parameters are there now."


@frozen
class AwaitQuestion:
    """There is no question."""


@frozen
class StartAnswer:
    """The question has no answer yet: write the line that starts one."""


@frozen
class AskModel:
    """The model must reply, and only in prose unless `tools_on`."""

    tools_on: bool


@frozen
class Settle:
    """These calls receive results without being run."""

    results: tuple[tuple[Proposal, Result], ...]


@frozen
class Decide:
    """Memory or a rule approves these calls."""

    decisions: tuple[Decision, ...]


@frozen
class AwaitChoices:
    """The user must decide on these calls first."""

    proposals: tuple[Proposal | Broken, ...]


@frozen
class RunTools:
    """All calls are decided: run these calls, and collect the results of tasks."""

    proposals: tuple[Proposal, ...]


@frozen
class Resume:
    """The answer ended in a notice: remove its unfinished parts, then continue."""


@frozen
class Stop:
    """The loop ends with a notice."""

    reason: str


@frozen
class Complete:
    """The answer is complete."""


Step: TypeAlias = (
    AwaitQuestion
    | StartAnswer
    | AskModel
    | Settle
    | Decide
    | AwaitChoices
    | RunTools
    | Resume
    | Stop
    | Complete
)


@frozen
class Situation:
    """Everything that a step depends on; `at` is the number of the current exchange."""

    transcript: Transcript
    at: int
    catalogue: Catalogue
    view: LedgerView
    limits: Limits
    rules: Rules = field(default_factory=Rules)
    previews: Previews = field(default_factory=dict)
    approvals: Approvals = field(init=False, repr=False, compare=False)
    """The standing of the chat's proposals."""

    def __post_init__(self) -> None:
        approvals = Approvals(self.transcript, self.catalogue, self.view, self.previews)
        object.__setattr__(self, "approvals", approvals)

    @property
    def exchange(self) -> Exchange:
        """The current exchange."""
        return self.transcript.exchanges[self.at]


def next_step(situation: Situation) -> Step:
    """The next step for the current exchange. Total, pure."""
    exchange = situation.exchange
    if not exchange.answers:
        question = exchange.question is not None and exchange.question.text.strip()
        return StartAnswer() if question else AwaitQuestion()
    answer = exchange.answers[-1]
    if last_notice(answer):
        return Resume()
    reply = next(iter(reversed(rounds(answer))), None)
    if reply is None:
        return _ask(situation)
    if unanswered(reply):
        return _with_open_calls(situation, reply)
    if reply.proposals:
        reason = lim.stop_reason(situation.limits, answer) or _nothing_left(situation, answer)
        return Stop(reason) if reason else _ask(situation)
    return Complete() if reply.is_over or reply.broken else _ask(situation)


def unanswered(reply: Round) -> list[Proposal | Broken]:
    """The calls of a reply that wait for a choice or a result, in file order."""
    return [
        segment
        for segment in reply.segments
        if (isinstance(segment, Proposal) and segment.result is None and segment.ran_by is None)
        or (
            isinstance(segment, Broken)
            and segment.kind == "proposal"
            and segment.choice not in ("yn", "yN")
        )
    ]


def waiting(answer: Answer) -> list[Proposal | Broken]:
    """The calls in an answer's last round, on which the user may still decide."""
    replies = rounds(answer)
    return unanswered(replies[-1]) if replies else []


def _ask(situation: Situation) -> AskModel:
    return AskModel(lim.tools_allowed(situation.limits, situation.transcript, situation.exchange))


def _nothing_left(situation: Situation, answer: Answer) -> str | None:
    """Why the loop must not ask the model again after calls for which it had no tools; None if it
    had tools."""
    replies = [r for r in rounds_since_resumption(answer) if r.proposals]
    if not replies:
        return None
    if lim.unknown_names(replies[-1]) and not situation.catalogue.tools:
        return "the model asked for a tool, but there are none"
    if not lim.calls_in(replies[-1]) and not _ask(situation).tools_on:
        return "the model kept asking for tools after reaching the limit of tool calls"
    return None


def _with_open_calls(situation: Situation, reply: Round) -> Step:
    calls, approvals = unanswered(reply), situation.approvals
    refused = _refusals(situation, reply)
    if refused:
        return Settle(refused)
    decided = ("approved", "pending")
    asking = [c for c in calls if isinstance(c, Broken) or approvals.standing(c) not in decided]
    decisions = [
        d
        for c in asking
        if isinstance(c, Proposal) and (d := decide(c, approvals, situation.rules))
    ]
    if decisions:
        return Decide(tuple(decisions))
    if asking:
        return AwaitChoices(tuple(asking))
    return RunTools(tuple(c for c in calls if isinstance(c, Proposal)))


def _refusals(situation: Situation, reply: Round) -> tuple[tuple[Proposal, Result], ...]:
    """The calls that receive a result without being run, in document order.

    The limits count the calls already made and the earlier calls in this reply that may run.
    """
    exchange_calls = lim.calls_made(situation.exchange.answers)
    session_calls = lim.session_calls(situation.transcript)
    refused, standing = list[tuple[Proposal, Result]](), 0
    proposals = reply.proposals
    for number, proposal in enumerate(proposals):
        if proposal.result is not None:
            continue
        if proposal.task and situation.approvals.task(proposal):
            standing += 1  # the call has been sent, so it is too late to prevent it
            continue
        why = (
            (DECLINED if is_declined(proposal) else None)
            or refusal(situation, proposal, number, len(proposals))
            or lim.over_limit(situation.limits, exchange_calls + standing, session_calls + standing)
        )
        if why:
            refused.append((proposal, Result("refused", why)))
        else:
            standing += 1
    return tuple(refused)


def refusal(situation: Situation, proposal: Proposal, number: int, count: int) -> str | None:
    """Why a call cannot run at all; None if it can. `number` is the call's place in the reply."""
    call, most = proposal.call, situation.limits.max_tools_per_request
    tool = situation.catalogue.get(call.name)
    if tool is None:
        return (
            None if lacks_server(situation, proposal) else _unknown(situation.catalogue, call.name)
        )
    if pattern := blocked_by(tool.name, situation.limits.blocked):
        return f"Tool {call.name} is blocked by the pattern {pattern!r}"
    if denied := situation.rules.denied(tool, call.arguments):
        return f"Tool {call.name} is denied by the rule {denied}"
    if invalid := check_call(call.arguments, tool):
        hint = _NOW_KNOWN if situation.catalogue.is_name_only(tool) else ""
        return f"{lim.invalid_arguments(invalid)}{hint}"
    preview = situation.previews.get(written_key(proposal))
    if preview and preview.is_binding and preview.problem:
        return preview.problem
    if number >= most:
        return f"Too many tool calls ({count}) - max allowed: {most}"
    return None


def lacks_server(situation: Situation, proposal: Proposal) -> bool:
    """Whether servers are missing, and also the tool of a call that a model proposed here."""
    has_tool = situation.catalogue.get(proposal.call.name) is not None
    return (
        not has_tool
        and bool(situation.catalogue.missing)
        and (situation.approvals.is_as_proposed(proposal) is False)
    )


def _unknown(catalogue: Catalogue, name: str) -> str:
    near = catalogue.nearest(name)
    hint = f" Did you mean {near}?" if near else ""
    names = available(catalogue) or "none"
    return f"{lim.UNKNOWN_TOOL} {name[:128]!r}.{hint} Available tools: {names}"
