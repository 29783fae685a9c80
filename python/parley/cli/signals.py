"""What signals do while something runs; afterwards they do what they did before."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop


@contextmanager
def handlers(table: Mapping[signal.Signals, Callable[..., object]]) -> Iterator[None]:
    """Have these called when their signals come, until this is left."""
    before = {number: signal.signal(number, handler) for number, handler in table.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def soon(loop: AbstractEventLoop, handler: Callable[[], None]) -> Callable[..., object]:
    """A handler of signals that has another one called by the loop, between two of its steps."""
    return lambda *_: loop.call_soon_threadsafe(handler)


@contextmanager
def ended_as_by_ctrl_c() -> Iterator[None]:
    """When the terminal goes or somebody ends us, what was said so far stays, as it does after Ctrl-C.

    A script's shell has what it starts in the background ignore Ctrl-C, and then so would all of this.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    ends = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) == signal.SIG_DFL]
    with handlers(dict.fromkeys(ends, lambda *_: signal.raise_signal(signal.SIGINT))):
        yield
