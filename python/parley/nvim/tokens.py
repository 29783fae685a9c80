"""The tokens a chat has used, for the eye. Pure.

Knows that usage is told piece by piece, each piece replacing what was said of the same request before.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from parley.models.events import RateLimits, Usage


@dataclass(slots=True)
class Tokens:
    """The tokens of the last request, and of all requests made here for this chat."""

    last: Usage = field(default_factory=Usage)
    before: Usage = field(default_factory=Usage)
    limits: tuple[tuple[str, str], ...] = ()
    """The provider's limits as it said them last."""

    def say(self, what: Usage | RateLimits) -> None:
        """Take the tokens of the running request so far, or the limits of its provider."""
        match what:
            case Usage():
                self.last = what
            case RateLimits(headers):
                self.limits = headers

    def next_request(self) -> None:
        """Another request begins; what was used stays used."""
        self.before, self.last = self.before + self.last, Usage()

    def table(self) -> dict[str, dict[str, int] | dict[str, str]]:
        """The table for `b:parley_usage`."""
        used = {"last": _table(self.last), "chat": _table(self.before + self.last)}
        return {**used, "limits": dict(self.limits)}


def _table(usage: Usage) -> dict[str, int]:
    return {
        "input": usage.input,
        "output": usage.output,
        "cached": usage.cache_read,
        "thinking": usage.thinking,
    }
