"""Why a person is asked about a call, and what to know before saying yes: in words.

Knows what a call's standing may be; the texts beside the call itself are drawn elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator

from parley.chat.transcript import YES, Problem, Proposal
from parley.policy.approval import Approvals
from parley.policy.choice import open_calls
from parley.policy.doubts import sighting

MAY_HAVE_RUN = "this call may have run already: its result is not in the file. Decide anew"
ONCE_MORE = "this call may have run already: its result is not in the file. One more yes runs it once more"


def why_asked(proposal: Proposal, approvals: Approvals) -> str:
    """Why nothing but a person decides on a call that waits."""
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
    """What to know before a call that waits is run: that it may have run before; "" where it has not."""
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
