"""Providers of installed packages at work: each is loaded when it is first asked, and runs in its own thread.

So one that blocks, is slow to import or hangs holds up nobody but who asked it, and not for ever. Its errors
name the package. What it says is read by `models/package.py`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Coroutine, Iterator
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from parley.engine.ports import closing
from parley.entry_points import PROVIDERS, EntryPointError, Offer, offer
from parley.errors import ModelError
from parley.models.package import Provider, ProviderEvent, ProviderRequest
from parley.models.refusals import SHORTEN, says_too_long
from parley.providers.errors import bounded

T = TypeVar("T")

AT_ONCE = 500
"""Events of one reply that wait to be read; then the provider waits."""
ANSWERS_S = 5.0
"""How long the loop of a provider may take to do nothing; else it is blocked."""
CLOSE_S = 1.0
"""How long a provider has to end what it does when nobody asks it any more."""
_THIS_PROGRAM = "this program"
"""In place of a package: the provider is an object that was handed over."""
_AGAIN = "wait, then :ParleyRespond asks again"


class PackageProviders:
    """The providers of packages by name, each loaded once, unless it hangs."""

    def __init__(self, idle_s: float, in_process: Provider | None = None) -> None:
        """`idle_s` is how long a provider may say nothing; `in_process` is an object of this program."""
        self._idle_s = idle_s
        self._offers = dict[str, Offer]()
        if in_process:
            name = in_process.name
            self._offers[name] = Offer(name, _THIS_PROGRAM, "", lambda: lambda: in_process)
        self._workers: dict[str, _Worker] = {}

    async def supports_tools(self, name: str, model: str) -> bool:
        """Whether a provider has tools for a model. Raises ModelError, as `stream` does."""
        worker = await self._worker(name)
        return await self._in_time(worker, worker.supports_tools(model))

    async def stream(self, name: str, request: ProviderRequest) -> AsyncIterator[list[ProviderEvent]]:
        """What a provider says, in lists of what is there together. Raises ModelError, with its package."""
        worker = await self._worker(name)
        async with aclosing(worker.stream(request)) as batches:
            while batch := await self._in_time(worker, anext(batches, None)):
                yield batch

    def blamed(self, name: str, error: ModelError) -> ModelError:
        """The error with the package of the provider in it, whose events are none, unless that is in it."""
        if isinstance(error, _PackageError):
            return error
        return _fault(self._offers[name], f"cannot be understood: {error}", "cannot be understood")

    async def close(self) -> None:
        """End all of them."""
        workers, self._workers = list(self._workers.values()), {}
        await asyncio.gather(*(worker.close() for worker in workers))

    async def _worker(self, name: str) -> _Worker:
        """A worker for the provider that can take on work. Raises ModelError."""
        if name not in self._offers:
            try:
                self._offers[name] = await asyncio.to_thread(offer, PROVIDERS, name)
            except EntryPointError as error:
                raise _PackageError(str(error), reason=f"no provider {bounded(name)}") from error
        if before := self._workers.get(name):
            await self._replace_if_blocked(before)
        if name not in self._workers:
            self._workers[name] = _Worker(self._offers[name])
        return self._workers[name]

    async def _in_time(self, worker: _Worker, step: Coroutine[Any, Any, T]) -> T:
        """What a worker does next. Raises ModelError where that takes too long."""
        try:
            async with asyncio.timeout(self._idle_s):
                return await step
        except TimeoutError as error:
            await self._replace_if_blocked(worker)
            what = f"said nothing for {self._idle_s:g} s"
            raise _fault(worker.offer, what, "did not answer in time", _AGAIN, retryable=True) from error

    async def _replace_if_blocked(self, worker: _Worker) -> None:
        """Have another worker take its place, if it is blocked; what it does for others it may still do."""
        if not await worker.answers(min(self._idle_s, ANSWERS_S)):
            if self._workers.get(worker.offer.name) is worker:
                del self._workers[worker.offer.name]
            worker.retire()


class _Worker:
    """A thread with an event loop, in which a provider is loaded and makes its replies."""

    def __init__(self, offer: Offer) -> None:
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
        """End it, whatever it does, and wait for that a while."""
        self._leave()
        await asyncio.to_thread(self._thread.join, CLOSE_S)

    def retire(self) -> None:
        """End it when it does nothing any more, whenever that is."""
        self._is_retired = True
        self._leave_if_unused()

    def _leave_if_unused(self) -> None:
        if self._is_retired and not self._uses:
            self._leave()

    def _leave(self) -> None:
        self._call(self._is_left.set)

    def _call(self, step: Callable[[], object]) -> None:
        """Have the thread do this, unless it has ended."""
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
        """What comes of some work in the thread."""
        with self._use():
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    async def answers(self, seconds: float) -> bool:
        """Whether the thread can do something, or is blocked, or has ended."""
        if not self._thread.is_alive():
            return False
        try:
            async with asyncio.timeout(seconds):
                await self._do(asyncio.sleep(0))
        except TimeoutError:
            return False
        return True

    async def supports_tools(self, model: str) -> bool:
        """As the provider says."""

        async def ask() -> bool:
            try:
                answer: object = self._loaded().supports_tools(model)
            except BaseException as error:
                raise _failed(self.offer, error) from error
            if not isinstance(answer, bool):
                what = f"cannot be understood: supports_tools gave {_type(answer)}, not a bool"
                raise _fault(self.offer, what, "cannot be understood")
            return answer

        return await self._do(ask())

    async def stream(self, request: ProviderRequest) -> AsyncGenerator[list[ProviderEvent], None]:
        """The events of a reply, in lists that are not empty."""
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
                        raise _failed(self.offer, end.error, request.api_key) from end.error
                    if end:
                        return
            finally:
                pump.cancel()

    async def _pump(self, request: ProviderRequest, pipe: _Pipe) -> None:
        """Put the events of a reply into the pipe, and then how it ended."""
        error: BaseException | None = None
        try:
            async with closing(_iterator(self._loaded().stream(request))) as iterator:
                async for event in iterator:
                    await pipe.put(event)
        except BaseException as failure:  # noqa: BLE001 - a package may also exit, or cancel itself
            error = failure
        with suppress(RuntimeError):  # nobody reads any more
            pipe.end(error)

    def _loaded(self) -> Provider:
        """The provider; the first to ask has it imported."""
        if self._provider is None:
            try:
                make: Any = self.offer.load()
                provider = make()
                name: object = provider.name
            except BaseException as error:
                raise _fault(self.offer, f"cannot be loaded: {_words(error)}", "cannot be loaded") from error
            if name != self.offer.name:
                what = f"cannot be used: its name is {bounded(repr(name))}, not its entry point's"
                raise _fault(self.offer, what, "has another name")
            self._provider = provider
        return self._provider


def _iterator(events: object) -> AsyncIterator[ProviderEvent]:
    if not isinstance(events, AsyncIterable):
        raise TypeError(f"stream gave {_type(events)}, not an async iterator")
    return aiter(events)


@dataclass(frozen=True, slots=True)
class _End:
    """The end of a reply, and why it is one."""

    error: BaseException | None


class _Pipe:
    """Events on their way from a provider's thread to the event loop of who reads them."""

    def __init__(self, reader: asyncio.AbstractEventLoop) -> None:
        self._reader = reader
        self._queue = asyncio.Queue[ProviderEvent | _End]()
        self._room = asyncio.Semaphore(AT_ONCE)

    async def put(self, event: ProviderEvent) -> None:
        """In the provider's thread: one more, once there is room."""
        await self._room.acquire()
        await asyncio.sleep(0)  # who never waits can be stopped here
        self._reader.call_soon_threadsafe(self._queue.put_nowait, event)

    def end(self, error: BaseException | None) -> None:
        """In the provider's thread: there are no more."""
        self._reader.call_soon_threadsafe(self._queue.put_nowait, _End(error))

    def make_room(self, count: int) -> None:
        """In the provider's thread: so many were read."""
        for _ in range(count):
            self._room.release()

    async def take(self) -> tuple[list[ProviderEvent], _End | None]:
        """All that is there, at least one, or the end."""
        items = [await self._queue.get()]
        while not self._queue.empty():
            items.append(self._queue.get_nowait())
        events = [item for item in items if not isinstance(item, _End)]
        return events, next((item for item in items if isinstance(item, _End)), None)


# --- Errors -----------------------------------------------------------------------------------------------


class _PackageError(ModelError):
    """An error that names its package."""


def _fault(
    offer: Offer, what: str, reason: str, advice: str = "", secret: str = "", **facts: Any
) -> ModelError:
    words = bounded(f"the provider {offer.name} of {offer.package} {what}", secret)
    advice = advice or (
        "fix it" if offer.package == _THIS_PROGRAM else "update that package, or tell its makers"
    )
    reason = bounded(f"the provider {offer.name} {reason}", secret)
    return _PackageError(f"{words}. What to do: {advice}", reason=reason, **facts)


def _failed(offer: Offer, error: BaseException, secret: str = "") -> ModelError:
    """The error for what a provider raised."""
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
                secret,
                status=error.status if isinstance(error.status, int) else None,
                retryable=error.retryable is True,
                retry_after=error.retry_after if isinstance(error.retry_after, int | float) else None,
                words=bounded(error.words or str(error), secret),
            )
        case _:
            return _fault(offer, f"failed: {_words(error)}", "failed", secret=secret)


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _type(value: object) -> str:
    return f"a {type(value).__name__}"
