"""A transport that tells its end: the death of an idle server is known before its next call, not by it.

Knows nothing of what is sent; the streams are those of the SDK's transports.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Self


@asynccontextmanager
async def watched(
    transport: AbstractAsyncContextManager[tuple[Any, Any]], ended: Callable[[], None]
) -> AsyncIterator[tuple[Any, Any]]:
    """The same transport; `ended` is called when nothing more can be read from it."""
    async with transport as (read, write):
        yield _Heard(read, ended), write


class _Heard:
    """A read stream in front of the transport's own."""

    def __init__(self, stream: Any, ended: Callable[[], None]) -> None:
        self._stream = stream
        self._ended = ended

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
            self._ended()
            raise

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *failure: object) -> bool | None:
        ended: bool | None = await self._stream.__aexit__(*failure)
        return ended
