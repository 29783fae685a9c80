"""The keys of a terminal, each as it is pressed; knows nothing of what they mean.

The terminal is as it was before whenever nobody waits for a key: after an exception, a signal that ends the
program, and while it is stopped (Ctrl-Z). What was typed before somebody waits is thrown away.
"""

from __future__ import annotations

import asyncio
import codecs
import os
import re
import signal
import termios
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias

_KEYS = {
    "\x1b[A": "up",
    "\x1b[B": "down",
    "\x1bOA": "up",
    "\x1bOB": "down",
    "\x1b[5~": "page up",
    "\x1b[6~": "page down",
    "\x1b[H": "home",
    "\x1b[F": "end",
    "\x1b": "escape",
    "\x03": "interrupt",
    "\x04": "end of input",
    "\r": "enter",
    "\n": "enter",
    "\x08": "backspace",
    "\x7f": "backspace",
    "\x15": "erase line",
}
_KEY = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1bO[A-Za-z]|[\s\S]")
Attributes: TypeAlias = list[Any]
"""What `termios.tcgetattr` gives."""


class Keyboard:
    """A terminal that is typed at."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._keys = deque[str]()
        self._news = asyncio.Event()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @contextmanager
    def open(self, on_resize: Callable[[], None], on_return: Callable[[], None]) -> Iterator[None]:
        """Take keys from here on, until this is left; the two are told that the terminal has another size,
        and that the program goes on after it was stopped."""
        loop, before = asyncio.get_running_loop(), termios.tcgetattr(self._handle)

        def stop(*_: object) -> None:
            self._set(before)
            os.kill(os.getpid(), signal.SIGSTOP)  # SIGCONT is what comes next

        def go_on(*_: object) -> None:
            self._set(_by_key(before))
            loop.call_soon_threadsafe(on_return)

        def resize(*_: object) -> None:
            loop.call_soon_threadsafe(on_resize)

        handlers = {signal.SIGTSTP: stop, signal.SIGCONT: go_on, signal.SIGWINCH: resize}
        others = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        try:
            self._set(_by_key(before))
            loop.add_reader(self._handle, self._read)
            yield
        finally:
            loop.remove_reader(self._handle)
            for number, handler in others.items():
                signal.signal(number, handler)
            with suppress(termios.error):  # the terminal is gone
                self._set(before)

    def clear(self) -> None:
        """Throw away what was typed so far: nobody has seen what it would answer."""
        self._keys.clear()
        with suppress(termios.error):
            termios.tcflush(self._handle, termios.TCIFLUSH)

    async def key(self) -> str:
        """The next key: a character, or a name such as `up`, `enter` or `interrupt`."""
        while not self._keys:
            self._news.clear()
            await self._news.wait()
        return self._keys.popleft()

    def _set(self, attributes: Attributes) -> None:
        termios.tcsetattr(self._handle, termios.TCSANOW, attributes)

    def _read(self) -> None:
        try:
            content = os.read(self._handle, 4096)
        except BlockingIOError:
            return
        except OSError:  # the terminal is gone
            content = b""
        for match in _KEY.finditer(self._decoder.decode(content)):
            self._keys.append(_KEYS.get(match[0], "other" if match[0].startswith("\x1b") else match[0]))
        if not content:
            self._keys.append("end of input")
            asyncio.get_running_loop().remove_reader(self._handle)
        self._news.set()


def _by_key(before: Attributes) -> Attributes:
    """The attributes of a terminal that gives each key at once and shows none; Ctrl-C is a key, too."""
    modes, controls = before[:6], list(before[6])
    modes[3] &= ~(termios.ICANON | termios.ECHO | termios.IEXTEN)
    controls[termios.VMIN], controls[termios.VTIME] = 1, 0
    controls[termios.VINTR] = controls[termios.VQUIT] = b"\0"
    return [*modes, controls]
