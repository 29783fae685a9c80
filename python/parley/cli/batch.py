"""`parley respond` with several chats: runs some of them at once, with one application and one rate
limit.

An error in one chat does not affect the other chats. Prints a line for each finished chat, and the
overall progress; the answers are in the files.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from parley import engine
from parley.cli.exits import COMPLETE, FAILED, MISSING, STOPPED, USAGE, WAITING, kind_of, worst
from parley.cli.report import CODES, JsonReport, Report
from parley.cli.respond import (
    MissingError,
    application,
    check_tools,
    name_topic,
    open_chat,
    undisturbed,
    write_waiting,
)
from parley.cli.respond import respond as respond_one
from parley.cli.signals import ended_as_by_ctrl_c
from parley.cli.terminal import PIPE, about, complain, emit, remark, say_line, screen
from parley.errors import ParleyError
from parley.frozen import frozen

if TYPE_CHECKING:
    from parley.runtime.app import App

_BAR = 20
"""The progress bar's width in cells."""


def respond(arguments: argparse.Namespace) -> int:
    """Answer the last question in a chat file, as the editor would."""
    files = list(_once(arguments.files))
    if PIPE in files:
        return _respond_to_pipe(arguments)
    if len(files) == 1 and arguments.jobs is None:
        arguments.file = files[0]
        return respond_one(arguments)
    if arguments.choose or arguments.reason:
        complain("--choose and --reason are for a single chat. Name one file, without --jobs")
        return USAGE
    screen().is_quiet = arguments.quiet
    with ended_as_by_ctrl_c():
        return asyncio.run(_respond(arguments, files))


async def _respond(arguments: argparse.Namespace, files: Sequence[str]) -> int:
    async with application() as app:
        return await Batch(arguments, files).run(app)


def _respond_to_pipe(arguments: argparse.Namespace) -> int:
    from parley.cli.pipe import respond

    if len(arguments.files) > 1 or arguments.jobs is not None:
        complain("- is a single chat. Do not add other files or --jobs")
        return USAGE
    arguments.file = PIPE
    return respond(arguments)


def _once(files: Sequence[str]) -> Iterator[str]:
    """The files without duplicates; the first of several paths counts."""
    known = set[str]()
    for file in files:
        if (path := os.path.realpath(file)) not in known:
            known.add(path)
            yield file


@frozen
class ChatOutcome:
    """How a chat ended."""

    file: str
    code: int
    message: str = ""


