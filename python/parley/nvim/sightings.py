"""Tracks the calls that the user has seen: each has a number; a key press reports how long each was
on the screen.

Lua knows what was on the screen; this module knows which number belongs to which call.
"""

from __future__ import annotations

from collections.abc import Iterable

from parley.chat.transcript import Proposal
from parley.display.view import ChatView
from parley.policy.doubts import Sighting


class SeenCalls:
    """Numbers the drawn calls in one chat. An unchanged call keeps its number when redrawn."""

    def __init__(self) -> None:
        self._numbers = dict[Sighting, int]()
        self._last = 0

    def draw(self, view: ChatView) -> list[int]:
        """A number for each waiting call, in drawing order; 0 for an unreadable call."""
        calls = [call for _, waiting in view.waiting() for call in waiting]
        before, self._numbers = self._numbers, {}
        return [
            self._number(view.sighting(c), before) if isinstance(c, Proposal) else 0 for c in calls
        ]

    def of(self, seen: Iterable[tuple[int, float]]) -> dict[Sighting, float]:
        """The sightings that are still drawn, with their seconds, from the calls' numbers and
        milliseconds.
        """
        times = dict(seen)
        return {s: times[n] / 1000 for s, n in self._numbers.items() if n in times}

    def number(self, sighting: Sighting) -> int:
        """The number of a drawn call; 0 if it is not drawn."""
        return self._numbers.get(sighting, 0)

    def _number(self, sighting: Sighting, before: dict[Sighting, int]) -> int:
        if sighting not in self._numbers:
            self._last += sighting not in before
            self._numbers[sighting] = before.get(sighting, self._last)
        return self._numbers[sighting]
