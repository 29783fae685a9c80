"""A turn's limits: compares counts from the file with the settings.

All counts come from the transcript, so a restart does not reset them. Only calls that ran count as
made; refused calls never count. Knows no clock: the loop limits how long a turn takes.
"""

from __future__ import annotations

from parley.chat.rounds import Round, rounds_since_resumption
from parley.chat.transcript import Answer, Exchange, Proposal, Result, Transcript
from parley.frozen import frozen
from parley.text import counted

UNKNOWN_TOOL = "Unknown tool"
INVALID_ARGUMENTS = "Invalid arguments"
PER_MESSAGE = "Tool call limit exceeded for this message"
PER_SESSION = "Tool call limit exceeded for this session"


def invalid_arguments(why: str) -> str:
    """The message about invalid arguments; does not repeat a prefix that `why` already has."""
    return f"{INVALID_ARGUMENTS}: {why.removeprefix(f'{INVALID_ARGUMENTS}: ')}"


@frozen
class Limits:
    """The limits in the settings `max_tool_calls`, `loop.*` and `safety.*`; None means no limit."""

    per_message: int | None
    per_session: int | None
    max_iterations: int
    max_consecutive_errors: int
    max_tools_per_request: int
    blocked: tuple[str, ...]


def calls_made(answers: tuple[Answer, ...]) -> int:
    """The number of calls that ran, whether they failed or not."""
    return sum(map(calls_in, answers))


def calls_in(part: Answer | Round) -> int:
    """The number of calls that ran in an answer, or in one of its replies."""
    return sum(1 for p in part.proposals if p.has_run)


def session_calls(transcript: Transcript) -> int:
    """The number of calls that ran in the whole file."""
    return sum(calls_made(exchange.answers) for exchange in transcript.exchanges)


def over_limit(limits: Limits, message_calls: int, session_calls: int) -> str | None:
    """The message of the limit that another call would exceed; approved calls are also counted."""
    if limits.per_message is not None and message_calls >= limits.per_message:
        return PER_MESSAGE
    if limits.per_session is not None and session_calls >= limits.per_session:
        return PER_SESSION
    return None


def calls_left(limits: Limits, answers: tuple[Answer, ...], transcript: Transcript) -> int | None:
    """How many calls the message with these answers may still make; None if there is no limit."""
    left = []
    if limits.per_message is not None:
        left.append(limits.per_message - calls_made(answers))
    if limits.per_session is not None:
        left.append(limits.per_session - session_calls(transcript))
    return max(0, min(left)) if left else None


def tools_allowed(limits: Limits, transcript: Transcript, exchange: Exchange) -> bool:
    """Whether the next request may offer tools: not if a limit allows no more calls."""
    return over_limit(limits, calls_made(exchange.answers), session_calls(transcript)) is None


def why_without_tools(limits: Limits, transcript: Transcript) -> str:
    """Why the next question is asked without tools: this chat has made all its calls; else "".

    The user wants a limit of 0, so it needs no message.
    """
    if not limits.per_session or (made := session_calls(transcript)) < limits.per_session:
        return ""
    return (
        f"asked without tools: this chat has made {counted(made, 'tool call')}, and "
        f"max_tool_calls.per_session is {limits.per_session}. Raise it, or start a new chat"
    )


def stop_reason(limits: Limits, answer: Answer) -> str | None:
    """Why the loop ends here instead of asking the model again; None if it continues."""
    replies = [r for r in rounds_since_resumption(answer) if r.proposals]
    if len(replies) >= limits.max_iterations:
        return f"reached the maximum of {limits.max_iterations} rounds of tool calls"
    failed = _failed_in_a_row(replies)
    if failed >= limits.max_consecutive_errors:
        return f"all tool calls failed in {failed} {'reply' if failed == 1 else 'replies in a row'}"
    unknown = [unknown_names(r) for r in replies[-2:]]
    if len(unknown) == 2 and (again := unknown[0] & unknown[1]):
        return f"the model asked twice for a tool that does not exist: {min(again)}"
    return None


def _failed_in_a_row(replies: list[Round]) -> int:
    """How many of the last replies in a row contain only failed calls: the model saw the results
    but did not improve.
    """
    count = 0
    for reply in reversed(replies):
        outcomes = {_outcome(proposal) for proposal in reply.proposals}
        if "worked" in outcomes:
            break
        count += "failed" in outcomes
    return count


def _outcome(proposal: Proposal) -> str:
    result = proposal.result
    if result is None or (result.status == "refused" and not caused_by_model(result)):
        return "neither"
    return "worked" if result.status == "ok" else "failed"


def caused_by_model(result: Result) -> bool:
    """Whether a call was refused because of the model: an unknown tool, or invalid arguments."""
    return result.body.startswith((UNKNOWN_TOOL, INVALID_ARGUMENTS))


def is_unknown(proposal: Proposal) -> bool:
    """Whether a call was refused because its tool did not exist."""
    result = proposal.result
    return (
        result is not None and result.status == "refused" and result.body.startswith(UNKNOWN_TOOL)
    )


def unknown_names(one: Round) -> set[str]:
    """The names of the unknown tools that a reply called."""
    return {proposal.call.name for proposal in one.proposals if is_unknown(proposal)}