class Batch:
    """Continues several chats."""

    def __init__(self, arguments: argparse.Namespace, files: Sequence[str]) -> None:
        self.arguments = arguments
        self._files = files
        self.outcomes = list[ChatOutcome]()
        self._doing = dict[str, str]()
        """The status of each unfinished chat."""
        self._unfinished = list[str]()
        """The chats whose answer was stopped."""

    async def run(self, app: App) -> int:
        """Continue all chats; returns the worst exit code."""
        waiting = iter(self._files)
        try:
            with undisturbed():
                async with asyncio.TaskGroup() as workers:
                    for _ in range(min(self.arguments.jobs or 1, len(self._files))):
                        workers.create_task(self._work(app, waiting))
        except asyncio.CancelledError:
            self._tell_of_those_left()
            raise
        screen().status("")
        waits = [outcome.file for outcome in self.outcomes if outcome.code == WAITING]
        if waits:
            remark(
                f"calls are waiting in {', '.join(waits)}. Decide on them one chat at a time: "
                "parley respond FILE"
            )
        return worst(*(outcome.code for outcome in self.outcomes))

    async def _work(self, app: App, files: Iterator[str]) -> None:
        """Continue one chat after another until no chat is left."""
        for file in files:
            with about(file):
                self.show(file, "")
                outcome = await self._move_on(app, file)
                self._forget()
                del self._doing[file]
                self.outcomes.append(outcome)
                self.tell(outcome)

    def agent(self, file: str) -> str | None:
        """The agent that the user chose for this chat."""
        agent: str | None = self.arguments.agent
        return agent

    def _forget(self) -> None:
        """Free a chat's memory; if there is only one chat, its memory is freed when the process
        ends.

        After the first chat, exclude the SDKs from garbage collection, because they stay loaded.
        """
        if not self.outcomes:
            gc.freeze()
        gc.collect()

    async def _move_on(self, app: App, file: str) -> ChatOutcome:
        try:
            return await self._answer(app, file)
        except MissingError as error:
            return ChatOutcome(file, MISSING, str(error))
        except ParleyError as error:
            return ChatOutcome(file, FAILED, str(error))
        except Exception as error:  # noqa: BLE001 - the other chats continue
            from traceback import format_exc

            for line in format_exc().splitlines():
                complain(line)
            return ChatOutcome(file, FAILED, f"this is a bug in Parley: {error!r}")

    async def _answer(self, app: App, file: str) -> ChatOutcome:
        from parley.storage.chat_file import FileDocument

        report = _BatchReport(self, file) if not self.arguments.json else _JsonReport(file)
        document = FileDocument(Path(file), on_append=report.text, on_note=remark)
        chosen = {"file": file, "agent": self.agent(file)}
        arguments = argparse.Namespace(**{**vars(self.arguments), **chosen})
        ports = await open_chat(app, arguments, document, file, report)
        await app.models.prepare((await document.read()).transcript, arguments.agent)
        resolve = app.resolve(arguments.agent)
        try:
            if not await check_tools(ports, resolve, arguments):
                return ChatOutcome(file, COMPLETE, "nothing to answer")
            end = await engine.run_turn(ports, resolve)
            await name_topic(app, ports, end)
            if end.kind == "waiting" and arguments.json:
                write_waiting(ports, await engine.observe(ports, resolve), report)
            return ChatOutcome(file, CODES[end.kind], end.message)
        except asyncio.CancelledError:
            if await engine.stopped(ports):
                self._unfinished.append(file)
            raise
        finally:
            with suppress(ParleyError):  # the error is already reported
                await document.settle()

    def show(self, file: str, text: str) -> None:
        """Draw the overall progress, and one chat's status."""
        self._doing[file] = text
        ends = Counter(kind_of(outcome.code) for outcome in self.outcomes if outcome.code)
        through, count = len(self.outcomes), len(self._files)
        filled = _BAR * through // count
        counts = "".join(f", {number} {kind}" for kind, number in ends.items())
        bar = f"[{'#' * filled}{'.' * (_BAR - filled)}] {through} of {count}{counts}"
        screen().status(f"{bar} · {file}{f': {text}' if text else ''}")

    def tell(self, outcome: ChatOutcome) -> None:
        """Report how a chat ended."""
        if outcome.code in (FAILED, STOPPED, MISSING):
            complain(outcome.message)
        elif self.arguments.json and outcome.message:
            remark(outcome.message)
        if self.arguments.json:
            emit("chat_end", code=outcome.code, kind=kind_of(outcome.code))
        elif outcome.code in (COMPLETE, WAITING) and not self.arguments.quiet:
            say_line(f"{outcome.file}: {outcome.message or kind_of(outcome.code)}")

    def _tell_of_those_left(self) -> None:
        files = ", ".join(self._unfinished)
        unfinished = f"; the text so far is in {files}" if files else ""
        complain(f"stopped with {len(self.outcomes)} of {len(self._files)} chats done{unfinished}")


class _BatchReport(Report):
    """Reports one of several chats to people: only its status, because the text is in the file."""

    can_take_back = True

    def __init__(self, batch: Batch, file: str) -> None:
        super().__init__()
        self._batch, self._file = batch, file

    def text(self, piece: str) -> None:
        """Ignore the text, because several answers arrive at once."""

    def status(self, text: str) -> None:
        """Show the status."""
        self._batch.show(self._file, text)
        with about(self._file):
            self._note_wait(text)

    def on_event(self, what: engine.TurnEvent) -> None:
        """Print notes."""
        if isinstance(what, engine.Aside):
            with about(self._file):
                remark(what.text)


class _JsonReport(JsonReport):
    """Reports one of several chats to a program: each line contains the file's path."""

    def __init__(self, file: str) -> None:
        super().__init__()
        self._file = file

    def status(self, text: str) -> None:
        """Report the status."""
        with about(self._file):
            super().status(text)

    def on_event(self, what: engine.TurnEvent) -> None:
        """Report an event."""
        with about(self._file):
            super().on_event(what)
