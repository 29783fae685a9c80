"""The connection to Neovim: requests to Lua that can be awaited, and tasks that report failures.

Uses only pynvim's public functions. Does not know chats. Knows which Lua functions only show text,
and makes hidden characters in their arguments visible.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Literal, TypeAlias

import greenlet
import pynvim

from parley.errors import ParleyError
from parley.text import visible

_ASK = "return require('parley.remote')(...)"
_TELL = """
for _, call in ipairs(...) do
  local ok, why = pcall(require('parley.remote'), unpack(call))
  if not ok then vim.g.parley_last_error = why end
end
"""
LATER_S = 0.008
"""How many seconds `tell` delays its calls, so that a request to a model is sent first."""

_SHOWING = frozenset(
    {"message", "status", "ended", "agent", "draw", "float", "scratch", "ask_select", "ask_input"}
    | {"confirm_agent", "healthy", "folds"}
)
"""Functions in Lua's `remote` that only show their strings to the user.

No string has more than one line. Hidden characters would do harm: Vim's functions turn a string
with a NUL into a Blob, functions that set lines reject line breaks, and control characters in an
input's default are keys (CTRL-R = evaluates the text after it).
"""
_PIECES = frozenset({"append", "write"})
_BESIDE_TEXT = frozenset({"status", "clear", "usage", "waiting"})
"""Functions that a piece of a reply may overtake, because they neither read nor change text."""
_LINE_ENDS = str.maketrans({"\n": "\\n", "\t": "\\t"})

Level: TypeAlias = Literal["info", "warn", "error"]
_log = logging.getLogger("parley")


class Editor:
    """The Neovim that this process belongs to."""

    def __init__(self, nvim: pynvim.Nvim) -> None:
        self._nvim = nvim
        self.loop: asyncio.AbstractEventLoop = nvim.loop
        self._tasks = set[asyncio.Task[None]]()
        self._untold = list[list[Any]]()
        """Calls of `tell` that have not been sent to Neovim."""
        self._timer: asyncio.TimerHandle | None = None

    async def ask(
        self, name: str, *arguments: Any, on_reply: Callable[[Any], None] = lambda _: None
    ) -> Any:
        """Call a function in Lua's `remote`; pass its value to `on_reply`, and return it.

        `on_reply` runs before any later message from Neovim is handled, even if the caller was
        cancelled. Never set a time limit, because Neovim does not reply while the user is in the
        middle of a command.
        """
        self._tell_before(name)
        answer = self.loop.create_future()

        def body() -> None:
            try:
                returned = self._nvim.exec_lua(_ASK, name, *shown_arguments(name, arguments))
                on_reply(returned)
            except Exception as error:  # noqa: BLE001 - raised again at the await
                if not answer.done():
                    answer.set_exception(error)
            else:
                if not answer.done():
                    answer.set_result(returned)

        # pynvim waits for the answer in a separate greenlet, and the loop continues.
        greenlet.greenlet(body).switch()
        return await answer

    def tell(self, name: str, *arguments: Any) -> None:
        """Call a function in Lua's `remote` soon, and before any later call; only a piece of a
        reply may overtake a status.
        """
        if not self._untold:
            self._timer = self.loop.call_later(LATER_S, self.tell_now)
        self._untold.append([name, *shown_arguments(name, arguments)])

    def send(self, name: str, *arguments: Any) -> None:
        """Call a function in Lua's `remote` now. Its value is ignored, and it must not fail."""
        self._tell_before(name)
        self._nvim.exec_lua(_ASK, name, *shown_arguments(name, arguments), async_=True)

    def _tell_before(self, name: str) -> None:
        if name not in _PIECES or any(call[0] not in _BESIDE_TEXT for call in self._untold):
            self.tell_now()

    def tell_now(self) -> None:
        """Make the calls of `tell` that have not been made yet."""
        if self._timer:
            self._timer.cancel()
        if self._untold:
            calls, self._untold = self._untold, []
            self._nvim.exec_lua(_TELL, calls, async_=True)

    def message(self, text: str, level: Level = "info") -> None:
        """Show the user a message on one line."""
        if text:
            self.tell("message", " ".join(text.removeprefix("parley: ").split()), level)

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Begin a task. If the task fails, tells the user, and logs unexpected errors."""
        task = self.loop.create_task(self._guarded(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except ParleyError as error:
            self.message(str(error), "warn")
        except Exception as error:  # noqa: BLE001 - report every error of a task
            _log.exception("a task failed")
            self.message(
                f"something went wrong: {error!r}. The log has details: :checkhealth parley",
                "error",
            )


def shown_arguments(name: str, arguments: Sequence[Any]) -> Sequence[Any]:
    """Arguments for a Lua function, made visible if the function only shows them."""
    return [_visible(argument) for argument in arguments] if name in _SHOWING else arguments


def _visible(value: Any) -> Any:
    match value:
        case str():
            return visible(value).translate(_LINE_ENDS)
        case dict():
            return {key: _visible(item) for key, item in value.items()}
        case list() | tuple():
            return [_visible(item) for item in value]
        case _:
            return value
