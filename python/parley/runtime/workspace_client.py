"""The workspace as the client of an agent of another program: reads and writes files, and runs
commands.

A request is carried out only if the user approved the call that it became, or approved exactly this
change with another call of the agent. Decides nothing else.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from parley.acp.client_request import (
    INVALID_PARAMS,
    NOT_FOUND,
    ClientRequest,
    RefusedRequest,
)
from parley.errors import ParleyError, reason_of
from parley.frozen import frozen
from parley.mcp.server_session import Progress
from parley.policy.approval import CallKey
from parley.runtime.call_previews import announced_base
from parley.runtime.command_terminal import CommandTerminal
from parley.text import one_line
from parley.tools.client_calls import (
    ApprovedChange,
    ApprovedWork,
    ClientParamsError,
    output_limit,
)
from parley.tools.file_edits import FileEdit, file_edits
from parley.tools.file_text import FileTextError, decoded
from parley.tools.results import Outcome, outcome
from parley.tools.schema import decode_arguments
from parley.tools.text_changes import OwnText
from parley.tools.text_edits import EditError
from parley.workspace.boundary import Boundary
from parley.workspace.change_tools import CallOrigin, ChangeTools
from parley.workspace.command_runs import CommandWatch, OnOutput
from parley.workspace.command_tool import MOST_TIMEOUT_S, CommandRecorder
from parley.workspace.file_views import read_lines
from parley.workspace.opening import BoundaryError
from parley.workspace.planning import LARGEST_FILE, PlanError, plan_of, state_of
from parley.workspace.toolbox import NoRecords, Workspace
from parley.workspace.writing import ChangedError, carry_out

_NO_COMMANDS = "commands are switched off in the settings"
_MOVED = "the workspace has moved to another folder, so this did not run. Ask again"
_EDITED = (
    "the user edited this change before approving it, so the file differs from the text that "
    "was sent. Read it again"
)
_REWORDED = "the call in the chat is not the one that was requested, so it did not run"


@frozen
class WorkspaceClient:
    """Implements the client's tools for one chat."""

    work: Workspace
    chat: str
    names: frozenset[str]
    max_bytes: int
    """The limit of a result in the chat."""

    @property
    def root(self) -> Path:
        """The workspace's root."""
        return self.work.boundary.root

    # --- Before the user is asked -----------------------------------------------------------------

    async def at_once(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        params: Mapping[str, Any],
        approved: ApprovedWork,
    ) -> Mapping[str, Any] | RefusedRequest | CommandTerminal | None:
        """The answer to a request that needs no choice; None for any other."""
        try:
            match tool:
                case "write_file":
                    return await self._written_at_once(arguments, approved)
                case "read_file":
                    return await self._read_at_once(arguments, approved)
            return await self._run_at_once(arguments, params, approved)
        except (BoundaryError, ClientParamsError, FileTextError) as error:
            return RefusedRequest(str(error), INVALID_PARAMS)
        except (ParleyError, OSError) as error:
            return RefusedRequest(reason_of(error))

    async def _read_at_once(
        self, arguments: Mapping[str, Any], approved: ApprovedWork
    ) -> Mapping[str, Any] | RefusedRequest | None:
        path, boundary = arguments["path"], self.work.boundary
        place = await asyncio.to_thread(boundary.place, path)
        target = boundary.path(place)
        if not await asyncio.to_thread(os.path.lexists, target):
            return RefusedRequest(f"{one_line(path)}: there is no such file", NOT_FOUND)
        if await asyncio.to_thread(boundary.guard, path):
            return None
        text, _ = await self._lines(arguments)
        return {"content": text} if approved.has_text(target, text) else None

    async def _written_at_once(
        self, arguments: Mapping[str, Any], approved: ApprovedWork
    ) -> Mapping[str, Any] | None:
        path, content, boundary = arguments["path"], arguments["content"], self.work.boundary
        target = boundary.path(await asyncio.to_thread(boundary.place_to_write, path))
        text = await self._text_now(path)
        for each in approved.changes:
            if (each.path, each.after) == (target, content) and text in (each.before, content):
                approved.changes.remove(each)
                is_there = text == content or await self._write(each, path)
                # The agent may have written it itself, even just now.
                if is_there or await self._text_now(path) == content:
                    approved.note_text(target, content)
                    return {}
                return None
        if text == content and not await asyncio.to_thread(boundary.guard, path):
            return {}
        return None

    async def _text_now(self, path: str) -> str | None:
        boundary = self.work.boundary
        place = await asyncio.to_thread(boundary.place_to_write, path)
        state = await state_of(boundary, self.work.editor, place)
        return None if state.content is None else state.text().text

    async def _lines(self, arguments: Mapping[str, Any]) -> tuple[str, str]:
        """The lines that a request is about, as they are and as they are shown."""
        lines = arguments.get("first_line", 1), arguments.get("last_line", 0)
        return await read_lines(self.work.boundary, self.work.editor, arguments["path"], *lines)

    async def _run_at_once(
        self, arguments: Mapping[str, Any], params: Mapping[str, Any], approved: ApprovedWork
    ) -> CommandTerminal | None:
        """The terminal of a command that the user approved with another call. The record of that
        call has its changes.
        """
        limit = output_limit(params)
        directory = arguments.get("directory", ".")
        await asyncio.to_thread(self.work.boundary.place, directory)
        if directory != ".":
            return None
        for each in approved.commands:
            if each.command == arguments["command"]:
                approved.commands.remove(each)
                return await self._terminal(arguments, NoRecords(), limit, None)
        return None

    async def _terminal(
        self,
        arguments: Mapping[str, Any],
        recorder: CommandRecorder,
        limit: int | None,
        on_output: OnOutput | None,
    ) -> CommandTerminal:
        """A terminal in which a command has begun. Raises ParleyError if it cannot start."""
        command, watch = self.work.command, CommandWatch()
        if command is None:
            raise ParleyError(_NO_COMMANDS)
        line, directory = arguments["command"], arguments.get("directory", ".")
        run = command.run(line, directory, MOST_TIMEOUT_S, recorder, on_output, watch)
        terminal = CommandTerminal(watch, limit)
        await terminal.begin(run, self._outcome)
        return terminal

    def _outcome(self, text: str) -> Outcome:
        return outcome("ok", [{"type": "text", "text": text}], max_bytes=self.max_bytes)

    async def _write(self, approved: ApprovedChange, path: str) -> bool:
        """Make an approved change; False if it would not be exactly this change."""
        boundary, editor = self.work.boundary, self.work.editor
        edit = FileEdit(path, "write", OwnText(approved.after))
        recorder = self.work.recorder(CallOrigin(self.chat, approved.call_id, approved.base))
        try:
            plan = await plan_of([edit], boundary, editor, {})
            if [each.texts() for each in plan.changes] != [(approved.before, approved.after)]:
                return False
            await carry_out(plan.changes, boundary, editor, recorder)
        except (PlanError, ChangedError):
            return False
        await approved.on_write(approved.path)
        return True

    def approved_by(
        self, key: CallKey, on_write: Callable[[Path], Awaitable[None]]
    ) -> list[ApprovedChange]:
        """The changes that the user approved with a call of an agent, as shown; none if the files
        have changed since.
        """
        edits = file_edits(key.tool, decode_arguments(key.arguments))
        boundary, texts = self.work.boundary, dict[str, str | None]()
        now = dict[str, tuple[str | None, str | None]]()
        try:
            for edit in edits:
                if not edit.path.startswith("/"):
                    return []  # it may be relative to another folder
                place = boundary.place_to_write(edit.path)
                text = texts[edit.path] = _text(boundary, place)
                before, last = now.get(place, (text, text))
                now[place] = before, edit.applied(last)
        except (ParleyError, OSError, EditError):
            return []
        if announced_base(texts) != key.base:
            return []
        return [
            ApprovedChange(key.id, key.base, boundary.path(place), before, after, on_write)
            for place, (before, after) in now.items()
            if after is not None
        ]

    # --- After the user's yes ---------------------------------------------------------------------

    async def serve(
        self, request: ClientRequest, key: CallKey, progress: Progress
    ) -> Outcome | CommandTerminal:
        """Carry out a request that was approved with this key; the agent receives its answer, or the
        terminal.
        """
        is_edited = key.arguments != request.call.arguments
        why = _MOVED if request.root != self.root else ""
        if is_edited and key.tool != "write_file":
            why = why or _REWORDED
        try:
            if not why:
                return await self._serve(request, key, progress, is_edited=is_edited)
        except ParleyError as error:
            why = str(error)
        request.fail(why)
        return Outcome("error", why)

    async def _serve(
        self, request: ClientRequest, key: CallKey, progress: Progress, *, is_edited: bool
    ) -> Outcome | CommandTerminal:
        arguments = decode_arguments(key.arguments)
        match key.tool:
            case "write_file":
                return await self._serve_write(request, key, arguments, is_edited=is_edited)
            case "read_file":
                return await self._serve_read(request, arguments)

        async def on_output(line: str, seconds: float) -> None:
            progress(seconds, None, line or None)

        recorder = self.work.recorder(CallOrigin(self.chat, key.id, key.base))
        return await self._terminal(arguments, recorder, output_limit(request.params), on_output)

    async def _serve_read(self, request: ClientRequest, arguments: Mapping[str, Any]) -> Outcome:
        text, shown = await self._lines(arguments)
        self._note(request, arguments, text)
        request.fulfil({"content": text})
        return self._outcome(shown)

    async def _serve_write(
        self, request: ClientRequest, key: CallKey, arguments: Mapping[str, Any], *, is_edited: bool
    ) -> Outcome:
        tools = ChangeTools(self.work.boundary, self.work.editor, self.work.recorder)
        done = await tools.run(key.tool, arguments, CallOrigin(self.chat, key.id, key.base))
        if is_edited:
            request.fail(_EDITED)
        else:
            self._note(request, arguments, arguments["content"])
            request.fulfil({})
        return self._outcome(done)

    def _note(self, request: ClientRequest, arguments: Mapping[str, Any], text: str) -> None:
        boundary = self.work.boundary
        request.approved.note_text(boundary.path(boundary.place(arguments["path"])), text)


def _text(boundary: Boundary, place: str) -> str | None:
    """The text of a file on disk; None if there is none."""
    try:
        return decoded(boundary.content(place, LARGEST_FILE)).text
    except FileNotFoundError:
        return None
