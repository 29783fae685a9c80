"""A chat's used tokens, their cost, and how full the model's window is, for display. Pure.

Knows that usage is reported repeatedly during a request, and that each report replaces the previous
report.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from parley.frozen import frozen
from parley.models.events import Price, RateLimits, Usage
from parley.models.request import Request


@frozen
class Spent:
    """A number of tokens and searches, and their cost if the price is known."""

    tokens: Usage = field(default_factory=Usage)
    cost: float | None = None

    def __add__(self, other: Spent) -> Spent:
        """The sum of both."""
        costs = [cost for cost in (self.cost, other.cost) if cost is not None]
        return Spent(self.tokens + other.tokens, sum(costs) if costs else None)

    def table(self) -> dict[str, float]:
        """The tokens by name, the searches if there are any, and the cost if it is known."""
        used = self.tokens
        counts: dict[str, float] = {
            "input": used.input,
            "output": used.output,
            "cached": used.cache_read,
            "thinking": used.thinking,
        }
        counts |= {"searches": used.searches} if used.searches else {}
        return counts if self.cost is None else {**counts, "cost": self.cost}


@dataclass(slots=True)
class Tokens:
    """The tokens of the last request, the last turn, and all turns in this chat in this process."""

    last: Spent = field(default_factory=Spent)
    turn: Spent = field(default_factory=Spent)
    """The turn's requests before the current request."""
    before: Spent = field(default_factory=Spent)
    """The turns before the current turn."""
    price: Price | None = None
    limits: tuple[tuple[str, str], ...] = ()
    """The provider's limits, as last reported."""
    window: int = 0
    """How many tokens fit into the model's window; 0 before the first request."""
    prompt: int = 0
    """The estimated tokens of the chat's last request; the same estimate decides how much fits."""
    reply: int = 0
    """The tokens of the reply to the chat's last request."""
    _request: Callable[[], Request] | None = None
    _is_of_chat: bool = False

    def say(self, what: Usage | RateLimits) -> None:
        """Record the running request's tokens so far, or its provider's limits."""
        match what:
            case Usage():
                self.last = Spent(what, self.price.cost(what) if self.price else None)
                self._look_at_window()
                self.reply = what.output if self._is_of_chat else self.reply
            case RateLimits(headers):
                self.limits = headers

    def _look_at_window(self) -> None:
        """Measure the running request, once. Counting takes time, so call this while the model
        works.
        """
        if self._request:
            request, self._request = self._request(), None
            self.window, self.prompt = request.reach, request.tokens()

    def next_turn(self) -> None:
        """Begin to count another turn."""
        self.before, self.turn, self.last = self.before + self.turn + self.last, Spent(), Spent()

    def next_request(self, price: Price | None, request: Callable[[], Request] | None) -> None:
        """Begin to count another request; `request` is None if it is not the chat's own."""
        self.turn, self.last = self.turn + self.last, Spent()
        self.price, self._request, self._is_of_chat = price, request, request is not None

    def table(self) -> dict[str, Any]:
        """The table for `b:parley_usage`."""
        turn = self.turn + self.last
        used = {
            "last": self.last.table(),
            "turn": turn.table(),
            "chat": (self.before + turn).table(),
        }
        share = (self.prompt + self.reply) / self.window if self.window else 0.0
        window = (
            {"window": {"tokens": self.window, "share": round(share, 4)}} if self.window else {}
        )
        return {**used, **window, "limits": dict(self.limits)}
