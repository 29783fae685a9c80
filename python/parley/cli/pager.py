"""Shows a full-screen page on a terminal, and restores the terminal's content afterwards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from parley.cli.keyboard import Keyboard
from parley.cli.terminal import screen

_LEAVE = ("q", "K", "escape", "interrupt", "end of input")


class Pager:
    """Scrolls through rows that do not fit into the terminal."""

    def __init__(
        self,
        keyboard: Keyboard,
        rows: Callable[[int], Sequence[str]],
        on_read: Callable[[], None] = lambda: None,
    ) -> None:
        """`rows` returns the rows for a given width; `on_read` is called when all rows have been
        shown.
        """
        self._keyboard = keyboard
        self._rows = lru_cache(maxsize=1)(rows)
        self._on_read = on_read
        self._top = self._last = 0
        """The first row on the screen, and the number of rows shown so far, from the start."""

    async def read(self) -> None:
        """Show the page until the user leaves it."""
        if not screen().draws:
            screen().record(self._rows(screen().width - 1))
            self._on_read()
            return
        screen().turn_page(is_open=True)
        try:
            self.draw()
            while (key := await self._keyboard.key()) not in _LEAVE:
                self._top += self._step(key)
                self.draw()
        finally:
            screen().turn_page(is_open=False)

    def draw(self) -> None:
        """Draw the page for the terminal's current size."""
        rows, height = self._rows(screen().width - 1), screen().height - 1
        self._top = max(0, min(self._top, len(rows) - height))
        last = min(self._top + height, len(rows))
        page = [*rows[self._top : last], *[""] * (height - last + self._top)]
        is_all = len(rows) <= height
        keys = (
            "q back" if is_all else f"{self._top + 1}-{last} of {len(rows)} · j/k space b · q back"
        )
        screen().page([*page, keys])
        if self._top <= self._last:
            self._last = max(last, self._last)
        if self._last >= len(rows):
            self._on_read()

    def _step(self, key: str) -> int:
        page, end = max(screen().height - 2, 1), 10**9
        steps = {
            "j": 1,
            "down": 1,
            "enter": 1,
            "k": -1,
            "up": -1,
            " ": page,
            "page down": page,
            "b": -page,
        }
        return {**steps, "page up": -page, "g": -end, "home": -end, "G": end, "end": end}.get(
            key, 0
        )
