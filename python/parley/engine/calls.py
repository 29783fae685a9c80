"""Calls of the answer in hand: found again in the document as it is now, marked, run, given their results."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from parley.chat import edits
from parley.chat.edits import Edit
from parley.chat.transcript import Choice, Proposal, Result
from parley.engine.looks import Look
from parley.engine.ports import CallBegan, CallEnded, Ports, Snapshot
from parley.turn import plan, status
from parley.turn.approval import Decision, call_key


def _find(snapshot: Snapshot, proposal: Proposal) -> Proposal | None:
    """The same call in the document as it is now, None where it is gone or answered."""
    open_calls = plan.waiting(snapshot.answer)
    same = (c for c in open_calls if isinstance(c, Proposal) and c.call == proposal.call)
    return next(same, None)


async def settle(ports: Ports, results: Sequence[tuple[Proposal, Result]]) -> None:
    def change(shot: Snapshot) -> list[Edit]:
        found = [(_find(shot, proposal), result) for proposal, result in results]
        return [edits.put_result(shot.lines, proposal, result) for proposal, result in found if proposal]

    await ports.document.change(change)


async def mark(ports: Ports, choices: Sequence[tuple[Proposal, Choice]]) -> None:
    def change(shot: Snapshot) -> list[Edit]:
        found = [(_find(shot, proposal), choice) for proposal, choice in choices]
        return [edits.mark(shot.lines, proposal, choice) for proposal, choice in found if proposal]

    await ports.document.change(change)


def enter_decisions(ports: Ports, seen: Look, decisions: Sequence[Decision]) -> None:
    for decision in decisions:
        tool = seen.catalogue.get(decision.proposal.call.name)
        if tool is not None:
            ports.ledger.enter([(call_key(decision.proposal, tool), "ya")], decision.rule, decision.why)


async def run_tools(ports: Ports, seen: Look, proposals: Sequence[Proposal], started: float) -> None:
    """Run approved calls, each result into the document when it comes."""

    async def run(proposal: Proposal) -> tuple[Proposal, Result | None]:
        tool = seen.catalogue.get(proposal.call.name)
        if tool is None or not ports.ledger.start(call_key(proposal, tool)):
            return proposal, None
        ports.world.happened(CallBegan(proposal, tool))
        return proposal, await ports.tools.call(tool, proposal.call.arguments)

    ports.world.status(status.using(proposal.call.name for proposal in proposals))
    limit = seen.conduct.timeout_s - (ports.world.now() - started)
    batches = [list(proposals)] if seen.conduct.parallel else [[p] for p in proposals]
    for batch in batches:
        async for proposal, result in ports.world.together([partial(run, p) for p in batch], limit):
            if result is not None:
                await settle(ports, [(proposal, result)])
                ports.world.happened(CallEnded(proposal, result))
