"""Warnings before an approval counts: the user approves what was shown. Pure.

A call that was started before would run again. A call's tool may differ from the tool that was
shown. The call may have been on the screen only in part, only for a moment, or not at all. The
first approval only warns; the next approval, given after the warning, decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Literal, TypeAlias

from parley.chat.transcript import YES, Problem, Proposal
from parley.frozen import frozen
from parley.policy.approval import Approvals, written_key
from parley.policy.choice import open_calls
from parley.policy.permissions import Memory, memory_of
from parley.policy.rules import Rules
from parley.text import one_line

Kind: TypeAlias = Literal["started", "redefined", "changed", "unseen", "early"]

LEAST_SEEN_S = 0.4
"""Seconds that a call must have been on the screen. A key pressed sooner was meant for something
else."""

_SAYS: dict[Kind, str] = {
    "started": "{} may have run: no result in the file. {} reruns it",
    "redefined": "{} is not the tool that was shown: look at it, then press {} again",
    "changed": "the file has changed: look at the new diff of {}, then press {} again",
    "unseen": "{} was not fully shown as it is now: press K or {} again",
    "early": "{} has just appeared: read it, then press {} again",
}
_LONGEST_NAME = 40


@frozen
class Sighting:
    """A call as drawn for the user who decides."""

    call: tuple[str, str, str]
    digest: str = ""
    """The digest of its tool's definition; "" if the tool was unknown."""
    starts: int = 0
    """How often the call was started without a result in the file."""
    has_warning: bool = False
    """Whether a warning states that the next approval runs the call again."""
    base: str = ""
    """The digest of the texts that its diff was computed from; "" if there is no diff."""


@frozen
class Seen:
    """The calls that the user has had on the screen, and for how many seconds each."""

    seconds: Mapping[Sighting, float] = field(default_factory=dict)
    least: float = LEAST_SEEN_S

    def is_long_enough(self, seconds: float) -> bool:
        """Whether a call that was on the screen for this long counts as read."""
        return seconds >= self.least


@frozen
class Doubt:
    """A reason why a call's approval does not count yet."""

    proposal: Proposal
    kind: Kind
    warning: tuple[str, str, str] | None = None
    """The warning to record (call id, arguments, text), so that the next approval counts.
    """


def sighting(proposal: Proposal, approvals: Approvals) -> Sighting:
    """The call as it would be drawn now."""
    tool = approvals.catalogue.get(proposal.call.name)
    starts, preview = approvals.starts(proposal), approvals.preview(proposal)
    return Sighting(
        written_key(proposal),
        tool.digest if tool else "",
        starts,
        starts > 0 and _start_warning(proposal, starts) in approvals.view.warnings,
        preview.base if preview and preview.is_binding else "",
    )


def doubts(proposals: Sequence[Proposal], approvals: Approvals, seen: Seen | None) -> list[Doubt]:
    """The doubts about approving these calls; `seen` is None if nothing is drawn."""
    return [doubt for p in proposals if (doubt := _doubt(p, approvals, seen)) is not None]


def message(doubts: Sequence[Doubt], name: str) -> str:
    """The doubts in words, the most serious doubt first; `name` is the key or command to repeat."""
    first = next(d for kind in _SAYS for d in doubts if d.kind == kind)
    others = len({id(d.proposal) for d in doubts}) - 1
    text = _SAYS[first.kind].format(one_line(first.proposal.call.name, _LONGEST_NAME), name)
    return f"{text} ({others} more)" if others else text


def _doubt(proposal: Proposal, approvals: Approvals, seen: Seen | None) -> Doubt | None:
    if approvals.standing(proposal) == "approved":
        return None  # this exact call has been approved
    now = sighting(proposal, approvals)
    if now.starts and not now.has_warning:
        return Doubt(proposal, "started", _start_warning(proposal, now.starts))
    if seen is None:
        warning = (proposal.call.id, proposal.call.arguments, f"defined {now.digest}")
        is_other = (
            approvals.is_as_proposed(proposal) is False and warning not in approvals.view.warnings
        )
        return Doubt(proposal, "redefined", warning) if is_other else None
    as_it_is = {now, replace(now, digest="")} if approvals.is_as_proposed(proposal) else {now}
    if times := [seen.seconds[each] for each in as_it_is if each in seen.seconds]:
        return None if seen.is_long_enough(max(times)) else Doubt(proposal, "early")
    if any(replace(other, base=now.base) in as_it_is for other in seen.seconds):
        return Doubt(proposal, "changed")
    same = any(replace(other, digest=now.digest) == now for other in seen.seconds)
    return Doubt(proposal, "redefined" if same else "unseen")


def _start_warning(proposal: Proposal, starts: int) -> tuple[str, str, str]:
    return proposal.call.id, proposal.call.arguments, f"started {starts}"


MAY_HAVE_RUN = "this call may already have run: its result is not in the file. Decide again"
ONCE_MORE = (
    "this call may already have run: its result is not in the file. The next approval runs it again"
)

OUTDATED = "the file has changed since this call was approved. Look at the new diff, then decide"

EDITED = "edited"
"""The ledger's warning for a call whose arguments the user has edited."""

_SINCE = {
    "approved": "the call was approved",
    "remembered": "the tool was remembered",
    "allowed": "you allowed the tool",
    "proposed": "the call was proposed",
}


_UNREMEMBERED: dict[Memory, str] = {
    "tool": "no choice is remembered for the tool",
    "arguments": "no choice is remembered for this command",
    "nothing": "no choice is remembered for a call that may destroy something",
}


def why_asked(proposal: Proposal, approvals: Approvals, rules: Rules) -> str:
    """Why Parley asks the user about a waiting call."""
    if approvals.standing(proposal) == "may have run":
        return "it may already have run"
    if approvals.is_outdated(proposal):
        return OUTDATED
    if lapse := approvals.lapsed(proposal):
        return f"the tool's definition has changed since {_SINCE[lapse.since]}"
    if proposal.choice in YES:
        return f"its mark [{proposal.choice}] was not set here for this exact call"
    if (preview := approvals.preview(proposal)) and preview.guard:
        return preview.guard
    tool = approvals.catalogue.get(proposal.call.name)
    if tool and (pattern := rules.ask_pattern(tool, proposal.call.arguments)):
        return f"approval.ask has {pattern}"
    if not approvals.is_own(proposal):
        return "it was not proposed here by a model, or it was refused before"
    memory = memory_of(tool, preview) if tool else "tool"
    return f"no rule allows it, and {_UNREMEMBERED[memory]}"


def caution(proposal: Proposal, approvals: Approvals) -> str:
    """The warning that a waiting call may already have run; "" if it cannot have."""
    seen = sighting(proposal, approvals)
    if not seen.starts:
        return ""
    return ONCE_MORE if seen.has_warning else MAY_HAVE_RUN


def cautions(approvals: Approvals) -> Iterator[Problem]:
    """A problem for each waiting call in a chat that may already have run, on its line."""
    for exchange in approvals.transcript.exchanges:
        for call in open_calls(exchange):
            if isinstance(call, Proposal) and approvals.standing(call) == "may have run":
                yield Problem(call.span.start, 0, "warning", caution(call, approvals))
