"""Replaces a reply that broke off with the reply to the same question, asked again.

The text so far stays until the first text of the new reply arrives. If no complete reply arrives,
the longest reply stays. Never waits, and does not know why a reply broke off.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from parley.models.events import (
    Answered,
    Aside,
    Call,
    Event,
    Finished,
    Ran,
    RanResult,
    RateLimits,
    TextDelta,
    ThinkingDelta,
    ThinkingEnd,
    Usage,
    Withdrawn,
)


class ReplyReplacement:
    """Joins the events of a broken reply and of the replies that replace it to one reply.

    Usage is the sum of all requests, because each one is paid.
    """

    def __init__(self) -> None:
        self._visible = list[Event]()
        """The content that is on the screen."""
        self._longest = list[Event]()
        """The longest content of the replies before the current one."""
        self._thoughts = list[Event]()
        """The thinking of the current reply, until its first text replaces the old text."""
        self._is_old = False
        """Whether the content on the screen is from an earlier reply."""
        self._has_old_text = False
        """Whether this content has text, which only text may replace."""
        self._before = self._spent = Usage()
        self.has_begun = False
        """Whether any part of the current reply has arrived."""

    @property
    def shows_content(self) -> bool:
        """Whether there is text or thinking on the screen."""
        return bool(self._visible)

    @property
    def is_missing(self) -> bool:
        """Whether the current reply has ended without any content to replace the old content."""
        return self._is_old

    @property
    def has_call(self) -> bool:
        """Whether a call was shown, which the user or a rule may have approved, or others ran."""
        return any(isinstance(event, Call | Ran | RanResult) for event in self._visible)

    def feed(self, event: Event) -> Iterator[Event]:
        """The events that may be shown now."""
        self.has_begun = self.has_begun or not isinstance(event, RateLimits | Aside)
        match event:
            case Usage():
                self._spent = self._before + event
                yield self._spent
            case RateLimits() | Aside() | Answered():
                yield event
            case Withdrawn():
                self._thoughts = []
                if not self._is_old:
                    self._visible = []
                    yield event
            case ThinkingDelta() | ThinkingEnd() if self._has_old_text:
                self._thoughts.append(event)
            case Finished() if self._has_old_text:
                self._thoughts = []  # a reply without text replaces nothing
            case _:
                yield from self._replaced()
                self._visible.append(event)
                yield event

    def _replaced(self) -> Iterator[Event]:
        """Withdraw an earlier reply."""
        if not self._is_old:
            return
        self._is_old = self._has_old_text = False
        if self._visible:
            yield Withdrawn()
        self._visible, self._thoughts = self._thoughts, []
        yield from self._visible

    def ask_again(self) -> None:
        """The current reply broke off, and another one follows."""
        self._longest = max(self._longest, self._visible, key=_lengths)
        self._has_old_text = any(isinstance(event, TextDelta) for event in self._visible)
        self._thoughts, self._is_old, self.has_begun = [], True, False
        self._before = self._spent

    def give_up(self) -> Iterator[Event]:
        """No reply is complete: show the longest reply."""
        if _lengths(self._longest) > _lengths(self._visible):
            if self._visible:
                yield Withdrawn()
            yield from self._longest


def _lengths(events: Iterable[Event]) -> tuple[int, int]:
    """The lengths of the text and of the thinking; text counts more than any thinking."""
    said = [event for event in events if isinstance(event, TextDelta | ThinkingDelta)]
    text = sum(len(event.text) for event in said if isinstance(event, TextDelta))
    return text, sum(len(event.text) for event in said) - text
