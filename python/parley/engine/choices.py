"""Carries out the user's choices for calls."""

from __future__ import annotations

import json
from dataclasses import replace

from parley.chat import edits
from parley.chat.edits import Edit
from parley.chat.grammar import fit
from parley.chat.history import DECLINED
from parley.chat.transcript import REMEMBERING, YES, Choice, Proposal, Result
from parley.engine.calls import explained
from parley.engine.observation import Observation
from parley.engine.observe import observe
from parley.engine.ports import CallRefused, Ports, Resolve, Snapshot
from parley.frozen import frozen
from parley.policy import plan
from parley.policy.approval import Rule, call_key, written_key
from parley.policy.choice import UNREADABLE, Chosen, Reach, chosen, readable
from parley.policy.doubts import (
    EDITED,
    LEAST_SEEN_S,
    Doubt,
    Seen,
    doubts,
    message,
    sighting,
)
from parley.policy.facts import Approved, Disowned, Proposed, Revoked, Warned
from parley.policy.permissions import memory_of, remembering
from parley.tools.edited_calls import edited_arguments
from parley.tools.schema import decode_arguments

_STILL_ASKED = "; approval.ask still asks"
_SMALL: dict[Choice, Choice] = {"yA": "ya", "yO": "yo"}


@frozen
class ChoiceMade:
    """A key's effect: whether it decided any calls, and the message for the user."""

    decided: bool
    message: str = ""
    doubts: tuple[Doubt, ...] = ()
    """The reasons why the approval was not recorded. After the user has seen the reasons, a
    repeated approval counts.
    """
    is_from_afar: bool = False
    """Whether the key was rejected because the cursor was not on any of the calls' lines. If
    repeated, it counts."""


@frozen
class Press:
    """A choice that the user made with a key or a command."""

    key: Choice
    rule: Rule
    """Who decides: a key, a command, or a setting."""
    reason: str = ""
    """The reason for declining, for the model."""
    seen: Seen | None = None
    """The calls as the user saw them; an approval counts only for these. None if nothing is
    drawn."""
    is_repeated: bool = False
    """Whether the user just pressed the same key, and Parley asked for it again."""
    name: str = ""
    """The key or command to repeat, if it is not `key`."""
    reach: Reach | None = None
    """The calls that the choice applies to, if the key does not determine them."""
    edited: str | None = None
    """The file's text that the user approves instead of the text that the call would write; None
    to approve the call as it is."""


async def choose(ports: Ports, resolve: Resolve, line: int, press: Press) -> ChoiceMade:
    """Carry out a choice made on a line of the current exchange: in the ledger, then in the file.

    If a call was not shown in full or may have run before, the first approval only warns, and the
    next approval counts. A key that would decide several calls while the cursor is on none of their
    lines must also be repeated. Raises BusyError if another process runs a turn in this chat,
    because that turn may settle the same calls.
    """
    with ports.ledger.lease():
        return await _choose(ports, resolve, line, press)


async def _choose(ports: Ports, resolve: Resolve, line: int, press: Press) -> ChoiceMade:
    key, rule = press.key, press.rule
    observation = await observe(ports, resolve)
    if press.edited is not None:
        reworded = await _reword(ports, observation, line, press)
        if isinstance(reworded, ChoiceMade):
            return reworded
        observation = await observe(ports, resolve)
        press = replace(press, seen=_as_seen(observation, reworded, press.edited))
    approvals = observation.situation.approvals
    scope = observation.settings.scope
    marks, text = dict[tuple[str, str, str], Choice](), ""
    choice = chosen(observation.snapshot.exchange, line, key, scope, approvals, press.reach)
    proposals = readable(choice)
    if key in YES:
        if (hindrance := _hindrance(ports, observation, choice, press)) is not None:
            return hindrance
        marks, text = _approve(ports, observation, proposals, press)
    else:
        why = f"{key} by {rule} {press.reason}".strip()
        ports.ledger.record(
            Revoked(tuple(p.call.id for p in proposals)),
            Disowned(tuple((p.call.id, p.call.arguments) for p in proposals)),
            explained(observation, "declined", [(p, why) for p in proposals]),
        )
    declined = Result("refused", fit(f"{DECLINED} {press.reason}".strip()))

    def change(shot: Snapshot) -> list[Edit]:
        open_calls = plan.waiting(shot.answer)
        same = [c for c in open_calls if c in choice.proposals]
        calls = [c for c in same if isinstance(c, Proposal)]
        if key in YES:
            return [edits.mark(shot.lines, c, marks.get(written_key(c), key)) for c in calls]
        marked = [edits.mark(shot.lines, call, key) for call in same]
        return marked + [edits.put_result(shot.lines, c, declined) for c in calls]

    if choice.proposals:
        await ports.document.change(change)
    for proposal in () if key in YES else proposals:
        ports.observer.on_event(CallRefused(proposal, declined))
    return ChoiceMade(bool(choice.proposals), choice.message or text)


