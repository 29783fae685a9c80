"""`parley ask`: a question in a new chat, or at the end of one, and its answer on standard output.

The question is in the file before anything is asked: whatever ends the command, it is not lost. What comes
from standard input and files stands between fences, and nothing in it counts as anything else.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from parley import engine
from parley.chat.answer_text import AnswerText
from parley.chat.edits import Edit, add_question
from parley.chat.grammar import fit
from parley.chat.head import put_value
from parley.chat.new import new_text
from parley.chat.references import ReferenceText, expansion
from parley.chat.transcript import Attachment, Question, Text, without_blank_edges
from parley.cli.exits import USAGE
from parley.cli.report import Report, SilentReport, report_for
from parley.cli.respond import Work, answering, application, begin, go_on, stopping, work_in_file
from parley.cli.signals import ended_as_by_ctrl_c
from parley.cli.terminal import PIPE, check_agent, complain, emit, piped, remark, screen
from parley.errors import ParleyError
from parley.models.events import Finished, TextDelta
from parley.policy.choice import open_calls
from parley.storage.chat_file import FileDocument
from parley.storage.chats import chat_folder, new_chat, newest_first
from parley.storage.references import Picture, named_contents, piped_content

if TYPE_CHECKING:
    from parley.runtime.app import App

_NOTHING = "no question: write it after `parley ask`, or to its standard input"


def ask(arguments: argparse.Namespace) -> int:
    """Ask a question in a new or existing chat, and print the answer."""
    screen().is_quiet = arguments.quiet
    question, pictures = _question(arguments)
    if not question and not pictures:
        complain(_NOTHING)
        return USAGE
    with ended_as_by_ctrl_c():
        return asyncio.run(_ask(arguments, question, pictures))


def _question(arguments: argparse.Namespace) -> tuple[str, list[Picture]]:
    """The text of the question, with that of files in it, and its pictures. Raises ParleyError."""
    words = without_blank_edges(" ".join(arguments.question)) if arguments.question != [PIPE] else ""
    content = piped(is_needed=PIPE in (*arguments.contents, *arguments.question))
    contents = [piped_content(content)] if content else []
    if contents and not words and isinstance(contents[0], ReferenceText):
        words, contents = without_blank_edges(contents[0].text), []  # what comes alone is the question
    contents += named_contents(Path.cwd(), [name for name in arguments.contents if name != PIPE])
    for part in contents:
        if isinstance(part, ReferenceText) and part.kind == "partial":
            remark(f"{part.title}: {part.text}")
    texts = ["\n".join(expansion(_titled(c))) for c in contents if isinstance(c, ReferenceText)]
    text = "\n\n".join(filter(None, [words, *texts]))
    return text, [content for content in contents if isinstance(content, Picture)]


def _titled(content: ReferenceText) -> ReferenceText:
    """The same text, with a title that is no reference."""
    return replace(content, title=content.title.replace("@@", "@ @"))


async def _ask(arguments: argparse.Namespace, question: str, pictures: Sequence[Picture]) -> int:
    async with application() as app:
        text = fit(question)
        chat = chat_of(app, arguments)
        arguments.file = str(chat or chat_with(app, arguments, text))
        if screen().as_json:
            emit("chat", file=arguments.file)
        elif not arguments.chat:
            remark(f"the chat is {arguments.file}")
        await put_question(app, arguments, "" if chat is None else text, pictures)
        _take_terminal()
        return await work_in_file(app, arguments, work_on(arguments), stopping(arguments), _report())


def chat_of(app: App, arguments: argparse.Namespace) -> Path | None:
    """The chat to go on in, None for a new one. Raises ParleyError."""
    if not arguments.last:
        return Path(arguments.chat) if arguments.chat else None
    folder = chat_folder(app.settings.chat_dir, os.environ)
    for _, path in newest_first(folder):
        return path
    raise ParleyError(f"no chat in {folder}. Ask without --last")


def chat_with(app: App, arguments: argparse.Namespace, question: str) -> Path:
    """The file of a new chat in which this is asked, "" for nothing yet, and who is to answer."""
    check_agent(arguments.agent, app.settings)
    keys = {"agent": arguments.agent} if arguments.agent else {}
    text = new_text(Question((Text(question),)) if question else None, keys | _tool_keys(arguments))
    return new_chat(chat_folder(app.settings.chat_dir, os.environ), text)


def _tool_keys(arguments: argparse.Namespace) -> dict[str, str]:
    """What the front matter says of tools, if the user says something."""
    return {"tool_mode": "off"} if arguments.no_tools else {}


async def put_question(
    app: App, arguments: argparse.Namespace, question: str, pictures: Sequence[Picture] = ()
) -> None:
    """Write a question, "" for one that is there, and its pictures below all that a chat has.

    Raises ParleyError where it would not be asked, and where calls wait: they would stay without a choice.
    """
    document = FileDocument(Path(arguments.file), on_note=remark)
    transcript = (await document.read()).transcript
    begin(app, transcript, arguments, question or next((picture.name for picture in pictures), None))
    if transcript.exchanges and open_calls(transcript.exchanges[-1]):
        raise ParleyError(
            f"tool calls are waiting in {arguments.file}. Decide on them first: {go_on(arguments)}"
        )
    with app.ledger(arguments.file).lease():  # below an answer that is being written is no place
        attachments = app.attachments(arguments.file)
        saved = [await attachments.save(picture.content, picture.kind) for picture in pictures]
        contents: list[str | Attachment] = [*([question] if question else []), *saved]
        for content in contents:
            await document.change(partial(_below, content))
        for key, value in _tool_keys(arguments).items():
            await document.change(partial(_above, key, value))


def _below(content: str | Attachment, shot: engine.Snapshot) -> list[Edit]:
    return [add_question(shot.lines, shot.transcript, content)]


def _above(key: str, value: str, shot: engine.Snapshot) -> list[Edit]:
    return put_value(shot.lines, shot.transcript, key, value)


def _take_terminal() -> None:
    """Let a person at the terminal be asked, though what was asked came another way."""
    is_elsewhere = screen().draws and not screen().as_json and not screen().can_ask
    if is_elsewhere and sys.stdin is not None:
        with suppress(OSError):  # nobody sits there
            terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
            os.dup2(terminal, sys.stdin.fileno())
            os.close(terminal)


def _report() -> Report:
    """The report to a program or to a person at a terminal as `respond` has it; else the answer alone."""
    is_of_answer = not (screen().as_json or screen().is_terminal)
    return AnswerReport() if is_of_answer else report_for(as_json=screen().as_json)


def work_on(arguments: argparse.Namespace) -> Work:
    """The work on the question; where calls wait, it says how to go on."""
    answer = answering(arguments)

    async def work(app: App, ports: engine.Ports, report: Report) -> engine.End:
        end = await answer(app, ports, report)
        if end.kind == "waiting" and not end.message:
            return replace(end, message=f"tool calls are waiting for your choice: {go_on(arguments)}")
        return end

    return work


class AnswerReport(SilentReport):
    """The report into a pipe: the text of the answer and nothing else."""

    def __init__(self) -> None:
        super().__init__()
        self._text = AnswerText()

    def on_event(self, what: engine.TurnEvent) -> None:
        """Write the text of the answer as it comes."""
        match what:
            case TextDelta(text):
                screen().stream(self._text.feed(text))
            case Finished():
                self._text.end_reply()
            case _:
                super().on_event(what)

    def end(self, end: engine.End) -> None:
        """Say how it ended."""
        screen().stream(self._text.end())
        super().end(end)
