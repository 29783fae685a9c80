"""Has the user fill in servers' forms, field by field, and open pages that servers ask for.

The user can leave at every step: by declining a form before its first field, or by dismissing a
field, which cancels the form. Knows how to ask; `tools.forms` knows which values a field accepts,
and `tools.visits` knows which addresses Parley may open.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from parley.display.summary import shown_line
from parley.nvim.dialogs import Dialogs
from parley.nvim.editor import Editor
from parley.text import one_line
from parley.tools.forms import TEXT_SHOWN, Field, complaint, fields, read
from parley.tools.visits import Visit

if TYPE_CHECKING:
    from parley.mcp.callbacks import Left

Running: TypeAlias = Callable[[str], list[str]]
"""Returns the names of a server's running tools."""
Showing: TypeAlias = Callable[[str], AbstractContextManager[None]]

_LEAVE_OUT = "(leave this out)"
_FINISH = "Done"
_PAGE = "visit"


class _DismissedError(Exception):
    """The user dismissed this form."""


class Elicitation:
    """Implements the servers' elicitor; `showing` shows a status while the user decides."""

    def __init__(
        self, editor: Editor, dialogs: Dialogs, showing: Showing, running: Running
    ) -> None:
        self._editor = editor
        self._dialogs = dialogs
        self._showing = showing
        self._running = running
        self._one_at_a_time = asyncio.Lock()

    async def ask(
        self, server: str, message: str, schema: Mapping[str, Any]
    ) -> dict[str, Any] | Left:
        """The user's answers, or how the user left the form."""
        async with self._one_at_a_time:
            calls = " and ".join(self._running(server))
            prompt = (
                f"{server} asks{f' for {calls}' if calls else ''}: {one_line(message, TEXT_SHOWN)}"
            )
            with self._showing(prompt):
                return await self._fill_in(
                    prompt, tuple(replace(f, server=server) for f in fields(schema))
                )

    async def visit(self, server: str, page: Visit) -> Literal["accept"] | Left:
        """Show the whole address on a page, and open it if the user agrees."""
        from parley.nvim.pages import visit_page

        async with self._one_at_a_time:
            prompt = f"{server} asks you to open a page on {page.host}"
            self._editor.tell("scratch", _PAGE, visit_page(server, page), "parley")
            try:
                with self._showing(prompt):
                    answer = await self._dialogs.select(prompt, ["No", "Open it in the browser"])
            finally:
                self._editor.tell("close_page", _PAGE)
        if answer != 1:
            return "cancel" if answer is None else "decline"
        if failure := await self._editor.ask("open_url", page.url):
            self._editor.message(f"no browser opened {page.url}: {shown_line(failure)}", "warn")
        return "accept"

    async def finish(self, server: str, page: Visit) -> bool:
        """Whether the user confirms having finished on the page."""
        async with self._one_at_a_time:
            prompt = f"{server} is waiting for you to finish on {page.host}"
            with self._showing(prompt):
                return await self._dialogs.select(prompt, ["Give up", "I have finished"]) == 1

    async def _fill_in(self, prompt: str, form: tuple[Field, ...]) -> dict[str, Any] | Left:
        first = await self._dialogs.select(prompt, ["Decline", "Answer" if form else "Accept"])
        if first != 1:
            return "cancel" if first is None else "decline"
        try:
            answers = [(field.name, await self._answer(field)) for field in form]
        except _DismissedError:
            return "cancel"
        return {name: value for name, value in answers if value is not None}

    async def _answer(self, field: Field) -> Any:
        """The value for a field; None if the user leaves it empty."""
        if field.several:
            return await self._several(field)
        return await (self._one(field) if field.options else self._typed(field))

    async def _one(self, field: Field) -> Any:
        options = [
            (v, f"{label} (default)" if v == field.default else label) for v, label in field.options
        ]
        options += [] if field.required else [(None, _LEAVE_OUT)]
        return options[await self._picked(field.label, [label for _, label in options])][0]

    async def _several(self, field: Field) -> Any:
        chosen = [v for v, _ in field.options if v in (field.default or ())]
        prompt = field.label
        while True:
            marked = [f"[{'x' if v in chosen else ' '}] {label}" for v, label in field.options]
            number = await self._picked(prompt, [_FINISH, *marked])
            if number:
                value = field.options[number - 1][0]
                chosen = [v for v, _ in field.options if (v in chosen) != (v == value)]
            elif why := complaint(field, chosen):
                prompt = f"{field.label} - {one_line(why, TEXT_SHOWN)}"
            else:
                return chosen

    async def _typed(self, field: Field) -> Any:
        prompt, typed = field.label, "" if field.default is None else str(field.default)
        while True:
            entered = await self._dialogs.input(
                f"{prompt}{'' if field.required else ', may be empty'}:", typed
            )
            if entered is None:
                raise _DismissedError
            if not entered and not field.required:
                return None
            value, typed = read(field, entered), entered
            why = complaint(field, value)
            if why is None:
                return value
            prompt = f"{field.label} - {one_line(why, TEXT_SHOWN)}"

    async def _picked(self, prompt: str, items: list[str]) -> int:
        number = await self._dialogs.select(prompt, items)
        if number is None:
            raise _DismissedError
        return number
