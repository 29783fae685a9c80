"""Runs providers from installed packages; each is loaded on first use, in its own thread.

A provider that blocks, imports slowly or hangs therefore delays only its own requests, and only for
a limited time. Errors name the package. `models/package.py` reads the events.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Coroutine,
    Iterator,
    Sequence,
)
from contextlib import aclosing, contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

from parley.entry_points import PROVIDER_GROUP, EntryPointError, PackageOffer, offer
from parley.errors import ModelError
from parley.frozen import frozen
from parley.iterators import closing
from parley.models.package import Provider, ProviderEvent, ProviderRequest
from parley.models.refusals import SHORTEN, says_too_long
from parley.providers.own_headers import header_secrets
from parley.providers.provider_errors import bounded

T = TypeVar("T")

REPLIES_AT_ONCE = 500
"""The maximum number of unread events in a reply; when it is reached, the provider has to wait."""
ANSWERS_S = 5.0
"""The seconds within which a provider's event loop must respond; otherwise it counts as blocked."""
CLOSE_S = 1.0
"""How many seconds a provider has to finish when it is closed."""
_THIS_PROGRAM = "this program"
"""Replaces the package's name if the provider is an object that was passed in."""
_AGAIN = "wait, then try :ParleyRespond again"


class PackageProviders:
    """The packages' providers by name; each is loaded once, and again only if it hangs."""

    def __init__(self, idle_s: float, in_process: Provider | None = None) -> None:
        """`idle_s` limits a provider's silence; `in_process` is a provider that was passed in."""
        self._idle_s = idle_s
        self._offers = dict[str, PackageOffer]()
        if in_process:
            name = in_process.name
            self._offers[name] = PackageOffer(name, _THIS_PROGRAM, "", lambda: lambda: in_process)
        self._workers: dict[str, _Worker] = {}

    async def supports_tools(self, name: str, model: str) -> bool:
        """Whether a provider supports tools for a model. Raises ModelError, as `stream` does."""
        worker = await self._worker(name)
        return await self._in_time(worker, worker.supports_tools(model))

    async def stream(
        self, name: str, request: ProviderRequest
    ) -> AsyncIterator[list[ProviderEvent]]:
        """Stream a provider's events, in lists of events that became available together. Raises
        ModelError, which contains the package's name.
        """
        worker = await self._worker(name)
        async with aclosing(worker.stream(request)) as batches:
            while batch := await self._in_time(worker, anext(batches, None)):
                yield batch

    def blamed(self, name: str, error: ModelError) -> ModelError:
        """The error for a provider's invalid events; unchanged if it already contains the package's
        name.
        """
        if isinstance(error, _PackageError):
            return error
        return _fault(
            self._offers[name], f"gave an invalid answer: {error}", "gave an invalid answer"
        )

    async def close(self) -> None:
        """Close all providers."""
        workers, self._workers = list(self._workers.values()), {}
        await asyncio.gather(*(worker.close() for worker in workers))

    async def _worker(self, name: str) -> _Worker:
        """A worker for the provider, ready for work. Raises ModelError."""
        if name not in self._offers:
            try:
                self._offers[name] = await asyncio.to_thread(offer, PROVIDER_GROUP, name)
            except EntryPointError as error:
                raise _PackageError(str(error), reason=f"no provider {bounded(name)}") from error
        if before := self._workers.get(name):
            await self._replace_if_blocked(before)
        if name not in self._workers:
            self._workers[name] = _Worker(self._offers[name])
        return self._workers[name]

    async def _in_time(self, worker: _Worker, step: Coroutine[Any, Any, T]) -> T:
        """Wait for a step by the worker. Raises ModelError if it takes too long."""
        try:
            async with asyncio.timeout(self._idle_s):
                return await step
        except TimeoutError as error:
            await self._replace_if_blocked(worker)
            what = f"sent nothing for {self._idle_s:g} s"
            raise _fault(
                worker.offer,
                what,
                "did not answer in time",
                _AGAIN,
                retryable=True,
                is_broken=True,
            ) from error

    async def _replace_if_blocked(self, worker: _Worker) -> None:
        """Replace this worker if it is blocked; it may still finish its other work."""
        if not await worker.answers(min(self._idle_s, ANSWERS_S)):
            if self._workers.get(worker.offer.name) is worker:
                del self._workers[worker.offer.name]
            worker.retire()


