"""`parley chat`: a conversation in the terminal, kept in a file.

A question is saved in the file before it is sent. Each turn reads the file again and thus includes
an editor's changes. Nothing else runs in this process while the user types.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from parley import engine
from parley.chat.grammar import MARKERS, fit
from parley.chat.reader import parse
from parley.chat.rounds import last_notice
from parley.chat.transcript import Transcript, without_blank_edges
from parley.cli.ask import chat_of, chat_with, put_question, work_on
from parley.cli.exits import COMPLETE, CTRL_C, USAGE
from parley.cli.external_editor import open_editor
from parley.cli.keyboard import forget_typed
from parley.cli.prompts import typed_prompt
from parley.cli.report import report_for
from parley.cli.respond import application, work_in_file
from parley.cli.signals import handlers
from parley.cli.terminal import check_agent, complain, remark, say, screen
from parley.errors import ParleyError
from parley.policy.choice import open_calls
from parley.storage.chats import remove_unchanged
from parley.storage.content import text_of
from parley.text import visible

if TYPE_CHECKING:
    from parley.runtime.app import App

_PROMPT, _MORE = f"{MARKERS['question']} ", "... "
_QUOTES = '"""'
_NO_TERMINAL = "chat needs a terminal. Without one, use `parley ask`"
_HELP = f"""\
/help           show this list
/edit           edit the chat in your editor, then ask its new question
/go             continue with waiting calls or a stopped answer
/again [NAME]   regenerate the last answer, with this agent
/agent [NAME]   choose who answers from now on, or list the agents
/file           show this chat's file
/quit           quit, like Ctrl-D
/NAME [TEXT]    ask with the prompt NAME; `parley prompts` lists the prompts

Put a multi-line question between {_QUOTES} and {_QUOTES}, or paste it.
To ask a question that starts with /, put a space before it.
Ctrl-C stops an answer; the answers so far are in the file."""


def chat(arguments: argparse.Namespace) -> int:
    """Talk in the terminal; the conversation is kept in a file."""
    if not (screen().is_terminal and screen().can_ask):
        complain(_NO_TERMINAL)
        return USAGE
    arguments.go_on = "/go"
    screen().is_conversation = True
    with asyncio.Runner() as runner, _Conversation(arguments, runner) as conversation:
        return conversation.run()