def _hindrance(
    ports: Ports, observation: Observation, choice: Chosen, press: Press
) -> ChoiceMade | None:
    """Why an approval of these calls does not count yet; None if it does."""
    proposals, name = readable(choice), press.name or press.key
    if choice.proposals and not proposals:
        return ChoiceMade(False, UNREADABLE)
    if lost := next((p for p in proposals if plan.lacks_server(observation.situation, p)), None):
        missing = ", ".join(observation.catalogue.missing)
        return ChoiceMade(
            False, f"{lost.call.name} cannot run now: the tools of {missing} are missing"
        )
    if left := doubts(proposals, observation.situation.approvals, press.seen):
        return _held_back(ports, observation, left, name)
    if press.rule == "key" and choice.is_from_afar and not press.is_repeated:
        text = (
            f"{name} applies to {len(proposals)} calls: press {name} again, "
            "or move the cursor to one of them"
        )
        return ChoiceMade(False, text, is_from_afar=True)
    return None


def _approve(
    ports: Ports, observation: Observation, proposals: list[Proposal], press: Press
) -> tuple[dict[tuple[str, str, str], Choice], str]:
    """Record the approval; returns the mark of each call, and what a capital letter remembered.

    A capital letter that remembers nothing counts as the small letter.
    """
    approvals, key = observation.situation.approvals, press.key
    known = [(p, tool) for p in proposals if (tool := observation.catalogue.get(p.call.name))]
    memories = [memory_of(tool, approvals.preview(p)) for p, tool in known]
    given = [_SMALL.get(key, key) if memory == "nothing" else key for memory in memories]
    kept = [(approvals.key(*each), mark) for each, mark in zip(known, given, strict=True)]
    ports.ledger.record(Approved(tuple(kept), press.rule))
    marks = {written_key(p): mark for (p, _), mark in zip(known, given, strict=True)}
    if key not in REMEMBERING:
        return marks, ""
    named = [(tool.name, memory) for (_, tool), memory in zip(known, memories, strict=True)]
    rules = observation.settings.rules
    always = any(rules.ask_pattern(tool, p.call.arguments) for p, tool in known)
    return marks, remembering(named) + (_STILL_ASKED if always else "")


async def _reword(
    ports: Ports, observation: Observation, line: int, press: Press
) -> ChoiceMade | str:
    """Write the arguments of the user's own version of an edit into the file; returns them.

    The ledger then knows the proposal as Parley's own, and that the user edited it.
    """
    approvals = observation.situation.approvals
    waiting = plan.waiting(observation.snapshot.answer)
    call = next((c for c in waiting if c.span.start == line and isinstance(c, Proposal)), None)
    tool = observation.catalogue.get(call.call.name) if call else None
    preview = approvals.preview(call) if call else None
    if call is None or tool is None or preview is None or not preview.changes:
        return ChoiceMade(False, "this call is no longer waiting")
    if left := doubts([call], approvals, press.seen):
        return _held_back(ports, observation, left, press.name or press.key)
    before = preview.changes[0].before
    decoded = decode_arguments(call.call.arguments)
    edited = edited_arguments(tool.name, decoded, before, press.edited or "")
    if edited is None:
        return ChoiceMade(False, "the text is unchanged, so there is no change to approve")
    arguments = json.dumps(edited, ensure_ascii=False)
    new, was_own = (
        replace(call, call=replace(call.call, arguments=arguments)),
        approvals.is_own(call),
    )

    def change(shot: Snapshot) -> list[Edit]:
        calls = [c for c in plan.waiting(shot.answer) if isinstance(c, Proposal)]
        return [edits.reword(each, arguments) for each in calls if each.call == call.call]

    await ports.document.change(change)
    ports.ledger.record(
        Disowned(((call.call.id, call.call.arguments),)),
        *([Proposed((written_key(new),), (call_key(new, tool),))] if was_own else []),
        Warned(((call.call.id, arguments, EDITED),)),
    )
    return arguments


def _as_seen(observation: Observation, arguments: str, text: str) -> Seen:
    """The calls with these arguments that would write exactly the text that the user has just read
    and edited; none if the file has changed since.
    """
    approvals = observation.situation.approvals
    waiting = plan.waiting(observation.snapshot.answer)
    calls = [
        call
        for call in waiting
        if isinstance(call, Proposal)
        and call.call.arguments == arguments
        and (preview := approvals.preview(call))
        and [change.after for change in preview.changes] == [text]
    ]
    return Seen({sighting(call, approvals): LEAST_SEEN_S for call in calls})


def _held_back(ports: Ports, observation: Observation, left: list[Doubt], name: str) -> ChoiceMade:
    """Record the warnings instead of the approval."""
    text = message(left, name)
    ports.ledger.record(
        Warned(tuple(doubt.warning for doubt in left if doubt.warning)),
        explained(observation, "warned", [(doubt.proposal, text) for doubt in left]),
    )
    return ChoiceMade(False, text, tuple(left))
