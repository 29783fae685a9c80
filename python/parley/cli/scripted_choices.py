"""A script's choices: `--choose`, compared with the waiting calls that an earlier run printed.

An approval counts only for a call that an earlier run has printed with the same arguments and the
same diff. An id alone proves nothing, because the file or the model chose the id. The ledger
records the printed calls, each with its tool's definition and the texts that its diff was computed
from.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import inf

from parley import engine
from parley.chat.transcript import CHOICES, YES, Broken, Choice, Proposal
from parley.errors import ParleyError
from parley.frozen import frozen
from parley.policy.choice import open_calls
from parley.policy.doubts import Seen, sighting
from parley.policy.facts import Warned

_SEEN = "seen "


@frozen
class ScriptedChoice:
    """One `--choose`: a key, and the call's id ("" for all waiting calls)."""

    key: Choice
    call: str = ""

    @classmethod
    def of(cls, text: str) -> ScriptedChoice:
        """Parse `KEY` or `ID=KEY`. Raises ValueError."""
        call, equals, key = text.rpartition("=")
        choice = next((choice for choice in CHOICES if choice == key), None)
        if choice is None or bool(equals) != bool(call):
            raise ValueError(f"expected one of {', '.join(CHOICES)}, or ID=CHOICE")
        return cls(choice, call)

    def __str__(self) -> str:
        return f"--choose {self.call}={self.key}" if self.call else f"--choose {self.key}"


class Script:
    """A command's choices: first the choices with an id, then the other choices, both in their
    given order.
    """

    def __init__(self, choices: Iterable[ScriptedChoice], reason: str = "") -> None:
        self._choices = sorted(choices, key=lambda choice: not choice.call)
        self._reason = reason
        self.refusal = ""
        """Why a choice was refused."""

    async def check(self, ports: engine.Ports) -> None:
        """Raises ParleyError if a choice is for a call that is not waiting."""
        named = [choice for choice in self._choices if choice.call]
        if not named:
            return
        calls = open_calls((await ports.document.read()).exchange)
        ids = [call.call.id for call in calls if isinstance(call, Proposal)]
        for choice in named:
            if ids.count(choice.call) != 1:
                several = choice.call in ids
                why = (
                    "several calls with this id are waiting"
                    if several
                    else "no call with this id is waiting"
                )
                raise ParleyError(f"{choice}: {why}; no request was sent")

    async def decide(self, ports: engine.Ports, resolve: engine.Resolve) -> bool:
        """Make the next choice; returns False if no choice is left or the choice was refused."""
        if not self._choices:
            return False
        seen, choice = await engine.observe(ports, resolve), self._choices[0]
        calls = [c for c in seen.undecided() if not choice.call or _is_named(c, choice.call)]
        if not calls:
            self.refusal = f"{choice}: this call is already decided"
            return False
        press = engine.Press(
            choice.key,
            "command",
            "" if choice.key in YES else self._reason,
            sightings(seen),
            name=str(choice),
            reach="one" if choice.call else None,
        )
        outcome = await engine.choose(ports, resolve, calls[0].span.start, press)
        if outcome.decided:
            self._choices.pop(0)
        else:
            self.refusal = _refusal(choice, outcome)
        return outcome.decided

    @property
    def unused(self) -> str:
        """A message with the choices that found no waiting call; "" if there are none."""
        names = ", ".join(map(str, self._choices))
        return (
            f"not used because no call was waiting: {names}" if names and not self.refusal else ""
        )


def record_sightings(ports: engine.Ports, seen: engine.Observation) -> None:
    """Record that the waiting calls were printed in full, for the next decision."""
    approvals = seen.situation.approvals
    calls = [call for call in seen.undecided() if isinstance(call, Proposal)]
    warnings = (
        (call.call.id, call.call.arguments, f"{_SEEN}{drawn.digest} {drawn.base}".rstrip())
        for call in calls
        if (drawn := sighting(call, approvals))
    )
    ports.ledger.record(Warned(tuple(warnings)))


def sightings(seen: engine.Observation) -> Seen:
    """The sightings of the waiting calls that an earlier run printed."""
    approvals = seen.situation.approvals
    written = (
        replace(sighting(call, approvals), digest=digest, base=base)
        for call in seen.undecided()
        for call_id, arguments, what in seen.view.warnings
        if isinstance(call, Proposal)
        and (call.call.id, call.call.arguments) == (call_id, arguments)
        if what.startswith(_SEEN)
        for digest, _, base in [what.removeprefix(_SEEN).partition(" ")]
    )
    return Seen(dict.fromkeys(written, inf))


def _is_named(call: Proposal | Broken, name: str) -> bool:
    return isinstance(call, Proposal) and call.call.id == name


def _refusal(choice: ScriptedChoice, outcome: engine.ChoiceMade) -> str:
    """Why a choice was refused, worded for the shell."""
    if any(doubt.kind == "unseen" for doubt in outcome.doubts):
        return (
            f"{choice} applies only to calls that an earlier run printed. Read these calls, then "
            "run the command again"
        )
    return outcome.message
