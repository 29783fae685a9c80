"""Puts a prompt into a chat as its question: from a file of the user or the project, or from a
server.

Knows in which order to ask the user: to trust a project's prompt, for its arguments, and for its
agent. `chat.edits` knows where a question is in a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from parley import engine
from parley.chat.edits import Edit, first_words, put_question, replace_first_line
from parley.chat.transcript import Question
from parley.errors import ParleyError
from parley.instructions.prompt_files import SlashCommand, slash_command
from parley.nvim.chat_buffer import ChatBuffer
from parley.nvim.dialogs import Dialogs
from parley.nvim.document import BufferDocument
from parley.nvim.editor import Editor
from parley.nvim.trust_dialog import TrustDialog
from parley.runtime.app import App
from parley.runtime.prompt_list import PromptEntry
from parley.settings.readiness import no_such_agent
from parley.text import one_line
from parley.tools.forms import TEXT_SHOWN

READ_FIRST = "the text of {} is in the question. Read it, then press again to ask"
_NOT_TRUSTED = "(not trusted yet)"


class PromptChat(Protocol):
    """The chat that receives a prompt."""

    buffer: ChatBuffer

    async def change(self, handle: int, change: engine.Change) -> None:
        """Change the text, as one undo step."""
        ...

    def choose_agent(self, name: str, *, stays: bool) -> None:
        """Use this agent while the chat is open."""
        ...


class PromptInsertion:
    """Inserts prompts into the chats of one editor."""

    def __init__(
        self, editor: Editor, dialogs: Dialogs, app: Callable[[], App], trust: TrustDialog
    ) -> None:
        self._editor = editor
        self._dialogs = dialogs
        self._app = app
        self._trust = trust
        self._of_servers = list[PromptEntry]()
        """The servers' prompts as last listed, because the servers may be slow to list them again.
        """

    async def insert(self, chat: PromptChat, handle: int, words: Sequence[str]) -> None:
        """Put a prompt into the question at a handle; `words` are the prompt's name, followed by
        name=value for each argument.

        Asks the user for missing arguments; if the user dismisses a prompt for one, nothing
        changes. Raises ParleyError.
        """
        prompts = self._app().prompts
        entry = await prompts.named(words[0]) if words else await self._picked(await prompts.all())
        if entry is None or (text := await self._text(entry, entry.values(words[1:]))) is None:
            return
        await chat.change(handle, lambda shot: _put(shot, text))
        await self._offer_agent(chat, entry)

    async def expand(self, chat: PromptChat, document: BufferDocument) -> engine.End | None:
        """Replace `/name` at the beginning of a question by the prompt's text, if there is one.

        Returns the turn's end if the question must not be asked now, else None.
        """
        shot = await document.look()
        command = _command(shot)
        entry = command and await self._app().prompts.at_slash(command.name)
        if not command or not entry:
            return None
        values, rest = command.values([argument.name for argument in entry.arguments])
        text = await self._text(entry, values)
        if text is None:
            return engine.End("nothing")
        whole = f"{text}\n\n{rest}" if rest else text
        await document.change(lambda now: _replaced(now, command, whole))
        await self._offer_agent(chat, entry)
        if entry.file is None:
            return engine.End("nothing", READ_FIRST.format(entry.name))
        return None

    async def list(self, *, starting: bool) -> None:
        """Tell the editor the names of the prompts and of their arguments, to complete: those of
        files at once, those of servers later. Starts the servers, or asks only the running ones.
        """
        files = self._app().prompts.files()
        self._tell([*files, *self._of_servers], is_all=False)
        entries = await self._app().prompts.all(starting=starting)
        self._of_servers = [entry for entry in entries if entry.file is None]
        self._tell(entries, is_all=starting)

    def _tell(self, entries: Sequence[PromptEntry], *, is_all: bool) -> None:
        rows = [
            {
                "name": entry.name,
                "about": one_line(entry.description, TEXT_SHOWN),
                "arguments": [a.name for a in entry.arguments if a.name.isprintable()],
            }
            for entry in entries
            if entry.name.isprintable()
        ]
        self._editor.tell("prompts", rows, is_all)

    async def _picked(self, entries: Sequence[PromptEntry]) -> PromptEntry | None:
        if not entries:
            raise ParleyError(
                "there are no prompts. Write one into the prompts folder: see :help parley-prompts"
            )
        number = await self._dialogs.select("Prompt", [_item(entry) for entry in entries])
        return None if number is None else entries[number]

    async def _text(self, entry: PromptEntry, values: Mapping[str, str]) -> str | None:
        """The prompt's text; None if the user does not agree to it, or dismisses an argument."""
        if entry.file:
            entry.file.usable()
        if entry.needs_trust:
            trusted = await self._agreed(entry)
            if trusted is None:
                return None
            entry = trusted
        values = dict(values)
        for argument in entry.unset:
            if argument.name not in values:
                about = one_line(argument.description, TEXT_SHOWN)
                typed = await self._dialogs.input(
                    f"{argument.name} ({about}):" if about else f"{argument.name}:"
                )
                if typed is None:
                    return None
                values[argument.name] = typed
        return await self._app().prompts.text(entry, values)

    async def _agreed(self, entry: PromptEntry) -> PromptEntry | None:
        """The entry, when the user has agreed to the file's content as read; None if not."""
        app, file = self._app(), entry.file
        assert file is not None, "a server's prompt needs no trust"
        await self._trust.agree([app.prompts.folders.offered(file)], app.text_trust, again=True)
        if not app.text_trust.trusts(file.path, file.content):
            return None
        return replace(entry, source=replace(file, is_trusted=True))

    async def _offer_agent(self, chat: PromptChat, entry: PromptEntry) -> None:
        """Use the agent that a prompt asks for: at once for the user's own prompt, and after a yes
        for a project's.
        """
        wish, file = entry.agent, entry.file
        if not wish or file is None or wish == chat.buffer.agent.name:
            return
        if wish not in self._app().agents():
            if not file.is_shared:
                problem = no_such_agent(wish, self._app().settings)
                self._editor.message(f"{entry.name}: {problem}", "warn")
            return
        if file.of_project:
            question = f"This project's prompt {entry.name} asks for the agent {wish}. Use it here?"
            answers = ["No", f"Yes, {wish} answers in this chat"]
            if await self._dialogs.select(question, answers) != 1:
                return
        chat.choose_agent(wish, stays=False)


def _item(entry: PromptEntry) -> str:
    """A prompt in the list."""
    mark = f"  {_NOT_TRUSTED}" if entry.needs_trust else ""
    about = one_line(entry.description, TEXT_SHOWN)
    return f"{one_line(entry.name, TEXT_SHOWN)}{mark}  {about}".rstrip()


def _question(shot: engine.Snapshot) -> Question | None:
    """The current question, if it has no answer yet."""
    return shot.exchange.question if not shot.exchange.answers else None


def _command(shot: engine.Snapshot) -> SlashCommand | None:
    question = _question(shot)
    place = question and first_words(shot.lines, question)
    return slash_command(place[1]) if place else None


def _put(shot: engine.Snapshot, text: str) -> list[Edit]:
    return [put_question(shot.lines, shot.transcript, shot.at, text)]


def _replaced(shot: engine.Snapshot, command: SlashCommand, text: str) -> list[Edit]:
    question = _question(shot)
    if question is None or _command(shot) != command:
        raise ParleyError("the question has changed while its prompt was prepared. Ask again")
    return [replace_first_line(shot.lines, question, text)]