class _Conversation:
    """Typed questions and their answers, in one file."""

    def __init__(self, arguments: argparse.Namespace, runner: asyncio.Runner) -> None:
        self._arguments = arguments
        self._run = runner.run
        self._stack = AsyncExitStack()
        self._app: App
        self._is_over, self._code = False, COMPLETE
        self._new = ""
        """The initial text of a new chat."""

    def __enter__(self) -> _Conversation:
        self._app = self._run(self._stack.enter_async_context(application()))
        try:
            self._open()
        except BaseException:
            self._run(self._stack.aclose())
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._stack.aclose())
        if self._new:
            remove_unchanged(Path(self._arguments.file), self._new)

    def _open(self) -> None:
        """Find the chat, or create one. Raises ParleyError."""
        path = chat_of(self._app, self._arguments)
        if path is None:
            path = chat_with(self._app, self._arguments, "")
            self._new = text_of(path)
        check_agent(self._arguments.agent, self._app.settings)
        self._arguments.file = str(path)
        agent = self._app.agent_name(self._transcript(), self._arguments.agent)
        remark(f"{agent} answers; the chat is {path}")
        remark("/help lists the commands; Ctrl-D ends the conversation")
        if rest := _unfinished(self._transcript()):
            remark(f"{rest}. /go continues the chat")

    def _transcript(self) -> Transcript:
        """The chat, as its file is now. Raises ParleyError."""
        return parse(text_of(Path(self._arguments.file)))

    def run(self) -> int:
        """Read and answer questions until the user ends the conversation; returns the exit code."""
        _prepare_line([e.question.text for e in self._transcript().exchanges if e.question])
        with handlers(dict.fromkeys((signal.SIGTERM, signal.SIGHUP), self._end)):
            while not self._is_over:
                try:
                    text, is_command = _typed()
                    if is_command:
                        self._obey(*text.partition(" "))
                    elif text:
                        self._run(put_question(self._app, self._arguments, fit(text)))
                        self._answer()
                except ParleyError as error:
                    complain(str(error))
                except KeyboardInterrupt:
                    say("")
                except EOFError:
                    say("")
                    self._is_over = True
                screen().has_failure = False  # reported: the conversation continues
        return self._code

    def _obey(self, word: str, _: str, rest: str) -> None:
        """Run a command. Raises ParleyError."""
        match word, rest.strip():
            case ("/quit", ""):
                self._is_over = True
            case ("/help", ""):
                say(_HELP)
            case ("/file", ""):
                say(self._arguments.file)
            case ("/go", ""):
                self._answer()
            case ("/again", name):
                check_agent(name, self._app.settings)
                self._answer(again=True, agent=name or self._arguments.agent)
            case ("/edit", ""):
                open_editor(Path(self._arguments.file), os.environ)
                if not self._is_over and _is_unanswered(self._transcript()):
                    self._answer()
            case ("/agent", name):
                self._choose_agent(name)
            case _:
                what = f"{word} {rest}".strip()
                if text := self._run(typed_prompt(self._app, self._arguments, what)):
                    self._run(put_question(self._app, self._arguments, fit(text)))
                    self._answer()
                    return
                raise ParleyError(
                    f"unknown command {what}: /help lists the commands. "
                    "To ask it as a question, start the line with a space"
                )

    def _answer(self, **options: object) -> None:
        """Continue the chat, with these options of `respond`."""
        arguments = argparse.Namespace(**{**vars(self._arguments), **options})
        report = report_for(as_json=False)
        try:
            self._run(work_in_file(self._app, arguments, work_on(arguments), _stopped, report))
        finally:
            forget_typed(sys.stdin.fileno())  # input typed during the answer is not a question
        say("")

    def _choose_agent(self, name: str) -> None:
        """Switch to another agent, or list the agents if no name is given. Raises ParleyError."""
        check_agent(name, self._app.settings)
        self._arguments.agent = name or self._arguments.agent
        current = self._app.agent_name(self._transcript(), self._arguments.agent)
        say(
            current
            if name
            else "\n".join(f"{'*' if a == current else ' '} {a}" for a in self._app.agents())
        )

    def _end(self, *_: object) -> None:
        """End the conversation after a signal that ends programs; stop an answer like Ctrl-C."""
        self._is_over, self._code = True, CTRL_C
        signal.raise_signal(signal.SIGINT)


async def _stopped(ports: engine.Ports) -> str:
    await engine.stopped(ports)
    return "stopped. /go continues the answer"


def _typed() -> tuple[str, bool]:
    """Read a line, or the lines between quotes; returns them, and whether they are a command."""
    line = input(_PROMPT)
    if not line.startswith(_QUOTES):
        return line.strip(), line.startswith("/")
    text = line.removeprefix(_QUOTES)
    while not text.rstrip().endswith(_QUOTES):
        text += f"\n{input(_MORE)}"
    return without_blank_edges(text.rstrip().removesuffix(_QUOTES)), False


def _prepare_line(questions: Sequence[str]) -> None:
    """Use the chat's questions as the line history, and read pasted text as one line.

    Without readline, Python can do neither. Bytes that are not text do not end the conversation.
    """
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="surrogateescape")
    with suppress(ImportError):
        import readline

        readline.parse_and_bind("set enable-bracketed-paste on")  # Python disables it
        for question in questions:
            if "\n" not in question and visible(question) == question:  # not escaped by readline
                readline.add_history(question)


def _is_unanswered(transcript: Transcript) -> bool:
    """Whether there is a last question without an answer."""
    *_, last = transcript.exchanges or (None,)
    return (
        last is not None
        and not last.answers
        and last.question is not None
        and bool(last.question.parts)
    )


def _unfinished(transcript: Transcript) -> str:
    """A sentence about the unfinished part of a chat; "" if there is none."""
    *_, last = transcript.exchanges or (None,)
    if _is_unanswered(transcript):
        return "the last question has no answer"
    if last and open_calls(last):
        return "tool calls are waiting for your choice"
    answers = [e.answers[-1] for e in transcript.exchanges[-2:] if e.answers]
    return "the last answer is not complete" if answers and last_notice(answers[-1]) else ""
