"""A transport that tells its end: the death of an idle server is known before its next call, not by it.

Knows nothing of what is sent; the streams are those of the SDK's transports.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Self


@asynccontextmanager
async def reporting_end(
    transport: AbstractAsyncContextManager[tuple[Any, Any]], on_end: Callable[[], None]
) -> AsyncIterator[tuple[Any, Any]]:
    """The same transport; `ended` is called when nothing more can be read from it."""
    async with transport as (read, write):
        yield _ReadStream(read, on_end), write


class _ReadStream:
    """A read stream in front of the transport's own."""

    def __init__(self, stream: Any, on_end: Callable[[], None]) -> None:
        self._stream = stream
        self._on_end = on_end

    async def receive(self) -> Any:
        return await self._stream.receive()

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._stream.__anext__()
        except StopAsyncIteration:
            self._on_end()
            raise

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *failure: object) -> bool | None:
        suppresses: bool | None = await self._stream.__aexit__(*failure)
        return suppresses
