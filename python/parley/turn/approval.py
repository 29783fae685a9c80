"""Whether a call may run: what the file says, held against what was really decided on this machine.

A mark in the file records a choice; what makes a call run is an entry of the ledger that agrees with it in
chat, call id, server, tool, arguments and definition. Deny beats remembered beats auto beats ask.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal, TypeAlias

from parley.chat.rounds import rounds
from parley.chat.transcript import REMEMBERING, YES, Choice, Proposal, Transcript
from parley.tools.catalogue import Catalogue, Tool
from parley.tools.schema import decode_arguments

Rule: TypeAlias = Literal["key", "command", "memory", "auto"]
State: TypeAlias = Literal["live", "used", "revoked"]
Explained: TypeAlias = Literal["asked", "declined", "refused"]
Standing: TypeAlias = Literal["undecided", "declined", "approved", "may have run"]


@dataclass(frozen=True, slots=True)
class CallKey:
    """All that a yes is bound to, beside the chat: a yes for anything else is no yes."""

    id: str
    server: str
    tool: str
    arguments: str
    digest: str
    definition: str = field(default="", compare=False, repr=False)
    """What the digest is of, kept to show what has changed since; "" where it is not at hand."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One yes of the ledger, and what became of it."""

    key: CallKey
    choice: Choice
    rule: Rule
    state: State = "live"


@dataclass(frozen=True, slots=True)
class LedgerView:
    """What the ledger knows of one chat; `written` are the proposals that Parley put into it, each time."""

    entries: tuple[Entry, ...] = ()
    written: Collection[tuple[str, str, str]] = ()


def call_key(proposal: Proposal, tool: Tool) -> CallKey:
    """What a decision about this proposal is bound to."""
    call = proposal.call
    return CallKey(call.id, tool.server, tool.name, call.arguments, tool.digest, tool.definition)


def written_key(proposal: Proposal) -> tuple[str, str, str]:
    """By what a proposal is known as one that Parley wrote: id, name, arguments."""
    return proposal.call.id, proposal.call.name, proposal.call.arguments


def is_declined(proposal: Proposal) -> bool:
    """Whether its mark is a no, which needs nobody to bear it out."""
    return proposal.choice is not None and proposal.choice not in YES


def all_proposals(transcript: Transcript) -> list[Proposal]:
    """Every proposal of the file, in order."""
    return [p for exchange in transcript.exchanges for answer in exchange.answers for p in answer.proposals]


@dataclass(frozen=True, slots=True)
class Lapse:
    """A yes that holds no more, since its tool is defined anew."""

    digest: str
    """Of the definition that it was said of."""
    remembered: bool
    """Whether it was said for the tool, and not just for this call."""


