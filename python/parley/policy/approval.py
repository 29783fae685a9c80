"""Decides whether a call may run: compares the file with the decisions made on this machine.

A mark in the file only records a choice. A call runs only if the ledger has an entry with the same
chat, call id, server, tool, arguments and definition. A deny rule takes precedence over a
remembered approval, and a remembered approval over an auto rule; otherwise, Parley asks.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from typing import Literal, TypeAlias

from parley.chat.rounds import rounds
from parley.chat.transcript import REMEMBERING, YES, Choice, Proposal, Transcript
from parley.frozen import frozen
from parley.policy.permissions import (
    Permission,
    exact,
    is_command,
    memory_of,
    permission_for,
    reason,
)
from parley.policy.previews import CallPreview, Previews
from parley.policy.rules import Rules
from parley.tools.catalogue import Catalogue, Tool

Rule: TypeAlias = Literal["key", "command", "memory", "permission", "auto"]
State: TypeAlias = Literal["live", "used", "revoked", "closed"]
"""`closed`: the approval was used, and its call has been removed from the file in the meantime."""
_Call: TypeAlias = tuple[str, str]
Standing: TypeAlias = Literal["undecided", "declined", "approved", "pending", "may have run"]
"""`pending`: the call was approved and sent. The call runs on its server as a task, and the result
can be collected.
"""


@frozen
class CallKey:
    """Everything that an approval is bound to, besides the chat. If any part differs, the approval
    is void."""

    id: str
    server: str
    tool: str
    arguments: str
    digest: str
    definition: str = field(default="", compare=False, repr=False)
    """The definition's text, used to show later what has changed; "" if unknown."""
    base: str = field(default="", compare=False, repr=False)
    """The digest of the texts that the approved diff was computed from; "" if there is no diff."""


@frozen
class Entry:
    """One approval in the ledger, and its state."""

    key: CallKey
    choice: Choice
    rule: Rule
    state: State = "live"


@frozen
class LedgerView:
    """The ledger's records of one chat. `proposals` contains each proposal as often as Parley wrote
    it into the file.
    """

    entries: tuple[Entry, ...] = ()
    proposals: Collection[tuple[str, str, str]] = ()
    proposed: Collection[CallKey] = ()
    """The calls that Parley wrote into the file, each with its tool as offered to the model."""
    warnings: Collection[tuple[str, str, str]] = ()
    """Warnings (id, arguments, text) shown to the user instead of recording an approval."""
    elsewhere: Collection[tuple[str, str]] = ()
    """The queried calls (id, arguments) that were started for another file, once for each start."""
    tasks: Collection[tuple[CallKey, str]] = ()
    """This chat's calls that servers reported as running tasks, with the task ids."""
    permissions: tuple[Permission, ...] = ()
    """The user's permissions that apply to this chat in the current project."""


def call_key(proposal: Proposal, tool: Tool, preview: CallPreview | None = None) -> CallKey:
    """The key that a decision about this proposal, with this preview, is bound to."""
    call, base = proposal.call, preview.base if preview else ""
    return CallKey(
        call.id, tool.server, tool.name, call.arguments, tool.digest, tool.definition, base
    )


def written_key(proposal: Proposal) -> tuple[str, str, str]:
    """The key of a proposal that Parley wrote: id, name, arguments."""
    return proposal.call.id, proposal.call.name, proposal.call.arguments


def is_declined(proposal: Proposal) -> bool:
    """Whether the proposal's mark declines it, which needs no entry in the ledger."""
    return proposal.choice is not None and proposal.choice not in YES


def all_proposals(transcript: Transcript) -> list[Proposal]:
    """Every proposal in the file, in order."""
    return [
        p
        for exchange in transcript.exchanges
        for answer in exchange.answers
        for p in answer.proposals
    ]


@frozen
class Lapse:
    """An approval, or a model's proposal, that is void because its tool's definition changed."""

    digest: str
    """The digest of the definition that the approval or proposal was for."""
    since: Literal["approved", "remembered", "allowed", "proposed"]
    """Which is void: an approval of this call, an approval of the tool, a permission, or the
    proposal itself.
    """


