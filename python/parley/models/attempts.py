"""Trying again: what each further try of a request is like, and what of a try may be shown while it runs.

Pure values: nobody waits here. Knows nothing of what made a try fail beyond its words.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from parley.models.events import Call, Event, Finished, TextDelta, ThinkingDelta, ThinkingEnd, Usage

PATIENCE = 240
"""Characters of a reply that are held back till it is known to be sound: a call comes within the first few
lines or not at all, and a longer answer is to be seen while it comes."""

USUAL_TEMPERATURE = 0.7
"""What models are run at when nobody says so, more or less: from there it is lowered."""


@dataclass(frozen=True, slots=True)
class Attempts:
    """The tries of one request that failed, and how it goes on. `errors` has one line for each."""

    max_retries: int = 3
    retry_delay_ms: int = 1000
    temperature_reduction: float = 0.1
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


class Shown:
    """What of a request's tries reaches the file: nothing of one that fails before `PATIENCE` is over.

    What was shown of a longer one stays, and of the next only its calls are taken, or its answer if there
    are none.
    """

    def __init__(self) -> None:
        self._held = list[Event]()
        self._length = 0
        self._is_open = self._has_shown = False

    def feed(self, event: Event) -> Iterator[Event]:
        """What may be shown now."""
        if self._is_open:
            yield event
            return
        self._held.append(event)
        if isinstance(event, TextDelta | ThinkingDelta):
            self._length += len(event.text)
        is_long = self._length > PATIENCE and not self._has_shown
        if is_long or isinstance(event, Finished):
            yield from self.rest()

    def rest(self) -> Iterator[Event]:
        """What is held back, since the reply ends here or is broken off."""
        held, self._held, self._is_open = self._held, [], True
        yield from self._beside(held) if self._has_shown else held

    def failed(self) -> None:
        """This try failed; the next begins."""
        self._has_shown = self._has_shown or self._is_open
        self._held, self._length, self._is_open = [], 0, False

    def _beside(self, held: list[Event]) -> Iterator[Event]:
        """What a later try adds to what was shown of an earlier one."""
        if any(isinstance(event, Call) for event in held):
            yield from (event for event in held if isinstance(event, Call | Usage | Finished))
            return
        yield TextDelta("\n\n")
        yield from (event for event in held if not isinstance(event, ThinkingDelta | ThinkingEnd))
