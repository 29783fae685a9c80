"""One look at a chat: the document, its settings, its tools and its decisions, and the request they make."""

from __future__ import annotations

from dataclasses import dataclass, replace

from parley.chat.history import NO_QUESTION
from parley.chat.transcript import Broken, Exchange, Proposal, Question, Text
from parley.engine.ports import Conduct, Ports, Resolve, Snapshot
from parley.models.request import Ask
from parley.policy import plan
from parley.policy.approval import LedgerView, unclaimed
from parley.policy.choice import open_keys
from parley.policy.guidance import guidance
from parley.policy.limits import tools_allowed
from parley.policy.plan import Situation, next_step
from parley.tools.catalogue import Catalogue


@dataclass(frozen=True, slots=True)
class Look:
    """One look at the document, with all that decides the step that follows."""

    snapshot: Snapshot
    conduct: Conduct
    catalogue: Catalogue
    view: LedgerView

    @property
    def situation(self) -> Situation:
        """What the step depends on."""
        shot, conduct = self.snapshot, self.conduct
        return Situation(shot.transcript, shot.at, self.catalogue, self.view, conduct.limits, conduct.rules)

    def ask(self, tools_on: bool) -> Ask:
        """The request that the model is to answer."""
        shot, ask = self.snapshot, self.conduct.ask
        return replace(
            ask,
            system="\n\n".join(filter(None, (ask.system, guidance(self.catalogue) if tools_on else ""))),
            transcript=shot.transcript,
            at=shot.at,
            catalogue=self.catalogue,
            tools_on=tools_on,
        )

    def next_ask(self) -> Ask:
        """The request that comes next, whatever is done before it.

        With nothing to ask it carries all that was said, and ends in a stand-in for the question, since
        providers refuse a request that ends in an answer.
        """
        shot = self.snapshot
        ask = self.ask(tools_allowed(self.conduct.limits, shot.transcript, shot.exchange))
        if not isinstance(next_step(self.situation), plan.AwaitQuestion | plan.Complete):
            return ask
        said = [e for e in shot.transcript.exchanges[: shot.at + 1] if e.answers]
        exchanges = (*said, Exchange(Question((Text(NO_QUESTION),))))
        return replace(ask, transcript=replace(shot.transcript, exchanges=exchanges), at=len(said))

    def undecided(self) -> list[Proposal | Broken]:
        """The calls in hand that wait for a choice, in file order."""
        exchange, approvals = self.snapshot.exchange, self.situation.approvals
        calls = plan.waiting(exchange.answers[-1]) if exchange.answers else []
        decided = ("approved", "declined")
        return [c for c in calls if isinstance(c, Broken) or approvals.standing(c) not in decided]


async def look(ports: Ports, resolve: Resolve) -> Look:
    """The document, its settings, its tools and its decisions, as they are now."""
    snapshot = await ports.document.read()
    conduct = resolve(snapshot.transcript)
    catalogue = conduct.tools(await ports.tools.catalogue()) if conduct.tools else Catalogue()
    calls = open_keys(snapshot.transcript)
    view = ports.ledger.view(calls)
    if undone := unclaimed(snapshot.transcript, view):
        ports.ledger.revoke(undone)
        view = ports.ledger.view(calls)
    return Look(snapshot, conduct, catalogue, view)
