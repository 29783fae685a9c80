"""The page with the models that all providers serve, from which the user chooses one for a chat.

Knows the page's lines; the app knows the lists, and Lua the keys.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator

from parley.display.model_rows import day, rows, title
from parley.display.summary import legible_line
from parley.models.model_list import ProviderModels
from parley.nvim.chat_buffer import ChatBuffer

_KEYS = "Enter: use the model in this chat  R: ask the providers again  q: close"
_ASKING = "asking..."


async def show_models(buffer: ChatBuffer, *, refresh: bool) -> None:
    """Show the page at once, and each provider's list when it arrives or fails."""
    app, names = buffer.app, buffer.app.models.providers()
    shown = {name: ProviderModels(name, app.models.known(name), _ASKING) for name in names}

    def draw(*, opening: bool) -> None:
        lines = list(models_page(shown.values(), time.time()))
        texts, agents = [text for text, _ in lines], [agent for _, agent in lines]
        buffer.editor.tell("models_page", buffer.buf, texts, agents, opening)

    draw(opening=not refresh)
    for done in asyncio.as_completed([app.models.of(name, refresh=refresh) for name in names]):
        models = await done
        shown[models.provider] = models
        draw(opening=False)


def models_page(every: Iterable[ProviderModels], now: float) -> Iterator[tuple[str, str]]:
    """The page's lines, each with the agent that uses its model, or ""."""
    yield "# Models", ""
    yield _KEYS, ""
    for models in every:
        yield "", ""
        yield legible_line(title(models, now)), ""
        agents = ["", *(f"{models.provider}/{model.id}" for model in models.listed.models)]
        for row, agent in zip(rows(models.listed, day(now)), agents, strict=False):
            yield legible_line(f"  {row}"), agent
