"""Facts about one model, from its provider's list or the user's settings.

Knows neither lists nor names: `None` means that nothing is stated, so the model's name decides.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from parley.frozen import frozen
from parley.models.events import Price

ThinkingType: TypeAlias = Literal["adaptive", "enabled", "disabled", "between_tools"]
"""The values of Anthropic's `thinking.type`."""


@frozen
class ModelFacts:
    """The tokens that a model accepts and writes, how it can think, and what it can see.

    `window` counts the tokens of prompt and reply together, `max_output` those of one reply.
    `thinking` has the thinking types that requests may contain; `efforts` has the levels of
    thinking. `sees_pictures` and `reads_pdfs` say which attachments the model accepts, and
    `searches` whether its provider can search the web for it.
    """

    window: int | None = None
    max_output: int | None = None
    price: Price | None = None
    thinking: tuple[ThinkingType, ...] | None = None
    efforts: tuple[str, ...] | None = None
    sees_pictures: bool | None = None
    reads_pdfs: bool | None = None
    searches: bool | None = None


NO_FACTS = ModelFacts()
