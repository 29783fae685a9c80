"""Doubts that a person hears before a yes of theirs counts: they decide on what was shown. Pure.

A call that was started before, whose yes would run it again; a tool that is another one than was shown; a
call that was not on the screen, or not all of it, or only for a moment. The first yes only says so; the next
one, given after that, decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from parley.chat.transcript import YES, Problem, Proposal
from parley.policy.approval import Approvals, written_key
from parley.policy.choice import open_calls
from parley.text import legible

Kind: TypeAlias = Literal["started", "redefined", "unseen", "early"]

LEAST_SEEN_S = 0.4
"""Seconds for which a call must have been on the screen: a key typed sooner was meant for something else."""

_SAYS: dict[Kind, str] = {
    "started": "{} may have run already: its result is not in this text. {} again runs it once more",
    "redefined": "the tool of {} is not the one that was shown: look at it, then press {} again",
    "unseen": "not all of {} was on the screen as it is now: K shows it, or press {} again",
    "early": "{} has only just appeared: read it, then press {} again",
}
_MOST_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Sighting:
    """A call as it is drawn for the person who decides."""

    call: tuple[str, str, str]
    digest: str = ""
    """The digest of its tool's definition; "" where that was not known."""
    starts: int = 0
    """The number of its starts without a result in the file."""
    has_warning: bool = False
    """Whether it says that one more yes runs it again."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The calls that a person has had on the screen, and for how many seconds each."""

    seconds: Mapping[Sighting, float] = field(default_factory=dict)
    least: float = LEAST_SEEN_S

    def is_long_enough(self, seconds: float) -> bool:
        """Whether something that was on the screen so long was read."""
        return seconds >= self.least


@dataclass(frozen=True, slots=True)
class Doubt:
    """A reason for which a yes for a call does not count yet."""

    proposal: Proposal
    kind: Kind
    warning: tuple[str, str, str] | None = None
    """The warning to record, so that the next yes counts: the call (id, arguments), and what it says."""


def sighting(proposal: Proposal, approvals: Approvals) -> Sighting:
    """The call as it stands."""
    tool = approvals.catalogue.get(proposal.call.name)
    starts = approvals.starts(proposal)
    return Sighting(
        written_key(proposal),
        tool.digest if tool else "",
        starts,
        starts > 0 and _start_warning(proposal, starts) in approvals.view.warnings,
    )


def doubts(proposals: Sequence[Proposal], approvals: Approvals, seen: Seen | None) -> list[Doubt]:
    """The doubts between a yes and these calls; `seen` is None if nothing is drawn, as in a script."""
    return [doubt for p in proposals if (doubt := _doubt(p, approvals, seen)) is not None]


def message(doubts: Sequence[Doubt], name: str) -> str:
    """The doubts in words, the gravest first; `name` is what to press again."""
    first = next(d for kind in _SAYS for d in doubts if d.kind == kind)
    others = len({id(d.proposal) for d in doubts}) - 1
    call = legible(f"{first.proposal.call.name} {first.proposal.call.arguments}")
    named = call if len(call) <= _MOST_SHOWN else call[: _MOST_SHOWN - 1] + "…"
    text = _SAYS[first.kind].format(named, name)
    return f"{text} ({others} more to look at)" if others else text


def _doubt(proposal: Proposal, approvals: Approvals, seen: Seen | None) -> Doubt | None:
    if approvals.standing(proposal) == "approved":
        return None  # it has a yes that was taken, for this very call
    now = sighting(proposal, approvals)
    if now.starts and not now.has_warning:
        return Doubt(proposal, "started", _start_warning(proposal, now.starts))
    if seen is None:
        warning = (proposal.call.id, proposal.call.arguments, f"defined {now.digest}")
        is_other = approvals.is_as_proposed(proposal) is False and warning not in approvals.view.warnings
        return Doubt(proposal, "redefined", warning) if is_other else None
    as_it_is = {now, replace(now, digest="")} if approvals.is_as_proposed(proposal) else {now}
    if times := [seen.seconds[each] for each in as_it_is if each in seen.seconds]:
        return None if seen.is_long_enough(max(times)) else Doubt(proposal, "early")
    same = any(replace(other, digest=now.digest) == now for other in seen.seconds)
    return Doubt(proposal, "redefined" if same else "unseen")


def _start_warning(proposal: Proposal, starts: int) -> tuple[str, str, str]:
    return proposal.call.id, proposal.call.arguments, f"started {starts}"


MAY_HAVE_RUN = "this call may have run already: its result is not in the file. Decide anew"
ONCE_MORE = "this call may have run already: its result is not in the file. One more yes runs it once more"


def why_asked(proposal: Proposal, approvals: Approvals) -> str:
    """The reason that nothing but a person decides on a call that waits."""
    if approvals.standing(proposal) == "may have run":
        return "it may have run already"
    if lapse := approvals.lapsed(proposal):
        return f"the definition of the tool changed since it was {lapse.since}"
    if proposal.choice in YES:
        return f"its mark [{proposal.choice}] was not set here for this very call"
    if not approvals.is_own(proposal):
        return "it was not proposed here by a model, or it was refused before"
    return "no rule allows it, and the tool is not remembered"


def caution(proposal: Proposal, approvals: Approvals) -> str:
    """The warning that a call which waits may have run before; "" where it has not."""
    seen = sighting(proposal, approvals)
    if not seen.starts:
        return ""
    return ONCE_MORE if seen.has_warning else MAY_HAVE_RUN


def cautions(approvals: Approvals) -> Iterator[Problem]:
    """The same of all calls of a chat that wait, where they stand."""
    for exchange in approvals.transcript.exchanges:
        for call in open_calls(exchange):
            if isinstance(call, Proposal) and approvals.standing(call) == "may have run":
                yield Problem(call.span.start, 0, "warning", caution(call, approvals))
