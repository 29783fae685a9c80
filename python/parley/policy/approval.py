"""Whether a call may run: what the file says, held against what was really decided on this machine.

A mark in the file records a choice; what makes a call run is an entry of the ledger that agrees with it in
chat, call id, server, tool, arguments and definition. Deny beats remembered beats auto beats ask.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from parley.chat.rounds import rounds
from parley.chat.transcript import REMEMBERING, YES, Choice, Proposal, Transcript
from parley.policy.rules import Rules
from parley.tools.catalogue import Catalogue, Tool
from parley.tools.long_results import READ_RESULT
from parley.tools.search import FIND_TOOLS

Rule: TypeAlias = Literal["key", "command", "memory", "auto"]
State: TypeAlias = Literal["live", "used", "revoked", "closed"]
"""A `closed` one was used, and its call has left the file since."""
Explained: TypeAlias = Literal["asked", "declined", "refused", "warned"]
_Call: TypeAlias = tuple[str, str]
Standing: TypeAlias = Literal["undecided", "declined", "approved", "pending", "may have run"]
"""A `pending` one was approved and sent: it runs at its server as a task, whose result can be collected."""


@dataclass(frozen=True, slots=True)
class CallKey:
    """All that a yes is bound to, beside the chat: a yes for anything else is no yes."""

    id: str
    server: str
    tool: str
    arguments: str
    digest: str
    definition: str = field(default="", compare=False, repr=False)
    """The text that the digest is of, to show what has changed since; "" where it is not at hand."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One yes of the ledger, and what became of it."""

    key: CallKey
    choice: Choice
    rule: Rule
    state: State = "live"


@dataclass(frozen=True, slots=True)
class LedgerView:
    """The ledger's records of one chat; `proposals` are those that Parley wrote into it, each time."""

    entries: tuple[Entry, ...] = ()
    proposals: Collection[tuple[str, str, str]] = ()
    proposed: Collection[CallKey] = ()
    """The calls that Parley put into it, each with its tool as it was then offered to the model."""
    warnings: Collection[tuple[str, str, str]] = ()
    """Warnings (id, arguments, what) that whoever decides now got instead of having a yes taken."""
    elsewhere: Collection[tuple[str, str]] = ()
    """The calls (id, arguments) of those asked about that were started for another file, each time."""
    tasks: Collection[tuple[CallKey, str]] = ()
    """The calls of this chat that servers said they run as tasks, with the ids of these."""


def call_key(proposal: Proposal, tool: Tool) -> CallKey:
    """The key that a decision about this proposal is bound to."""
    call = proposal.call
    return CallKey(call.id, tool.server, tool.name, call.arguments, tool.digest, tool.definition)


def written_key(proposal: Proposal) -> tuple[str, str, str]:
    """The key of a proposal as one that Parley wrote: id, name, arguments."""
    return proposal.call.id, proposal.call.name, proposal.call.arguments


def is_declined(proposal: Proposal) -> bool:
    """Whether its mark is a no, which needs nobody to bear it out."""
    return proposal.choice is not None and proposal.choice not in YES


def all_proposals(transcript: Transcript) -> list[Proposal]:
    """Every proposal of the file, in order."""
    return [p for exchange in transcript.exchanges for answer in exchange.answers for p in answer.proposals]


@dataclass(frozen=True, slots=True)
class Lapse:
    """A yes, or a proposal of the model, that is void since its tool is defined anew."""

    digest: str
    """The digest of the definition that it was given for."""
    since: Literal["approved", "remembered", "proposed"]
    """A yes for this call, a yes for the tool, or the proposal itself."""


@dataclass(frozen=True, slots=True)
class _Counts:
    """Counts of a chat and its ledger, by call (id, arguments) or by proposal with its name."""

    entries: Mapping[_Call, Sequence[Entry]]
    settled: Counter[_Call]
    in_file: Counter[tuple[str, str, str]]
    own: Counter[tuple[str, str, str]]
    proposed: Mapping[_Call, Sequence[CallKey]]
    elsewhere: Counter[_Call]

    def entries_of(self, call_id: str, arguments: str) -> Sequence[Entry]:
        """The yeses for a call, in order."""
        return self.entries.get((call_id, arguments), ())

    @classmethod
    def of(cls, proposals: Sequence[Proposal], view: LedgerView) -> _Counts:
        """The counts of a chat with these proposals."""
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


