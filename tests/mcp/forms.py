"""A user who answers the forms and pages of servers."""

import asyncio
from collections.abc import Mapping
from typing import Any

from parley.tools.visits import Visit


class Form:
    """A user with the same answer to every form and page; forms are answered only after `thought`
    is set.
    """

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.requests: list[tuple[str, str, list[str]]] = []
        self.thinks, self.thought = asyncio.Event(), asyncio.Event()
        self.thought.set()

    async def ask(self, server: str, message: str, schema: Mapping[str, Any]) -> Any:
        self.requests.append((server, message, list(schema["properties"])))
        self.thinks.set()
        await self.thought.wait()
        return self.answer

    async def visit(self, server: str, page: Visit) -> Any:
        self.requests.append((server, page.message, [page.url]))
        return self.answer

    async def finish(self, server: str, page: Visit) -> bool:
        self.thinks.set()
        await self.thought.wait()
        return bool(self.answer == "accept")
