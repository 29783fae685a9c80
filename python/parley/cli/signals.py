"""Signal handlers for the duration of a task; restores the earlier handlers afterwards."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop


@contextmanager
def handlers(table: Mapping[signal.Signals, Callable[..., object]]) -> Iterator[None]:
    """Handle these signals inside this context."""
    before = {number: signal.signal(number, handler) for number, handler in table.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def soon(loop: AbstractEventLoop, handler: Callable[[], None]) -> Callable[..., object]:
    """A signal handler that has the event loop call `handler` between two steps."""
    return lambda *_: loop.call_soon_threadsafe(handler)


@contextmanager
def ended_as_by_ctrl_c() -> Iterator[None]:
    """Treat other terminating signals, such as SIGHUP, like Ctrl-C: the answer so far is kept.

    A shell script makes background commands ignore Ctrl-C, so restore the default handler first.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    ends = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) == signal.SIG_DFL]
    with handlers(dict.fromkeys(ends, lambda *_: signal.raise_signal(signal.SIGINT))):
        yield
