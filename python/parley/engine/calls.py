"""Handles the current answer's calls: finds them in the changed document, marks and runs them, and
adds results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from parley.chat import edits
from parley.chat.edits import Edit
from parley.chat.rounds import Notice
from parley.chat.transcript import TASK_ID, Choice, Proposal, Result
from parley.engine.observation import Observation
from parley.engine.own_tools import run_own
from parley.engine.ports import (
    CallBegan,
    CallEnded,
    CallRefused,
    ChatSettings,
    Ports,
    Snapshot,
    TaskBegan,
)
from parley.errors import PendingError
from parley.iterators import closing
from parley.policy import plan, status_texts
from parley.policy.approval import (
    Approvals,
    CallKey,
    Decision,
    all_proposals,
    call_key,
    written_key,
)
from parley.policy.doubts import EDITED
from parley.policy.facts import Approved, Disowned, Explained, What
from parley.policy.permissions import is_command, is_of_workspace
from parley.tools.agent_calls import is_of_agent
from parley.tools.catalogue import Tool
from parley.tools.tasks import COLLECT, TaskHandle

EDITED_BY_USER = "The user edited this change before approving it. The call has the user's text."
T = TypeVar("T")


def _current(
    snapshot: Snapshot, pairs: Sequence[tuple[Proposal, T]]
) -> Iterator[tuple[Proposal, T]]:
    """Find the same calls in the current document; skip calls that were deleted or answered."""
    open_calls = [call for call in plan.waiting(snapshot.answer) if isinstance(call, Proposal)]
    for proposal, what in pairs:
        same = [call for call in open_calls if call.call == proposal.call]
        if same:  # if the user duplicated the line, prefer the original
            current = next((call for call in same if call == proposal), same[0])
            open_calls.remove(current)
            yield current, what


async def settle(ports: Ports, results: Sequence[tuple[Proposal, Result]]) -> None:
    """Start writing results for the calls that still exist and have no result."""

    def change(shot: Snapshot) -> list[Edit]:
        return [
            edits.put_result(shot.lines, call, result) for call, result in _current(shot, results)
        ]

    await ports.document.begin(change)


async def refuse(ports: Ports, results: Sequence[tuple[Proposal, Result]]) -> None:
    """Refuse calls; each call is given a result with the reason."""
    ports.agents.dismiss({proposal.call.id: result.body for proposal, result in results})
    ports.ledger.record(Disowned(tuple((p.call.id, p.call.arguments) for p, _ in results)))
    await settle(ports, results)
    for proposal, result in results:
        ports.observer.on_event(CallRefused(proposal, result))


async def cut_off(ports: Ports, why: str) -> None:
    """Write a result that reports the cancellation for each call that was sent and then cancelled.

    The calls may have run in part. The results tell the model this, and make the next request
    valid.
    """
    shot, result = await ports.document.read(), Result("error", f"The call was cancelled: {why}")
    answered = Counter(
        (p.call.id, p.call.arguments) for p in all_proposals(shot.transcript) if p.has_run
    )
    used = (e.key for e in ports.ledger.view().entries if e.state == "used")
    unanswered = Counter((key.id, key.arguments) for key in used) - answered
    calls = [p for p in plan.waiting(shot.answer) if isinstance(p, Proposal)]
    cut = [p for p in calls if unanswered[p.call.id, p.call.arguments] > 0]
    await settle(ports, [(proposal, result) for proposal in cut])
    for proposal in cut:
        ports.observer.on_event(CallEnded(proposal, result))


async def mark(ports: Ports, choices: Sequence[tuple[Proposal, Choice]]) -> None:
    """Mark the calls that still exist."""

    def change(shot: Snapshot) -> list[Edit]:
        return [edits.mark(shot.lines, call, choice) for call, choice in _current(shot, choices)]

    await ports.document.change(change)


def explained(
    observation: Observation, what: What, reasons: Sequence[tuple[Proposal, str]]
) -> Explained:
    """The fact that records why these calls wait or do not run."""
    named = [(p, observation.catalogue.get(p.call.name), why) for p, why in reasons]
    return Explained(
        what,
        tuple(
            (p.call.id, f"{tool.server}/{tool.name}" if tool else p.call.name, why)
            for p, tool, why in named
        ),
    )


def enter_decisions(ports: Ports, observation: Observation, decisions: Sequence[Decision]) -> None:
    named = [(d, observation.catalogue.get(d.proposal.call.name)) for d in decisions]
    key = observation.situation.approvals.key
    ports.ledger.record(
        *(
            Approved(((key(d.proposal, tool), "ya"),), d.rule, d.why)
            for d, tool in named
            if tool is not None
        )
    )


def too_long(settings: ChatSettings) -> str:
    """The reason for stopping a turn that exceeded its time limit."""
    return f"it took longer than {settings.timeout_s:g} seconds"


async def run_tools(
    ports: Ports, observation: Observation, proposals: Sequence[Proposal], started: float
) -> Notice | None:
    """Run approved calls and write each result when it arrives.

    Returns a notice if a result is still missing at the end.
    """
    settings, approvals = observation.settings, observation.situation.approvals
    pending = list[PendingError]()
    ports.observer.status(status_texts.using(proposal.call.name for proposal in proposals))
    batches = _batches(proposals, approvals) if settings.parallel else [[p] for p in proposals]
    if all(ports.agents.awaits(each.call.id) for each in proposals):
        batches = [
            list(proposals)
        ]  # the agent runs them in its own order, perhaps after all choices
    for batch in batches:
        limit, ended = settings.timeout_s - (ports.clock.now() - started), 0
        work = [partial(_run, ports, observation, approvals, proposal) for proposal in batch]
        async with closing(ports.clock.together(work, limit)) as outcomes:
            async for proposal, result in outcomes:
                ended += 1
                if isinstance(result, PendingError):
                    pending.append(result)
                elif result is not None:
                    await settle(ports, [(proposal, result)])
                    ports.observer.on_event(CallEnded(proposal, result))
        if ended < len(batch):
            await cut_off(ports, too_long(settings))
            return Notice("Unable to complete task", too_long(settings))
    return Notice("Interrupted", str(pending[0])) if pending else None


def _batches(proposals: Sequence[Proposal], approvals: Approvals) -> list[list[Proposal]]:
    """The calls in groups that may run at the same time: calls that change the same file run one
    after the other, because each diff was computed on top of the earlier ones. A command runs alone,
    because it may use or change any file."""
    batches, changed, was_alone = list[list[Proposal]](), set[str](), True
    for proposal in proposals:
        preview, tool = approvals.preview(proposal), approvals.catalogue.get(proposal.call.name)
        paths = {change.path for change in preview.changes} if preview else set()
        paths |= {change.moved_to for change in preview.changes} - {""} if preview else set()
        is_alone = tool is not None and is_command(tool)
        if is_alone or was_alone or paths & changed:
            batches.append([])
            changed = set()
        changed |= paths
        batches[-1].append(proposal)
        was_alone = is_alone
    return batches


async def _run(
    ports: Ports, observation: Observation, approvals: Approvals, proposal: Proposal
) -> tuple[Proposal, Result | PendingError | None]:
    """Run one call, or collect its result.

    Returns None instead of a result if the call may not run, and an error if the call has not
    finished.
    """
    tool, sent = observation.catalogue.get(proposal.call.name), approvals.task(proposal)
    if tool is None:
        return proposal, _unreachable(proposal, sent) if sent else None
    key = approvals.key(proposal, tool)
    if not sent and not (
        await _is_unchanged(ports, proposal, tool, approvals) and ports.ledger.start(key)
    ):
        return proposal, None
    ports.observer.on_event(CallBegan(proposal, tool))
    if result := await run_own(ports, observation, tool, proposal.call.arguments):
        return proposal, result
    request, task_id = (
        observation.settings.request,
        proposal.task.id if proposal.task and sent else "",
    )
    task = TaskHandle(task_id, partial(_begin_task, ports, proposal, tool))
    try:
        result = await ports.tools.call(tool, key, request, task)
        return proposal, _with_edit_note(result, proposal, observation)
    except PendingError as error:
        return proposal, error


def _with_edit_note(result: Result, proposal: Proposal, observation: Observation) -> Result:
    """Tell the model if the user has edited its change."""
    warning = (proposal.call.id, proposal.call.arguments, EDITED)
    if warning not in observation.view.warnings:
        return result
    return replace(result, body=f"{EDITED_BY_USER}\n{result.body}")


async def _is_unchanged(ports: Ports, proposal: Proposal, tool: Tool, approvals: Approvals) -> bool:
    """Whether the files still have the texts that the approved diff was computed from, and no other
    path is guarded. If not, the call waits for the user again."""
    if not (is_of_workspace(tool) or is_of_agent(tool)):
        return True
    now = (await ports.previews.of([(proposal, tool)])).get(written_key(proposal))
    bases = [
        each.base if each and each.is_binding else "" for each in (now, approvals.preview(proposal))
    ]
    return bases[0] == bases[1]


def _unreachable(proposal: Proposal, key: CallKey) -> PendingError:
    return PendingError(
        f"{proposal.call.name} is running as a task on MCP server '{key.server}', which is missing. "
        f"{COLLECT}"
    )


async def _begin_task(ports: Ports, proposal: Proposal, tool: Tool, task: str) -> None:
    """Write the id of a call's task to the ledger and the document, to collect the result later.

    An id that cannot be written on a line is not saved; the result must then arrive during this
    call.
    """
    if TASK_ID.fullmatch(task) is None:
        return

    def change(shot: Snapshot) -> list[Edit]:
        return [
            edits.put_task(shot.lines, call, task) for call, _ in _current(shot, [(proposal, task)])
        ]

    ports.ledger.begin_task(call_key(proposal, tool), task)
    await ports.document.begin(change)
    ports.observer.on_event(TaskBegan(proposal))
