"""Reads single keys from a terminal; does not know what they mean.

Restores the terminal whenever it does not wait for a key: after an exception, after a signal that
ends the program, and while the program is stopped (Ctrl-Z). Discards input from before the wait. If
the terminal marks pasted text, that text counts as one key, because the user did not type it.
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
from functools import partial
from select import select
from typing import Any, TypeAlias

from parley.cli.signals import handlers, soon
from parley.late_patterns import late_pattern

_GONE = "end of input"
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
    "\x04": _GONE,
    "\r": "enter",
    "\n": "enter",
    "\x08": "backspace",
    "\x7f": "backspace",
    "\x15": "erase line",
}
PASTED = "pasted "
"""The prefix of the key for pasted text; the text follows."""
_PASTE, _PASTE_END = "\x1b[200~", "\x1b[201~"
_MARK_PASTES, _NO_MARKS = b"\x1b[?2004h", b"\x1b[?2004l"
_KEY = late_pattern(
    r"\x1b\[200~(?P<paste>[\s\S]*?)\x1b\[201~|\x1b\[[0-?]*[ -/]*[@-~]|\x1bO[A-Za-z]|[\s\S]"
)
_BEGUN = late_pattern(r"\x1b\[[0-?]*\Z")
Attributes: TypeAlias = list[Any]
"""The result of `termios.tcgetattr`."""

_originals = dict[int, Attributes]()
"""Each terminal's attributes before `hushed`, by handle."""


@contextmanager
def hushed(
    handle: int, on_stop: Callable[[], None], on_return: Callable[[], None]
) -> Iterator[None]:
    """Hide typed text inside this context; Ctrl-C and Ctrl-Z still send signals.

    Calls `on_stop` before the program is stopped, and `on_return` when it continues.
    """
    loop, before = asyncio.get_running_loop(), termios.tcgetattr(handle)
    silent = [*before[:3], before[3] & ~(termios.ECHO | termios.ECHONL), *before[4:]]

    def put(attributes: Attributes) -> None:
        with suppress(termios.error, OSError):  # the terminal is gone
            if os.tcgetpgrp(handle) == os.getpgrp():  # in the background, it is the shell's
                termios.tcsetattr(handle, termios.TCSANOW, attributes)

    def give_back() -> None:
        put(before)

    def leave(*_: object) -> None:
        give_back()
        signal.signal(signal.SIGQUIT, signal.SIG_DFL)
        signal.raise_signal(signal.SIGQUIT)

    def go_on() -> None:
        put(silent)
        on_return()

    _originals[handle] = before
    stop = soon(loop, partial(_stop, on_stop, give_back, go_on))
    with handlers({signal.SIGTSTP: stop, signal.SIGCONT: soon(loop, go_on), signal.SIGQUIT: leave}):
        try:
            put(silent)
            yield
        finally:
            give_back()
            del _originals[handle]


def _stop(
    on_stop: Callable[[], None], give_back: Callable[[], None], go_on: Callable[[], None]
) -> None:
    """Restore the terminal and stop the program; draw nothing until `go_on`."""
    on_stop()
    give_back()
    with handlers({signal.SIGCONT: lambda *_: None}):
        os.kill(os.getpid(), signal.SIGSTOP)  # returns after SIGCONT
    go_on()


def forget_typed(handle: int) -> None:
    """Discard the terminal's unread input."""
    with suppress(termios.error):  # the terminal is gone
        termios.tcflush(handle, termios.TCIFLUSH)


class Keyboard:
    """The keyboard of a terminal."""

    def __init__(self, handle: int, terminal: int | None = None) -> None:
        """`terminal` is the handle of a terminal that can mark pasted text; None if it cannot."""
        self._handle = handle
        self._terminal = terminal
        self._keys = deque[str]()
        self._rest = ""
        """The incomplete start of a key or of pasted text."""
        self._news = asyncio.Event()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @contextmanager
    def open(
        self,
        on_resize: Callable[[], None],
        on_stop: Callable[[], None],
        on_return: Callable[[], None],
    ) -> Iterator[None]:
        """Read keys inside this context.

        Calls `on_resize` when the terminal's size changes, `on_stop` before the program is stopped,
        and `on_return` when it continues.
        """
        loop, before = asyncio.get_running_loop(), termios.tcgetattr(self._handle)

        def give_back() -> None:
            self._set(_originals.get(self._handle, before), _NO_MARKS)

        def go_on() -> None:
            self._set(_by_key(before), _MARK_PASTES)
            on_return()

        stop, resize = soon(loop, partial(_stop, on_stop, give_back, go_on)), soon(loop, on_resize)
        with handlers(
            {signal.SIGTSTP: stop, signal.SIGCONT: soon(loop, go_on), signal.SIGWINCH: resize}
        ):
            try:
                self._set(_by_key(before), _MARK_PASTES)
                loop.add_reader(self._handle, self._read)
                yield
            finally:
                loop.remove_reader(self._handle)
                self._set(before, _NO_MARKS)

    def clear(self) -> None:
        """Discard the typed keys, because the user has not seen the question yet.

        Still read them: they may contain the start of pasted text whose end arrives later.
        """
        is_open = True
        while is_open and select([self._handle], [], [], 0)[0]:
            is_open = self._take()
        self._keys = deque(() if is_open else (_GONE,))

    async def key(self) -> str:
        """The next key: a character, or a name such as `up`, `enter` or `interrupt`."""
        while not self._keys:
            self._news.clear()
            await self._news.wait()
        return self._keys.popleft()

    def _set(self, attributes: Attributes, marks: bytes) -> None:
        with suppress(termios.error, OSError):  # the terminal is gone
            termios.tcsetattr(self._handle, termios.TCSANOW, attributes)
            if self._terminal is not None:
                os.write(self._terminal, marks)

    def _read(self) -> None:
        if not self._take():
            asyncio.get_running_loop().remove_reader(self._handle)
        self._news.set()

    def _take(self) -> bool:
        """Read the available input; returns False at the end of input."""
        try:
            content = os.read(self._handle, 4096)
        except BlockingIOError:
            return True
        except OSError:  # the terminal is gone
            content = b""
        if not content.strip(b"\x03"):  # only Ctrl-C, or the end of input: drop an incomplete key
            self._rest = ""
        text = self._rest + self._decoder.decode(content)
        self._rest = _begun(text)
        for match in _KEY.finditer(text.removesuffix(self._rest)):
            self._keys.append(_name(match))
        if not content:
            self._keys.append(_GONE)
        return bool(content)


def _begun(text: str) -> str:
    """The incomplete key or pasted text at the end of a text; "" for none."""
    start = text.rfind(_PASTE)
    if start >= 0 and text.find(_PASTE_END, start) < 0:
        return text[start:]
    match = _BEGUN.search(text)
    return match[0] if match else ""


def _name(match: re.Match[str]) -> str:
    if match["paste"] is not None:
        return PASTED + match["paste"]
    return _KEYS.get(match[0], "other" if match[0].startswith("\x1b") else match[0])


def _by_key(before: Attributes) -> Attributes:
    """Attributes that make a terminal send each key at once, including Ctrl-C, without echo."""
    modes, controls = before[:6], list(before[6])
    modes[3] &= ~(termios.ICANON | termios.ECHO | termios.IEXTEN)
    controls[termios.VMIN], controls[termios.VTIME] = 1, 0
    controls[termios.VINTR] = controls[termios.VQUIT] = b"\0"
    return [*modes, controls]
