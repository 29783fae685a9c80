"""The loop: read the file, take the next step, write its outcome, repeat.

The loop keeps no conversation state; between two steps, the document contains all of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from parley.chat import edits
from parley.chat.references import expansion, references
from parley.chat.rounds import Notice, replies
from parley.chat.transcript import Proposal, Question, Result
from parley.engine.calls import enter_decisions, explained, mark, refuse, run_tools, too_long
from parley.engine.notices import end_unfinished, open_question
from parley.engine.observation import Observation
from parley.engine.observe import observe
from parley.engine.own_tools import refused_calls
from parley.engine.ports import ChatSettings, End, EndKind, Ports, Resolve, Snapshot
from parley.engine.regeneration import continuing, remark_on_old_answer, remove_unfinished
from parley.engine.reply import ask_model
from parley.models.events import Aside
from parley.models.fingerprint import reply_units
from parley.policy import plan
from parley.policy.approval import unclaimed
from parley.policy.doubts import why_asked
from parley.policy.facts import Replied, Revoked, Unwarned, Warned
from parley.policy.missing_references import lacks, message
from parley.policy.plan import next_step
from parley.policy.turn_limits import why_without_tools


async def run_turn(ports: Ports, resolve: Resolve) -> End:
    """Continue the current exchange until it is the user's turn again.

    Raises GoneError if the document or the answer was removed, and writes nothing more. Raises
    BusyError if another process runs a turn in this chat.
    """
    try:
        with ports.ledger.lease():
            return remark_on_old_answer(ports, await _run(ports, resolve))
    finally:
        ports.observer.status("")


async def _run(ports: Ports, resolve: Resolve) -> End:
    started, moved, is_reply = ports.clock.now(), False, False
    while True:
        observation = await observe(ports, resolve)
        if is_reply:
            _enter_reply(ports, observation.snapshot)
        step = next_step(observation.situation)
        if isinstance(step, plan.Resume):
            ports, moved = await continuing(ports, observation.settings.agent), True
            continue
        if not isinstance(step, plan.AskModel):
            await remove_unfinished(ports)
        if not moved and isinstance(step, plan.Complete):
            await open_question(ports.document)
            return End("answered", "already answered; :ParleyRespond! asks again")
        if moved and isinstance(step, plan.AskModel | plan.RunTools):
            step = _in_time(ports, observation.settings, started) or step
        if end := await _take(ports, observation, step, started):
            await ports.document.settle()  # a refused call's result may have only begun
            return end
        moved, is_reply = True, isinstance(step, plan.AskModel)


def _enter_reply(ports: Ports, snapshot: Snapshot) -> None:
    """Record the model's reply as it is now in the file."""
    written = replies(snapshot.answer) if snapshot.exchange.answers else ()
    if written:
        ports.ledger.record(Replied(tuple(reply_units(written[-1]))))


async def _take(  # noqa: C901  one case for each step
    ports: Ports, observation: Observation, step: plan.Step, started: float
) -> End | None:
    """Carry out one step; returns an End if the user has to act next."""
    match step:
        case plan.AwaitQuestion():
            return End("nothing", "no question here: write one after 💬: first")
        case plan.AwaitChoices(calls):
            readable = [call for call in calls if isinstance(call, Proposal)]
            if refused := await refused_calls(ports, observation, readable):
                await _refuse(ports, observation, refused)
                return None
            approvals, rules = observation.situation.approvals, observation.settings.rules
            reasons = [(call, why_asked(call, approvals, rules)) for call in readable]
            ports.ledger.record(explained(observation, "asked", reasons))
            return End("waiting")
        case plan.Complete():
            await open_question(ports.document)
            return End("complete")
        case plan.Stop(reason):
            return await _end(ports, Notice("Unable to complete task", reason))
        case plan.AskModel(tools_on):
            if left := unclaimed(
                observation.snapshot.transcript, observation.view, observation.snapshot.at
            ):
                ports.ledger.record(Revoked(tuple(left)))  # the request reports no result for these
            return await ask_model(ports, observation.request(tools_on))
        case plan.StartAnswer():
            return await _start_answer(ports, observation)
        case plan.Settle(results):
            await _refuse(ports, observation, results)
        case plan.Decide(decisions):
            enter_decisions(ports, observation, decisions)
            await mark(ports, [(d.proposal, "ya") for d in decisions])
        case plan.RunTools(proposals):
            if notice := await run_tools(ports, observation, proposals, started):
                return await _end(ports, notice)
    return None


async def _refuse(
    ports: Ports, observation: Observation, results: Sequence[tuple[Proposal, Result]]
) -> None:
    reasons = [(call, result.body) for call, result in results]
    ports.ledger.record(explained(observation, "refused", reasons))
    await refuse(ports, results)


async def _start_answer(ports: Ports, observation: Observation) -> End | None:
    """Include the question's references; if a reference cannot be included, warn the user first."""
    question, agent = (
        observation.snapshot.exchange.question or Question(),
        observation.settings.agent,
    )
    contents = await ports.references.bring(references(question))
    lacking = lacks(question, contents)
    if not set(lacking) <= set(observation.view.warnings):
        ports.ledger.record(Warned(tuple(lacking)))
        return End("nothing", message(lacking))
    if lacking:
        ports.ledger.record(Unwarned(tuple(lacking)))
    limits, transcript = observation.settings.limits, observation.snapshot.transcript
    if observation.catalogue.tools and (why := why_without_tools(limits, transcript)):
        ports.observer.on_event(Aside(why))
    texts = [content.picture or expansion(content) for content in contents]
    # The model is asked while this is being written, as with results: neither this text nor a
    # result can run anything.
    await ports.document.begin(lambda s: [edits.start_answer(s.lines, s.exchange, agent, texts)])
    return None


def _in_time(ports: Ports, settings: ChatSettings, started: float) -> plan.Stop | None:
    late = ports.clock.now() - started > settings.timeout_s
    return plan.Stop(too_long(settings)) if late else None


async def _end(ports: Ports, notice: Notice) -> End:
    await end_unfinished(ports, notice.kind, notice.reason)
    kind: EndKind = "interrupted" if notice.kind == "Interrupted" else "stopped"
    return End(kind, f"{notice.kind}: {notice.reason}")
