"""A turn's port for the files next to the chat: reads them, and saves the parts of results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from parley.chat.transcript import Attachment, Result
from parley.engine import Observer
from parley.errors import ParleyError
from parley.media import kind_of
from parley.models.events import Aside
from parley.models.searches import is_sealed
from parley.storage.attachment_files import ChatAttachments
from parley.tools.results import Outcome, described


class TurnAttachments:
    """Implements the engine's port for attachments."""

    def __init__(self, files: ChatAttachments, observer: Observer) -> None:
        self._files = files
        self._observer = observer

    async def read(self, attachments: Sequence[Attachment]) -> Mapping[str, bytes | str]:
        """The attachments' contents by path, or the reason why a content is missing."""
        return await self._files.read(attachments)

    async def result_of(self, outcome: Outcome) -> Result:
        """The result; parts that are not text are saved in files, or replaced with a description if
        that fails.
        """
        attachments, texts = list[Attachment](), [outcome.text]
        contents = [(picture, kind_of(picture) or "") for picture in outcome.pictures]
        contents += [(outcome.whole.encode(), "txt")] if outcome.whole else []
        for content, suffix in contents:
            try:
                attachments.append(await self._files.save(content, suffix))
            except ParleyError as error:
                self._observer.on_event(Aside(f"{_what(content, suffix)} was not kept: {error}"))
                texts += [] if suffix == "txt" else [described(content)]
        return Result(outcome.status, "\n".join(filter(None, texts)), tuple(attachments))


def _what(content: bytes, suffix: str) -> str:
    """What an attachment is, at the start of a message."""
    if suffix != "txt":
        return "A picture"
    is_text = not is_sealed(content)
    return "The full text of a long result" if is_text else "The provider's part of a search result"
