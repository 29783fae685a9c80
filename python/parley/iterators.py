"""Async iterators that are closed as soon as their reader stops.

Python closes a forgotten generator only when it collects garbage. Nested generators are then closed
in any order, which fails for some of them, and leaves their connections open until then.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

T = TypeVar("T")


@asynccontextmanager
async def closing(items: AsyncIterator[T]) -> AsyncIterator[AsyncIterator[T]]:
    """Yield an iterator, and close it, with its connection and tasks, when the consumer stops."""
    try:
        yield items
    finally:
        if isinstance(items, AsyncGenerator):
            await items.aclose()