@dataclass(frozen=True, slots=True)
class Approvals:
    """The standing of each proposal of one chat."""

    transcript: Transcript
    catalogue: Catalogue
    view: LedgerView
    _settled: Counter[tuple[str, str, str]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        ran = (p for p in all_proposals(self.transcript) if p.has_run)
        object.__setattr__(self, "_settled", Counter(map(written_key, ran)))

    def standing(self, proposal: Proposal) -> Standing:
        """What a proposal without a result is: its mark counts for no more than the ledger bears out."""
        if is_declined(proposal):
            return "declined"
        tool = self.catalogue.get(proposal.call.name)
        if tool is None:
            return "undecided"
        states = Counter(e.state for e in self.view.entries if e.key == call_key(proposal, tool))
        if proposal.choice in YES and states["live"]:
            return "approved"
        used = sum(1 for e in self.view.entries if e.state == "used" and _same_call(e.key, proposal, tool))
        return "may have run" if used > self._settled[written_key(proposal)] else "undecided"

    def is_own(self, proposal: Proposal) -> bool:
        """Whether Parley wrote this proposal itself: the file shows it no more often than it was written."""
        key = written_key(proposal)
        shown = sum(1 for each in all_proposals(self.transcript) if written_key(each) == key)
        return shown <= Counter(self.view.written)[key]

    def remembered(self, tool: Tool) -> dict[str, Entry]:
        """By digest of the definition: the yes of a person whose capital mark remembers this tool."""
        said = [e for e in self.view.entries if _remembers(e)]
        marked = (p for p in all_proposals(self.transcript) if said and p.choice in REMEMBERING)
        return {
            entry.key.digest: entry
            for proposal in marked
            if self.catalogue.get(proposal.call.name) == tool
            for entry in said
            if _same_call(entry.key, proposal, tool)
        }

    def lapsed(self, proposal: Proposal) -> Lapse | None:
        """The yes that would have decided this call, were its tool still defined as it was then."""
        tool = self.catalogue.get(proposal.call.name)
        if tool is None or self.standing(proposal) != "undecided":
            return None
        if proposal.choice in YES:
            live = (e.key for e in self.view.entries if e.state == "live")
            key = next((key for key in live if _same_call(key, proposal, tool)), None)
            return Lapse(key.digest, remembered=False) if key else None
        remembered = list(self.remembered(tool))
        return Lapse(remembered[-1], True) if remembered and tool.digest not in remembered else None


def unclaimed(transcript: Transcript, view: LedgerView, since: int = 0) -> frozenset[str]:
    """Calls with a live yes that the file no longer shows as approved and waiting: the yes is to be revoked.

    The mark was undone or edited, or the call was deleted. Exchanges before the number `since` do not count:
    the model has been asked on without the calls that wait there.
    """
    claimed = {
        (p.call.id, p.call.arguments)
        for exchange in transcript.exchanges[since:]
        for answer in exchange.answers[-1:]
        for reply in rounds(answer)[-1:]
        for p in reply.proposals
        if p.result is None and p.choice in YES
    }
    live = (e.key for e in view.entries if e.state == "live")
    return frozenset(key.id for key in live if (key.id, key.arguments) not in claimed)


def _remembers(entry: Entry) -> bool:
    """Whether a person said this yes for the tool, too: a capital from elsewhere is none."""
    return entry.choice in REMEMBERING and entry.rule in ("key", "command") and entry.state != "revoked"


def _same_call(key: CallKey, proposal: Proposal, tool: Tool) -> bool:
    """Whether an entry speaks of this call, whatever has become of the tool's definition since."""
    call = proposal.call
    return (key.id, key.server, key.tool, key.arguments) == (call.id, tool.server, tool.name, call.arguments)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A `server/tool` glob, with regular expressions that whole argument values must match."""

    tool: str
    args: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        """As it is set."""
        return f"{self.tool!r}" + (f" with {json.dumps(dict(self.args))}" if self.args else "")

    def allows(self, tool: Tool, arguments: str) -> bool:
        """Whether the pattern surely covers a call; one without `/` covers trusted servers only."""
        server, slash, name = self.tool.partition("/")
        if slash:  # part by part: a tool with a slash in its name passes for none of another server
            is_named = fnmatchcase(tool.server, server) and fnmatchcase(tool.name, name)
        else:
            is_named = tool.trusted and fnmatchcase(tool.name, self.tool)
        return is_named and self._fit(arguments, _surely_fits)

    def forbids(self, tool: Tool, arguments: str) -> bool:
        """Whether the pattern may cover a call: an expression that is broken covers all."""
        name = f"{tool.server}/{tool.name}" if "/" in self.tool else tool.name
        return fnmatchcase(name, self.tool) and self._fit(arguments, _may_fit)

    def _fit(self, arguments: str, fits: Callable[[str, Any], bool]) -> bool:
        if not self.args:
            return True
        try:
            values = decode_arguments(arguments)
        except ValueError:
            return False
        return all(fits(expression, values.get(name)) for name, expression in self.args.items())


def _surely_fits(expression: str, value: Any) -> bool:
    try:
        return isinstance(value, str) and re.fullmatch(expression, value) is not None
    except re.error:
        return False


def _may_fit(expression: str, value: Any) -> bool:
    """Text as it is, over all its lines; anything else as its JSON, or by what is in it."""
    try:
        return any(re.fullmatch(expression, text, re.DOTALL) for text in _texts_of(value))
    except re.error:
        return True


def _texts_of(value: Any) -> Iterator[str]:
    """The texts that a value may be taken for."""
    yield value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    match value:
        case float() if value.is_integer():
            yield str(int(value))
        case list():
            yield from (text for each in value for text in _texts_of(each))
        case dict():
            yield from (text for each in value.values() for text in _texts_of(each))


@dataclass(frozen=True, slots=True)
class Rules:
    """What is decided without asking: `approval.auto`, `approval.deny`, `approval.auto_read_only`."""

    auto: tuple[Pattern, ...] = ()
    deny: tuple[Pattern, ...] = ()
    auto_read_only: bool = False

    def denied(self, tool: Tool, arguments: str) -> Pattern | None:
        """The pattern that forbids this call, None if none does."""
        return next((p for p in self.deny if p.forbids(tool, arguments)), None)

    def allowed(self, tool: Tool, arguments: str) -> str | None:
        """Why this call needs no asking, None if it does."""
        if pattern := next((p for p in self.auto if p.allows(tool, arguments)), None):
            return f"approval.auto has {pattern}"
        if self.auto_read_only and tool.trusted and tool.annotations.get("readOnlyHint") is True:
            return f"{tool.server} is trusted and says that {tool.name} only reads"
        return None


@dataclass(frozen=True, slots=True)
class Decision:
    """A yes given without asking, with the rule it came from in words."""

    proposal: Proposal
    rule: Literal["memory", "auto"]
    why: str


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
    if entry := approvals.remembered(tool).get(tool.digest):
        return Decision(proposal, "memory", f"it is remembered by {entry.choice} on {entry.key.id}")
    if why := rules.allowed(tool, proposal.call.arguments):
        return Decision(proposal, "auto", why)
    return None
