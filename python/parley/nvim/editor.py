"""The way to Neovim: questions to Lua that can be awaited, and tasks that never fail in silence.

Uses pynvim's public calls only. Knows nothing of chats, but which functions of Lua's only show
text: hidden characters in their arguments are made visible here.
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
LATER_S = 0.003
"""Seconds that unawaited work is delayed, so a request to a model leaves first."""

_SHOWING = frozenset(
    {"message", "status", "ended", "agent", "draw", "float", "scratch", "ask_select", "ask_input"}
    | {"confirm_agent", "healthy", "folds"}
)
"""Functions of Lua's `remote` that show their strings to the user and do nothing else with them.

Each is a line, or less. A NUL makes it a Blob for Vim's functions; a line end is an error
for those that set lines; control characters in the default of an input are keys: CTRL-R = evaluates what
follows.
"""
_LINE_ENDS = str.maketrans({"\n": "\\n", "\t": "\\t"})

Level: TypeAlias = Literal["info", "warn", "error"]
_log = logging.getLogger("parley")


class Editor:
    """The one Neovim this process belongs to."""

    def __init__(self, nvim: pynvim.Nvim) -> None:
        self._nvim = nvim
        self.loop: asyncio.AbstractEventLoop = nvim.loop
        self._tasks = set[asyncio.Task[None]]()
        self._untold = list[list[Any]]()
        """Calls of `tell` not yet sent to Neovim."""

    async def ask(
        self, name: str, *arguments: Any, heed: Callable[[Any], None] = lambda _: None
    ) -> Any:
        """The value that a function of Lua's `remote` returns; `heed` is given it first.

        `heed` runs before any later message of Neovim's is handled, even if the caller was
        cancelled. The value may take as long as the user is in the middle of a command, so never
        set a time limit.
        """
        self._tell_now()
        answer = self.loop.create_future()

        def body() -> None:
            try:
                returned = self._nvim.exec_lua(_ASK, name, *shown_arguments(name, arguments))
                heed(returned)
            except Exception as error:  # noqa: BLE001 - raised again at the await
                if not answer.done():
                    answer.set_exception(error)
            else:
                if not answer.done():
                    answer.set_result(returned)

        # pynvim waits for the answer in a greenlet of its own, and the loop continues.
        greenlet.greenlet(body).switch()
        return await answer

    def tell(self, name: str, *arguments: Any) -> None:
        """Call a function of Lua's `remote`, soon, and before any later call."""
        if not self._untold:
            self.loop.call_later(LATER_S, self._tell_now)
        self._untold.append([name, *shown_arguments(name, arguments)])

    def _tell_now(self) -> None:
        if self._untold:
            calls, self._untold = self._untold, []
            self._nvim.exec_lua(_TELL, calls, async_=True)

    def message(self, text: str, level: Level = "info") -> None:
        """One line for the user."""
        if text:
            self.tell("message", " ".join(text.removeprefix("parley: ").split()), level)

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Begin a task. Its failures are shown to the user, and logged."""
        task = self.loop.create_task(self._guarded(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except ParleyError as error:
            self.message(str(error), "warn")
        except Exception as error:  # noqa: BLE001 - the boundary of the task
            _log.exception("a task failed")
            self.message(
                f"something went wrong: {error!r}. The log has details: :checkhealth parley",
                "error",
            )


def shown_arguments(name: str, arguments: Sequence[Any]) -> Sequence[Any]:
    """Arguments for a function of Lua's; made visible if the function only shows them."""
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
