"""Asks a question again if its reply breaks off.

The caller provides the function that asks; `models.broken_replies` decides what is shown.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from parley.errors import ModelError
from parley.frozen import frozen
from parley.iterators import closing
from parley.models.broken_replies import ReplyReplacement
from parley.models.events import Event
from parley.policy import status_texts


@frozen
class ReplyRetries:
    """How many times to ask again; `can_take_back` is false if text that was shown cannot be
    replaced.
    """

    most: int
    can_take_back: bool = True

    async def stream(
        self, ask: Callable[[], AsyncIterator[Event]], tell: Callable[[str], None]
    ) -> AsyncIterator[Event]:
        """A reply's events, from as many requests as necessary. Raises ModelError, which is the
        last failure.
        """
        reply, tries, broken = ReplyReplacement(), 0, None
        while True:
            try:
                async with closing(ask()) as events:
                    async for event in events:
                        for each in reply.feed(event):
                            yield each
            except ModelError as error:
                if tries >= self.most or not self._helps(error, reply):
                    for each in reply.give_up():
                        yield each
                    raise
                tries, broken = tries + 1, error
                reply.ask_again()
                tell(status_texts.asking_again(error.reason))
            else:
                if broken and reply.is_missing:
                    raise broken
                return

    def _helps(self, error: ModelError, reply: ReplyReplacement) -> bool:
        """Whether to ask again: never after a call was shown, because a rule may approve it at
        once; and not if the client itself has already repeated the request without success.
        """
        is_repeated = error.retryable and not reply.has_begun
        is_replaceable = self.can_take_back or not reply.shows_content
        return error.is_broken and not is_repeated and is_replaceable and not reply.has_call