@dataclass(frozen=True, slots=True)
class Approvals:
    """The standing of each proposal of one chat."""

    transcript: Transcript
    catalogue: Catalogue
    view: LedgerView
    _counts: _Counts = field(init=False, repr=False, compare=False)
    _remembered: dict[tuple[str, str, str], Mapping[str, Entry]] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )
    """Worked out once for each tool that is asked about."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_counts", _Counts.of(all_proposals(self.transcript), self.view))

    def standing(self, proposal: Proposal) -> Standing:
        """The standing of a proposal without a result: its mark counts as far as the ledger bears it out."""
        if is_declined(proposal):
            return "declined"
        if self.task(proposal):
            return "pending"
        tool = self.catalogue.get(proposal.call.name)
        if tool is not None and proposal.choice in YES and self._is_live(call_key(proposal, tool)):
            return "approved"
        return "may have run" if self.starts(proposal) else "undecided"

    def task(self, proposal: Proposal) -> CallKey | None:
        """The call as it was approved and sent, where the file names the task as which it runs.

        None for a task that no server gave this machine, for this chat and this very call: whoever writes a
        file could otherwise fetch what belongs to others. None, too, where the tool is another one now; one
        that is not on offer may be on offer again.
        """
        if proposal.task is None or proposal.choice not in YES:
            return None
        tool, call = self.catalogue.get(proposal.call.name), proposal.call
        if tool is not None:
            key = call_key(proposal, tool)
            return key if (key, proposal.task.id) in self.view.tasks else None
        keys = (key for key, task in self.view.tasks if task == proposal.task.id)
        return next((key for key in keys if (key.id, key.arguments) == (call.id, call.arguments)), None)

    def _is_live(self, key: CallKey) -> bool:
        return any(e.key == key for e in self._counts.entries_of(key.id, key.arguments) if e.state == "live")

    def starts(self, proposal: Proposal) -> int:
        """The number of this call's starts, where a result of it may be missing in the file; 0 where none is.

        Known by its id and arguments alone, whatever has become of its tool since. One that came with a file
        that was copied or has moved may have been started there.
        """
        call, counts = (proposal.call.id, proposal.call.arguments), self._counts
        states = Counter(e.state for e in counts.entries_of(*call))
        used, closed = states["used"], states["closed"]
        is_lost = used > counts.settled[call]
        # A closed one has left the file with its answer: here it is back, by an undo or from elsewhere.
        here = used + closed if is_lost or closed else 0
        return here if self.is_own(proposal) else here + counts.elsewhere[call]

    def rule(self, proposal: Proposal) -> str:
        """The rule of the yes that a call got here; "" where it got none."""
        entries = self._counts.entries_of(proposal.call.id, proposal.call.arguments)
        return next((entry.rule for entry in reversed(entries) if entry.state != "revoked"), "")

    def is_own(self, proposal: Proposal) -> bool:
        """Whether Parley wrote this proposal itself: the file shows it no more often than it was written."""
        key = written_key(proposal)
        return self._counts.in_file[key] <= self._counts.own[key]

    def was_taken_back(self, proposal: Proposal) -> bool:
        """Whether a yes with this mark was given here and is void since the mark was undone or edited."""
        entries = self._counts.entries_of(proposal.call.id, proposal.call.arguments)
        return any((e.choice, e.state) == (proposal.choice, "revoked") for e in entries)

    def is_as_proposed(self, proposal: Proposal) -> bool | None:
        """Whether its tool is what it was when the model proposed the call here; None where it did not."""
        tool = self.catalogue.get(proposal.call.name)
        call = (proposal.call.id, proposal.call.arguments)
        proposed = self._counts.proposed.get(call, ())
        return (tool is not None and call_key(proposal, tool) in proposed) if proposed else None

    def remembered(self, tool: Tool) -> Mapping[str, Entry]:
        """The yeses of a person whose capital mark remembers this tool, by digest of the definition."""
        known = tool.server, tool.name, tool.digest
        if known not in self._remembered:
            self._remembered[known] = {
                entry.key.digest: entry
                for proposal in all_proposals(self.transcript)
                if proposal.choice in REMEMBERING and self.catalogue.get(proposal.call.name) == tool
                for entry in self._counts.entries_of(proposal.call.id, proposal.call.arguments)
                if _remembers(entry) and _same_call(entry.key, proposal, tool)
            }
        return self._remembered[known]

    def lapsed(self, proposal: Proposal) -> Lapse | None:
        """The yes that a new definition of the tool has made void, else the proposal; None for neither."""
        tool = self.catalogue.get(proposal.call.name)
        if tool is None or self.standing(proposal) != "undecided":
            return None
        if proposal.choice in YES:
            live = (e.key for e in self.view.entries if e.state == "live")
            key = next((key for key in live if _same_call(key, proposal, tool)), None)
            return Lapse(key.digest, "approved") if key else None
        remembered = list(self.remembered(tool))
        if remembered:
            return Lapse(remembered[-1], "remembered") if tool.digest not in remembered else None
        if self.is_as_proposed(proposal) is False:
            call = (proposal.call.id, proposal.call.arguments)
            return Lapse(self._counts.proposed[call][-1].digest, "proposed")
        return None


def unclaimed(transcript: Transcript, view: LedgerView, since: int = 0) -> frozenset[str]:
    """Calls with a live yes that the file no longer shows as approved and waiting: the yes is to be revoked.

    The mark was undone or edited, or the call was deleted. Exchanges before the number `since` do not count:
    the model has been asked on without the calls that wait there.
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
    """The ids of calls that were started and whose results are not in the file.

    Models that number their calls anew in each reply give such an id to the next one, too; an undo would
    then make the two one.
    """
    settled = Counter((p.call.id, p.call.arguments) for p in all_proposals(transcript) if p.has_run)
    used = Counter((e.key.id, e.key.arguments) for e in view.entries if e.state == "used")
    lost = {call[0] for call, count in used.items() if count > settled[call]}
    return frozenset(lost | {e.key.id for e in view.entries if e.state == "closed"})


