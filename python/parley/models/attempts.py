"""Retries: how each further try of a request differs, and how much of a try is shown while it runs.

It never waits. Knows only the words of a failure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from parley.models.events import Event, Finished, TextDelta, ThinkingDelta, Usage, Withdrawn

PATIENCE = 240
"""Characters of a reply that are held back while the user watches. A call comes in the first few
lines or not at all; a longer answer should be visible as it arrives."""

USUAL_TEMPERATURE = 0.7
"""The approximate temperature of models by default: retries lower it from there."""


@dataclass(frozen=True, slots=True)
class Attempts:
    """The failed tries of one request and the rules for more. `errors` has one line for each."""

    max_retries: int
    retry_delay_ms: int
    temperature_reduction: float
    errors: tuple[str, ...] = ()

    def after(self, error: str) -> Attempts:
        """The state after one more failure."""
        return replace(self, errors=(*self.errors, error))

    @property
    def is_exhausted(self) -> bool:
        """Whether no tries are left."""
        return len(self.errors) > self.max_retries

    def temperature(self, first: float | None) -> float | None:
        """The next try's temperature, if the first one's was `first`; None leaves it to the
        model."""
        if not self.errors:
            return first
        usual = USUAL_TEMPERATURE if first is None else first
        return max(0.0, round(usual - self.temperature_reduction * len(self.errors), 3))

    def delay_s(self, luck: float) -> float:
        """Seconds to wait before the next try, doubled each time and varied by `luck`, 0 … 1."""
        return self.retry_delay_ms / 1000 * 2.0 ** (len(self.errors) - 1) * (0.75 + luck / 2)


class Preview:
    """The part of one try that is shown while it runs. A short reply is shown once it is known to
    be sound, a longer one as it arrives; if it then fails, it is withdrawn.

    `patience` is the length of a short reply in characters; None means that none is ever withdrawn.
    Usage is reported at once, added to the tokens `spent` by earlier tries.
    """

    def __init__(self, patience: int | None, spent: Usage | None = None) -> None:
        self._patience = patience
        self._before = self.spent = spent or Usage()
        self._buffer = list[Event]()
        self._length = 0
        self._is_open = False

    def feed(self, event: Event) -> Iterator[Event]:
        """The events that may be shown now."""
        if isinstance(event, Usage):
            self.spent = self._before + event
            yield self.spent
            return
        self._buffer.append(event)
        if isinstance(event, TextDelta | ThinkingDelta):
            self._length += len(event.text)
        is_long = self._patience is not None and self._length > self._patience
        if self._is_open or is_long or isinstance(event, Finished):
            yield from self.rest()

    def rest(self) -> Iterator[Event]:
        """The events held back, when the reply ends or is broken off."""
        buffer, self._buffer, self._is_open = self._buffer, [], True
        yield from buffer

    def failed(self) -> Iterator[Event]:
        """The try failed."""
        if self._is_open:
            yield Withdrawn()