@frozen
class _Counts:
    """Counts for a chat and its ledger, by call (id, arguments) or by proposal (with its name)."""

    entries: Mapping[_Call, Sequence[Entry]]
    settled: Counter[_Call]
    in_file: Counter[tuple[str, str, str]]
    own: Counter[tuple[str, str, str]]
    proposed: Mapping[_Call, Sequence[CallKey]]
    elsewhere: Counter[_Call]

    def entries_of(self, call_id: str, arguments: str) -> Sequence[Entry]:
        """The approvals of a call, in order."""
        return self.entries.get((call_id, arguments), ())

    @classmethod
    def of(cls, proposals: Sequence[Proposal], view: LedgerView) -> _Counts:
        """The counts for a chat with these proposals."""
        entries = defaultdict[_Call, list[Entry]](list)
        for entry in view.entries:
            entries[entry.key.id, entry.key.arguments].append(entry)
        proposed = defaultdict[_Call, list[CallKey]](list)
        for key in view.proposed:
            proposed[key.id, key.arguments].append(key)
        return cls(
            entries,
            Counter((p.call.id, p.call.arguments) for p in proposals if p.has_run),
            Counter(map(written_key, proposals)),
            Counter(view.proposals),
            proposed,
            Counter(view.elsewhere),
        )


