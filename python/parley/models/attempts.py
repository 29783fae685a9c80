"""Retries: how each new attempt at a request differs, and how much of it is shown while it runs.

Never waits. Knows only the text of a failure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from parley.errors import ParleyError
from parley.frozen import frozen
from parley.models.events import Event, Finished, TextDelta, ThinkingDelta, Usage, Withdrawn

PATIENCE = 240
"""How many characters of a reply are held back while the user waits. A call appears in the first
few lines or not at all; a longer answer should be visible as it arrives.
"""

USUAL_TEMPERATURE = 0.7
"""The approximate default temperature of models; retries lower the temperature from this value."""


class TryFailed(ParleyError):  # noqa: N818 - one try of several
    """The model failed to call a tool; contains an error for the model to read, and the `text` of
    its reply.
    """

    def __init__(self, error: str, text: str) -> None:
        super().__init__(error)
        self.text = text


@frozen
class Attempts:
    """A request's failed attempts and the rules for retries. `errors` has one line per failure."""

    max_retries: int
    retry_delay_ms: int
    temperature_reduction: float
    errors: tuple[str, ...] = ()

    def after(self, error: str) -> Attempts:
        """The state after one more failure."""
        return replace(self, errors=(*self.errors, error))

    @property
    def is_exhausted(self) -> bool:
        """Whether no attempts are left."""
        return len(self.errors) > self.max_retries

    def temperature(self, first: float | None) -> float | None:
        """The next attempt's temperature, given that the first attempt used `first`; None means the
        model's default.
        """
        if not self.errors:
            return first
        usual = USUAL_TEMPERATURE if first is None else first
        return max(0.0, round(usual - self.temperature_reduction * len(self.errors), 3))

    def delay_s(self, luck: float) -> float:
        """Seconds to wait before the next attempt: doubled each time, varied by `luck`, 0 … 1."""
        return self.retry_delay_ms / 1000 * 2.0 ** (len(self.errors) - 1) * (0.75 + luck / 2)


class Preview:
    """Decides how much of an attempt is shown while it runs.

    A short reply is shown when it has ended successfully, and a longer reply as it arrives; if the
    longer reply then fails, it is withdrawn. `patience` is the maximum length of a short reply in
    characters; with None, the reply is held back until its end. Usage is reported at once, added to
    the tokens `spent` by earlier attempts.
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
        """Release the held-back events, when the reply ends or breaks off."""
        buffer, self._buffer, self._is_open = self._buffer, [], True
        yield from buffer

    def failed(self) -> Iterator[Event]:
        """The event for a failed attempt, if part of it was shown."""
        if self._is_open:
            yield Withdrawn()
