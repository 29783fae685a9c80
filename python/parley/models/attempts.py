"""Trying again: what each further try of a request is like, and what of a try may be shown while it runs.

Nobody waits here. Knows nothing of what made a try fail beyond its words.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from parley.models.events import Event, Finished, TextDelta, ThinkingDelta, Usage, Withdrawn

PATIENCE = 240
"""Characters of a reply that are held back where a person looks on: a call comes within the first few lines
or not at all, and a longer answer is to be seen while it comes."""

USUAL_TEMPERATURE = 0.7
"""The temperature of models when nobody sets one, more or less: from there it is lowered."""


@dataclass(frozen=True, slots=True)
class Attempts:
    """The tries of one request that failed, and how it goes on. `errors` has one line for each."""

    max_retries: int
    retry_delay_ms: int
    temperature_reduction: float
    errors: tuple[str, ...] = ()

    def after(self, error: str) -> Attempts:
        """One more has failed."""
        return replace(self, errors=(*self.errors, error))

    @property
    def is_exhausted(self) -> bool:
        """Whether it is not tried again."""
        return len(self.errors) > self.max_retries

    def temperature(self, first: float | None) -> float | None:
        """That of the next try, where the first one's was `first`; None leaves it to the model."""
        if not self.errors:
            return first
        usual = USUAL_TEMPERATURE if first is None else first
        return max(0.0, round(usual - self.temperature_reduction * len(self.errors), 3))

    def delay_s(self, luck: float) -> float:
        """Seconds to wait before the next try, doubled with each; `luck`, 0 … 1, makes it more or less."""
        return self.retry_delay_ms / 1000 * 2.0 ** (len(self.errors) - 1) * (0.75 + luck / 2)


class Preview:
    """The part of one try that is shown while it runs: a short one when it is known to be sound, a longer one
    as it comes, and then it is withdrawn should it fail.

    `patience` are the characters of a short one; None: none is ever withdrawn. Usage is told at once, on top
    of what the tries before have `spent`.
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
        """The events held back, since the reply ends here or is broken off."""
        buffer, self._buffer, self._is_open = self._buffer, [], True
        yield from buffer

    def failed(self) -> Iterator[Event]:
        """The try failed."""
        if self._is_open:
            yield Withdrawn()