def _remembers(entry: Entry) -> bool:
    """Whether a person said this yes for the tool, too: a capital from elsewhere is none."""
    return entry.choice in REMEMBERING and entry.rule in ("key", "command") and entry.state != "revoked"


def _same_call(key: CallKey, proposal: Proposal, tool: Tool) -> bool:
    """Whether an entry speaks of this call, whatever has become of the tool's definition since."""
    call = proposal.call
    return (key.id, key.server, key.tool, key.arguments) == (call.id, tool.server, tool.name, call.arguments)


@dataclass(frozen=True, slots=True)
class Decision:
    """A yes given without asking, with the rule it came from in words."""

    proposal: Proposal
    rule: Literal["memory", "auto"]
    why: str


_APPROVED: Mapping[Tool, str] = {
    READ_RESULT: "it shows no more than what was approved before",
    FIND_TOOLS: "it reads only definitions of tools that are on offer here",
}
"""The tools of Parley's own that nobody is asked about, and why."""


def decide(proposal: Proposal, approvals: Approvals, rules: Rules) -> Decision | None:
    """The decision that memory or a rule makes on an undecided proposal; None means: ask.

    Only a proposal that Parley wrote itself from a model's reply is decided so. One that was pasted, merged
    or mailed asks, and so does one that may have run already.
    """
    tool = approvals.catalogue.get(proposal.call.name)
    if tool is None or not approvals.is_own(proposal):
        return None
    if proposal.choice is not None or approvals.standing(proposal) != "undecided":
        return None
    if tool in _APPROVED:
        return Decision(proposal, "auto", _APPROVED[tool])
    if entry := approvals.remembered(tool).get(tool.digest):
        return Decision(proposal, "memory", f"it is remembered by {entry.choice} on {entry.key.id}")
    if why := rules.allowed(tool, proposal.call.arguments):
        return Decision(proposal, "auto", why)
    return None