@frozen
class Approvals:
    """The standing of each proposal of one chat."""

    transcript: Transcript
    catalogue: Catalogue
    view: LedgerView
    previews: Previews = field(default_factory=dict)
    """What the waiting calls would do to files, as far as that is known."""
    _known_counts: list[_Counts] = field(
        init=False, repr=False, compare=False, default_factory=list
    )
    """Empty until they are first needed."""
    _remembered: dict[tuple[str, str, str], Mapping[str, Mapping[str, Entry]]] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )
    """Computed once for each tool that is queried."""

    @property
    def _counts(self) -> _Counts:
        if not self._known_counts:
            self._known_counts.append(_Counts.of(all_proposals(self.transcript), self.view))
        return self._known_counts[0]

    def standing(self, proposal: Proposal) -> Standing:
        """The standing of a proposal without a result.

        Its mark counts only if the ledger confirms it.
        """
        if is_declined(proposal):
            return "declined"
        if self.task(proposal):
            return "pending"
        tool = self.catalogue.get(proposal.call.name)
        key = call_key(proposal, tool) if tool is not None and proposal.choice in YES else None
        if key is not None and self._is_live(key, self.preview(proposal)):
            return "approved"
        return "may have run" if self.starts(proposal) else "undecided"

    def task(self, proposal: Proposal) -> CallKey | None:
        """The call as it was approved and sent, if the file contains the id of the task that runs
        it.

        None unless the server gave that task to this machine, for this chat and this exact call.
        Otherwise, a file's author could fetch other people's results. Also None if the tool has
        changed. A missing tool does not matter, because it may return.
        """
        if proposal.task is None or proposal.choice not in YES:
            return None
        tool, call = self.catalogue.get(proposal.call.name), proposal.call
        if tool is not None:
            key = call_key(proposal, tool)
            return key if (key, proposal.task.id) in self.view.tasks else None
        keys = (key for key, task in self.view.tasks if task == proposal.task.id)
        return next(
            (key for key in keys if (key.id, key.arguments) == (call.id, call.arguments)), None
        )

    def _is_live(self, key: CallKey, preview: CallPreview | None) -> bool:
        return any(
            e.key == key and _is_for(e.key, preview)
            for e in self._counts.entries_of(key.id, key.arguments)
            if e.state == "live"
        )

    def key(self, proposal: Proposal, tool: Tool) -> CallKey:
        """The key that a decision about this proposal is bound to now."""
        return call_key(proposal, tool, self.preview(proposal))

    def preview(self, proposal: Proposal) -> CallPreview | None:
        """What a call would do to files; None if that is unknown."""
        return self.previews.get(written_key(proposal))

    def is_outdated(self, proposal: Proposal) -> bool:
        """Whether the call was approved for a text that its file no longer has."""
        tool, preview = self.catalogue.get(proposal.call.name), self.preview(proposal)
        if tool is None or proposal.choice not in YES:
            return False
        key = call_key(proposal, tool)
        return self._is_live(key, None) and not self._is_live(key, preview)

    def starts(self, proposal: Proposal) -> int:
        """How often this call was started, if one of its results may be missing from the file;
        otherwise 0.

        Only id and arguments identify the call, even if its tool has changed in the meantime. In a
        copied or moved file, the call may have been started for the other file.
        """
        call, counts = (proposal.call.id, proposal.call.arguments), self._counts
        states = Counter(e.state for e in counts.entries_of(*call))
        used, closed = states["used"], states["closed"]
        is_lost = used > counts.settled[call]
        # A closed call was removed from the file with its answer. The call has returned, through an
        # undo or from elsewhere.
        here = used + closed if is_lost or closed else 0
        return here if self.is_own(proposal) else here + counts.elsewhere[call]

    def was_approved(self, proposal: Proposal, tool: Tool) -> bool:
        """Whether this call was approved here, with this tool as it is defined now, and the
        approval was not withdrawn."""
        key = call_key(proposal, tool)
        entries = self._counts.entries_of(proposal.call.id, proposal.call.arguments)
        return any(entry.key == key and entry.state != "revoked" for entry in entries)

    def rule(self, proposal: Proposal) -> str:
        """The rule by which a call was approved here; "" if it was not approved."""
        entries = self._counts.entries_of(proposal.call.id, proposal.call.arguments)
        return next((entry.rule for entry in reversed(entries) if entry.state != "revoked"), "")

    def is_own(self, proposal: Proposal) -> bool:
        """Whether Parley wrote this proposal.

        The file must not contain the proposal more often than Parley wrote it.
        """
        key = written_key(proposal)
        return self._counts.in_file[key] <= self._counts.own[key]

    def was_taken_back(self, proposal: Proposal) -> bool:
        """Whether an approval with this mark was given here and is void because the mark was undone
        or edited."""
        entries = self._counts.entries_of(proposal.call.id, proposal.call.arguments)
        return any((e.choice, e.state) == (proposal.choice, "revoked") for e in entries)

    def is_as_proposed(self, proposal: Proposal) -> bool | None:
        """Whether the tool has not changed since a model proposed the call here; None if no model
        proposed it.
        """
        tool = self.catalogue.get(proposal.call.name)
        call = (proposal.call.id, proposal.call.arguments)
        proposed = self._counts.proposed.get(call, ())
        return (tool is not None and call_key(proposal, tool) in proposed) if proposed else None

    def remembered(self, proposal: Proposal, tool: Tool) -> Mapping[str, Entry]:
        """The user's approvals that remember this call by a capital mark, by definition digest.

        They remember the tool, or only calls with the same arguments, or nothing.
        """
        memory = memory_of(tool, self.preview(proposal))
        values = "" if memory == "tool" else exact(proposal.call.arguments)
        return {} if memory == "nothing" or values is None else self._capitals(tool, values)

    def _capitals(self, tool: Tool, values: str) -> Mapping[str, Entry]:
        """The user's approvals by a capital mark of this tool's calls, by definition digest; of a
        command, only the calls with these arguments.
        """
        known = tool.server, tool.name, tool.digest
        if known not in self._remembered:
            made = self._remembered[known] = defaultdict[str, dict[str, Entry]](dict)
            for proposal in all_proposals(self.transcript):
                call = proposal.call
                if proposal.choice in REMEMBERING and self.catalogue.get(call.name) == tool:
                    group = (exact(call.arguments) or "") if is_command(tool) else ""
                    for entry in self._counts.entries_of(call.id, call.arguments):
                        if _remembers(entry) and _same_call(entry.key, proposal, tool):
                            made[group][entry.key.digest] = entry
        return self._remembered[known].get(values, {})

    def permission(self, proposal: Proposal, tool: Tool) -> Permission | None:
        """The user's permission that allows this call; None if there is none."""
        memory = memory_of(tool, self.preview(proposal))
        return permission_for(self.view.permissions, tool, proposal.call.arguments, memory)

    def lapsed(self, proposal: Proposal) -> Lapse | None:
        """The approval, or else the proposal, that a new definition of the tool made void; None if
        neither is void."""
        tool = self.catalogue.get(proposal.call.name)
        if tool is None or self.standing(proposal) != "undecided":
            return None
        if proposal.choice in YES:
            live = (e.key for e in self.view.entries if e.state == "live")
            key = next((key for key in live if _same_call(key, proposal, tool)), None)
            return Lapse(key.digest, "approved") if key else None
        remembered = list(self.remembered(proposal, tool))
        if remembered:
            return Lapse(remembered[-1], "remembered") if tool.digest not in remembered else None
        arguments = proposal.call.arguments
        allowed = [p for p in self.view.permissions if p.names(tool, arguments)]
        if allowed:
            is_void = not any(permission.is_for(tool) for permission in allowed)
            return Lapse(allowed[-1].digest, "allowed") if is_void else None
        if self.is_as_proposed(proposal) is False:
            call = (proposal.call.id, proposal.call.arguments)
            return Lapse(self._counts.proposed[call][-1].digest, "proposed")
        return None