class _Worker:
    """A thread with an event loop that loads and runs a provider."""

    def __init__(self, offer: PackageOffer) -> None:
        self.offer = offer
        self._provider: Provider | None = None
        self._is_left = asyncio.Event()
        self._uses = 0
        self._is_retired = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=f"parley {offer.name}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._is_left.wait())

    async def close(self) -> None:
        """End the worker, even if it is busy, and wait for a limited time."""
        self._leave()
        await asyncio.to_thread(self._thread.join, CLOSE_S)

    def retire(self) -> None:
        """End the worker as soon as it is idle."""
        self._is_retired = True
        self._leave_if_unused()

    def _leave_if_unused(self) -> None:
        if self._is_retired and not self._uses:
            self._leave()

    def _leave(self) -> None:
        self._call(self._is_left.set)

    def _call(self, step: Callable[[], object]) -> None:
        """Run a step in the thread, unless the thread has ended."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(step)

    @contextmanager
    def _use(self) -> Iterator[None]:
        self._uses += 1
        try:
            yield
        finally:
            self._uses -= 1
            self._leave_if_unused()

    async def _do(self, work: Coroutine[Any, Any, T]) -> T:
        """Run work in the thread, and return its outcome."""
        with self._use():
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    async def answers(self, seconds: float) -> bool:
        """Whether the thread responds, that is, has neither blocked nor ended."""
        if not self._thread.is_alive():
            return False
        try:
            async with asyncio.timeout(seconds):
                await self._do(asyncio.sleep(0))
        except TimeoutError:
            return False
        return True

    async def supports_tools(self, model: str) -> bool:
        """Ask the provider whether it supports tools for this model."""

        async def ask() -> bool:
            try:
                answer: object = self._loaded().supports_tools(model)
            except BaseException as error:
                raise _failed(self.offer, error) from error
            if not isinstance(answer, bool):
                what = (
                    f"gave an invalid answer: supports_tools returned {_type(answer)}, not a bool"
                )
                raise _fault(self.offer, what, "gave an invalid answer")
            return answer

        return await self._do(ask())

    async def stream(self, request: ProviderRequest) -> AsyncGenerator[list[ProviderEvent], None]:
        """Stream a reply's events, in non-empty lists."""
        pipe = _Pipe(asyncio.get_running_loop())
        with self._use():
            pump = asyncio.run_coroutine_threadsafe(self._pump(request, pipe), self._loop)
            try:
                while True:
                    batch, end = await pipe.take()
                    if batch:
                        yield batch
                        self._call(partial(pipe.make_room, len(batch)))
                    if end and end.error:
                        secrets = request.api_key, *header_secrets(request.headers)
                        raise _failed(self.offer, end.error, *secrets) from end.error
                    if end:
                        return
            finally:
                pump.cancel()

    async def _pump(self, request: ProviderRequest, pipe: _Pipe) -> None:
        """Put a reply's events into the pipe, then its end."""
        error: BaseException | None = None
        try:
            async with closing(_iterator(self._loaded().stream(request))) as iterator:
                async for event in iterator:
                    await pipe.put(event)
        except BaseException as failure:  # noqa: BLE001 - a package may also exit, or cancel itself
            error = failure
        with suppress(RuntimeError):  # the reader is gone
            pipe.end(error)

    def _loaded(self) -> Provider:
        """The provider, which is imported on first use."""
        if self._provider is None:
            try:
                make: Any = self.offer.load()
                provider = make()
                name: object = provider.name
            except BaseException as error:
                raise _fault(
                    self.offer, f"cannot be loaded: {_words(error)}", "cannot be loaded"
                ) from error
            if name != self.offer.name:
                what = (
                    f"cannot be used: its name is {bounded(repr(name))}, "
                    f"but its entry point is called {self.offer.name!r}"
                )
                raise _fault(self.offer, what, "has another name")
            self._provider = provider
        return self._provider


def _iterator(events: object) -> AsyncIterator[ProviderEvent]:
    if not isinstance(events, AsyncIterable):
        raise TypeError(f"stream returned {_type(events)}, not an async iterator")
    return aiter(events)


@frozen
class _End:
    """The end of a reply, with its error, if any."""

    error: BaseException | None


class _Pipe:
    """Passes events from a provider's thread to the reader's event loop."""

    def __init__(self, reader: asyncio.AbstractEventLoop) -> None:
        self._reader = reader
        self._queue = asyncio.Queue[ProviderEvent | _End]()
        self._room = asyncio.Semaphore(REPLIES_AT_ONCE)

    async def put(self, event: ProviderEvent) -> None:
        """In the provider's thread: wait for room, and add an event."""
        await self._room.acquire()
        await asyncio.sleep(0)  # a provider that never waits can be cancelled here
        self._reader.call_soon_threadsafe(self._queue.put_nowait, event)

    def end(self, error: BaseException | None) -> None:
        """In the provider's thread: end the events."""
        self._reader.call_soon_threadsafe(self._queue.put_nowait, _End(error))

    def make_room(self, count: int) -> None:
        """In the provider's thread: make room for more events, because this many events have been
        read.
        """
        for _ in range(count):
            self._room.release()

    async def take(self) -> tuple[list[ProviderEvent], _End | None]:
        """Wait for at least one event or the end, and return everything available."""
        items = [await self._queue.get()]
        while not self._queue.empty():
            items.append(self._queue.get_nowait())
        events = [item for item in items if not isinstance(item, _End)]
        return events, next((item for item in items if isinstance(item, _End)), None)


# --- Errors ---------------------------------------------------------------------------------------


class _PackageError(ModelError):
    """An error that contains the package's name."""


def _fault(
    offer: PackageOffer,
    what: str,
    reason: str,
    advice: str = "",
    secrets: Sequence[str] = (),
    **facts: Any,
) -> ModelError:
    words = bounded(f"the provider {offer.name} from {offer.package} {what}", *secrets)
    advice = advice or (
        "fix it"
        if offer.package == _THIS_PROGRAM
        else "update that package, or report this to its maintainers"
    )
    reason = bounded(f"the provider {offer.name} {reason}", *secrets)
    return _PackageError(f"{words}. What to do: {advice}", reason=reason, **facts)


def _failed(offer: PackageOffer, error: BaseException, *secrets: str) -> ModelError:
    """The error for a provider's exception."""
    match error:
        case _PackageError():
            return error
        case ModelError():
            advice = SHORTEN if says_too_long(str(error)) else _AGAIN
            return _fault(
                offer,
                f"says: {error}",
                f"says: {error.reason}",
                advice,
                secrets,
                status=error.status if isinstance(error.status, int) else None,
                retryable=error.retryable is True,
                retry_after=error.retry_after
                if isinstance(error.retry_after, int | float)
                else None,
                words=bounded(error.words or str(error), *secrets),
                is_broken=error.retryable is True and error.status is None,
            )
        case _:
            return _fault(offer, f"failed: {_words(error)}", "failed", secrets=secrets)


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _type(value: object) -> str:
    return f"a {type(value).__name__}"
