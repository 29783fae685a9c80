"""`parley ask`: asks a question in a new or existing chat, and prints its answer.

The question is saved in the file before it is sent, so it is never lost. Text from standard input
and files is fenced, so markers and references in this text have no effect.
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
from parley.cli.prompts import prompt_text
from parley.cli.report import Report, SilentReport, report_for
from parley.cli.respond import Work, answering, application, begin, go_on, stopping, work_in_file
from parley.cli.signals import ended_as_by_ctrl_c
from parley.cli.terminal import PIPE, check_agent, complain, emit, piped, remark, screen
from parley.errors import ParleyError
from parley.models.events import Finished, TextDelta
from parley.policy.choice import open_calls
from parley.storage.chat_file import FileDocument
from parley.storage.chats import chat_folder, new_chat, newest_first
from parley.storage.reference_files import NamedPicture
from parley.storage.reference_texts import named_contents, piped_content

if TYPE_CHECKING:
    from parley.runtime.app import App

_NOTHING = "no question. Write it after `parley ask`, or pass it on standard input"


def ask(arguments: argparse.Namespace) -> int:
    """Ask a question in a new or existing chat, and print the answer."""
    screen().is_quiet = arguments.quiet
    question, pictures = question_of(arguments)
    if not question and not pictures and not arguments.prompt:
        complain(_NOTHING)
        return USAGE
    with ended_as_by_ctrl_c():
        return asyncio.run(_ask(arguments, question, pictures))


def question_of(arguments: argparse.Namespace) -> tuple[str, list[NamedPicture]]:
    """The question's text, including its files' text, and its pictures. Raises ParleyError."""
    words = (
        without_blank_edges(" ".join(arguments.question)) if arguments.question != [PIPE] else ""
    )
    content = piped(is_needed=PIPE in (*arguments.contents, *arguments.question))
    contents = [piped_content(content)] if content else []
    if contents and not words and isinstance(contents[0], ReferenceText):
        words, contents = without_blank_edges(contents[0].text), []  # lone text is the question
    contents += named_contents(Path.cwd(), [name for name in arguments.contents if name != PIPE])
    for part in contents:
        if isinstance(part, ReferenceText) and part.kind == "partial":
            remark(f"{part.title}: {part.text}")
    texts = ["\n".join(expansion(_titled(c))) for c in contents if isinstance(c, ReferenceText)]
    text = "\n\n".join(filter(None, [words, *texts]))
    return text, [content for content in contents if isinstance(content, NamedPicture)]


def _titled(content: ReferenceText) -> ReferenceText:
    """The same text, whose title can no longer be read as a reference."""
    return replace(content, title=content.title.replace("@@", "@ @"))


async def _ask(
    arguments: argparse.Namespace, question: str, pictures: Sequence[NamedPicture]
) -> int:
    async with application() as app:
        prompt = await prompt_text(app, arguments) if arguments.prompt else ""
        text = fit("\n\n".join(filter(None, (prompt, question))))
        chat = chat_of(app, arguments)
        arguments.file = str(chat or chat_with(app, arguments, text))
        if screen().as_json:
            emit("chat", file=arguments.file)
        elif not arguments.chat:
            remark(f"the chat is {arguments.file}")
        await put_question(app, arguments, "" if chat is None else text, pictures)
        _take_terminal()
        return await work_in_file(
            app, arguments, work_on(arguments), stopping(arguments), _report()
        )


def chat_of(app: App, arguments: argparse.Namespace) -> Path | None:
    """The chat to continue; None for a new chat. Raises ParleyError."""
    if not arguments.last:
        return Path(arguments.chat) if arguments.chat else None
    folder = chat_folder(app.settings.chat_dir, os.environ)
    for _, path in newest_first(folder):
        return path
    raise ParleyError(f"no chat in {folder}. Ask without --last")


def chat_with(app: App, arguments: argparse.Namespace, question: str) -> Path:
    """Create a chat with this question ("" for none) and the user's agent; returns the file."""
    check_agent(arguments.agent, app.settings)
    keys = {"agent": arguments.agent} if arguments.agent else {}
    text = new_text(Question((Text(question),)) if question else None, keys | _tool_keys(arguments))
    return new_chat(chat_folder(app.settings.chat_dir, os.environ), text)


def _tool_keys(arguments: argparse.Namespace) -> dict[str, str]:
    """The front matter keys for the user's choice of tools."""
    return {"tool_mode": "off"} if arguments.no_tools else {}


async def put_question(
    app: App, arguments: argparse.Namespace, question: str, pictures: Sequence[NamedPicture] = ()
) -> None:
    """Append a question ("" if it is already there) and its pictures to a chat.

    Raises ParleyError if the question could not be sent, or if calls are waiting, because these
    calls would stay undecided.
    """
    document = FileDocument(Path(arguments.file), on_note=remark)
    transcript = (await document.read()).transcript
    begin(
        app, transcript, arguments, question or next((picture.name for picture in pictures), None)
    )
    if transcript.exchanges and open_calls(transcript.exchanges[-1]):
        raise ParleyError(
            f"tool calls are waiting in {arguments.file}. Decide on them first: {go_on(arguments)}"
        )
    with app.ledger(arguments.file).lease():  # fails while another process writes an answer
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
    """Read keys from the terminal even if standard input is a pipe."""
    is_elsewhere = screen().draws and not screen().as_json and not screen().can_ask
    if is_elsewhere and sys.stdin is not None:
        with suppress(OSError):  # there is no terminal
            terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
            os.dup2(terminal, sys.stdin.fileno())
            os.close(terminal)


def _report() -> Report:
    """The report: as for `respond` if a program or a terminal reads it, else only the answer."""
    is_of_answer = not (screen().as_json or screen().is_terminal)
    return AnswerReport() if is_of_answer else report_for(as_json=screen().as_json)


def work_on(arguments: argparse.Namespace) -> Work:
    """The work on the question; if calls are left waiting, the message explains how to continue."""
    answer = answering(arguments)

    async def work(app: App, ports: engine.Ports, report: Report) -> engine.End:
        end = await answer(app, ports, report)
        if end.kind == "waiting" and not end.message:
            return replace(
                end, message=f"tool calls are waiting for your choice: {go_on(arguments)}"
            )
        return end

    return work


class AnswerReport(SilentReport):
    """The report for a pipe: only the answer's text."""

    can_take_back = False

    def __init__(self) -> None:
        super().__init__()
        self._text = AnswerText()

    def on_event(self, what: engine.TurnEvent) -> None:
        """Write the answer's text as it arrives."""
        match what:
            case TextDelta(text):
                screen().stream(self._text.feed(text))
            case Finished():
                self._text.end_reply()
            case engine.CallBegan(proposal) if proposal.ran_by:
                screen().stream(self._text.end_text())
            case _:
                super().on_event(what)

    def end(self, end: engine.End) -> None:
        """Report how the turn ended."""
        screen().stream(self._text.end())
        super().end(end)