def unclaimed(transcript: Transcript, view: LedgerView, since: int = 0) -> frozenset[str]:
    """The ids of calls to revoke: still approved, but no longer marked and waiting in the file.

    The mark has been undone or edited, or the call has been deleted. Exchanges before number
    `since` do not count, because the model has continued without their waiting calls.
    """
    live = [e.key for e in view.entries if e.state == "live"]
    if not live:
        return frozenset()
    claimed = {
        (p.call.id, p.call.arguments)
        for exchange in transcript.exchanges[since:]
        for answer in exchange.answers[-1:]
        for reply in rounds(answer)[-1:]
        for p in reply.proposals
        if p.result is None and p.choice in YES
    }
    return frozenset(key.id for key in live if (key.id, key.arguments) not in claimed)


def departed(transcript: Transcript, view: LedgerView) -> frozenset[str]:
    """The ids of started calls whose results are not in the file.

    A model that numbers its calls from 1 in each reply may reuse such an id. After an undo, Parley
    would confuse the two calls.
    """
    settled = Counter((p.call.id, p.call.arguments) for p in all_proposals(transcript) if p.has_run)
    used = Counter((e.key.id, e.key.arguments) for e in view.entries if e.state == "used")
    lost = {call[0] for call, count in used.items() if count > settled[call]}
    return frozenset(lost | {e.key.id for e in view.entries if e.state == "closed"})


def _remembers(entry: Entry) -> bool:
    """Whether the user also approved the tool. A capital mark from elsewhere does not count."""
    return (
        entry.choice in REMEMBERING
        and entry.rule in ("key", "command")
        and entry.state != "revoked"
    )


def _is_for(key: CallKey, preview: CallPreview | None) -> bool:
    """Whether an approval is for the texts that a preview was computed from."""
    return preview is None or not preview.is_binding or key.base == preview.base


def _same_call(key: CallKey, proposal: Proposal, tool: Tool) -> bool:
    """Whether an entry is about this call, even if the tool's definition has changed in the
    meantime.
    """
    call = proposal.call
    return (key.id, key.server, key.tool, key.arguments) == (
        call.id,
        tool.server,
        tool.name,
        call.arguments,
    )


@frozen
class Decision:
    """An approval given without asking, and its rule in words."""

    proposal: Proposal
    rule: Literal["memory", "permission", "auto"]
    why: str


def decide(proposal: Proposal, approvals: Approvals, rules: Rules) -> Decision | None:
    """The decision that memory, a permission or a rule makes on an undecided proposal; None if
    Parley must ask.

    They apply only to a proposal that Parley itself wrote from a model's reply. Parley asks about a
    proposal that was pasted, merged or mailed, or may already have run. `plan.refusal` refuses
    blocked and denied calls before.
    """
    tool = approvals.catalogue.get(proposal.call.name)
    if tool is None or not approvals.is_own(proposal):
        return None
    if proposal.choice is not None or approvals.standing(proposal) != "undecided":
        return None
    preview = approvals.preview(proposal)
    if preview is not None and preview.guard:
        return None
    if rules.ask_pattern(tool, proposal.call.arguments):
        return None
    if tool.is_own and tool.unasked:
        return Decision(proposal, "auto", tool.unasked)
    if entry := approvals.remembered(proposal, tool).get(tool.digest):
        return Decision(
            proposal, "memory", f"you remembered it with {entry.choice} on {entry.key.id}"
        )
    if permission := approvals.permission(proposal, tool):
        return Decision(proposal, "permission", reason(permission))
    if why := rules.allowed(tool, proposal.call.arguments):
        return Decision(proposal, "auto", why)
    return None
