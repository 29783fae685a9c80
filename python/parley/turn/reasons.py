"""Why a person is asked about a call: in words, for looking back.

Knows what a call's standing may be; the texts beside the call itself are drawn elsewhere.
"""

from __future__ import annotations

from parley.chat.transcript import YES, Proposal
from parley.turn.approval import Approvals


def why_asked(proposal: Proposal, approvals: Approvals) -> str:
    """Why nothing but a person decides on a call that waits."""
    if approvals.standing(proposal) == "may have run":
        return "it may have run already"
    if lapse := approvals.lapsed(proposal):
        since = "remembered" if lapse.remembered else "approved"
        return f"the definition of the tool changed since it was {since}"
    if proposal.choice in YES:
        return f"its mark [{proposal.choice}] was not set here for this very call"
    if not approvals.is_own(proposal):
        return "it was not proposed here by a model, or it was refused before"
    return "no rule allows it, and the tool is not remembered"
