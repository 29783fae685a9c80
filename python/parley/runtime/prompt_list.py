"""All prompts in one list: the user's files, the project's files, and the servers' prompts.

A file's text can be used only when the user has agreed to it; `needs_trust` says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from parley.chat.grammar import fit
from parley.chat.transcript import is_blank
from parley.errors import ParleyError
from parley.frozen import frozen
from parley.mcp.servers import Servers
from parley.storage.prompt_folders import OfferedPrompt, PromptFolders
from parley.tools.prompts import Prompt, PromptArgument


@frozen
class PromptEntry:
    """A prompt by the name that the user types: `name` for a file, `server/name` for a server."""

    name: str
    description: str
    arguments: tuple[PromptArgument, ...]
    source: OfferedPrompt | Prompt

    @property
    def file(self) -> OfferedPrompt | None:
        """The prompt's file; None if a server offers the prompt."""
        return self.source if isinstance(self.source, OfferedPrompt) else None

    @property
    def needs_trust(self) -> bool:
        """Whether the user has not agreed to the text of a project's file."""
        return self.file is not None and not self.file.is_trusted

    @property
    def agent(self) -> str:
        """The agent that the prompt names; "" for none."""
        return self.file.prompt.agent if self.file else ""

    @property
    def unset(self) -> list[PromptArgument]:
        """The arguments for which Parley asks the user."""
        return [argument for argument in self.arguments if argument.required]

    def values(self, words: Sequence[str]) -> dict[str, str]:
        """The arguments from words such as name=value. Raises ParleyError for unknown names."""
        known = [argument.name for argument in self.arguments]
        pairs = [word.partition("=") for word in words]
        if wrong := [name for name, sign, _ in pairs if not sign or name not in known]:
            takes = ", ".join(f"{name}=..." for name in known) or "no arguments"
            raise ParleyError(
                f"the prompt {self.name} does not accept {wrong[0]}. It accepts {takes}"
            )
        return {name: value for name, _, value in pairs}


class PromptList:
    """The prompts as they are now."""

    def __init__(self, folders: PromptFolders, servers: Servers) -> None:
        self.folders = folders
        self._servers = servers

    def files(self) -> list[PromptEntry]:
        """The prompts in files, without starting any server."""
        return [_of_file(prompt) for prompt in self.folders.look()[0]]

    async def all(self, *, starting: bool = True) -> list[PromptEntry]:
        """Every prompt, the files first. Starts the servers, or asks only the running ones."""
        prompts = await self._servers.prompts(starting=starting)
        return [*self.files(), *map(_of_server, prompts)]

    async def named(self, name: str) -> PromptEntry:
        """The prompt with this name; a server's prompt needs its server's name only if the rest is
        ambiguous. Raises ParleyError.
        """
        if prompt := self.folders.named(name):
            return _of_file(prompt)
        entries = await self.all()
        matches = [e for e in entries if e.name == name] or [
            e for e in entries if isinstance(e.source, Prompt) and e.source.name == name
        ]
        if len(matches) == 1:
            return matches[0]
        known = ", ".join(entry.name for entry in matches or entries)
        hint = f"choose one of {known}" if known else "none is offered"
        raise ParleyError(
            f"there {'are several prompts' if matches else 'is no prompt'} {name}: {hint}"
        )

    async def at_slash(self, name: str) -> PromptEntry | None:
        """The prompt that `/name` means in a question; None if the question is plain text. Starts
        servers only if the name begins with the name of a server.
        """
        if prompt := self.folders.named(name):
            return _of_file(prompt)
        server, sign, _ = name.partition("/")
        if not sign or server not in {status.name for status in self._servers.status()}:
            return None
        return next((entry for entry in await self.all() if entry.name == name), None)

    async def text(self, entry: PromptEntry, values: Mapping[str, str]) -> str:
        """The text for a question. Raises ParleyError."""
        if entry.needs_trust:
            raise ParleyError(f"{entry.name}: you have not agreed to this project's prompt")
        if entry.file:
            text = entry.file.usable().text(values)
        else:
            assert isinstance(entry.source, Prompt), "it is a server's prompt"
            text = await self._servers.get_prompt(entry.source.server, entry.source.name, values)
        lines = fit(text).split("\n")
        if not (text := "\n".join(lines[_blanks(lines) : len(lines) - _blanks(lines[::-1])])):
            raise ParleyError(f"the prompt {entry.name} has no text")
        return text


def _of_file(prompt: OfferedPrompt) -> PromptEntry:
    arguments = tuple(
        PromptArgument(a.name, a.description, a.required) for a in prompt.prompt.arguments
    )
    return PromptEntry(prompt.name, prompt.flaw or prompt.prompt.description, arguments, prompt)


def _of_server(prompt: Prompt) -> PromptEntry:
    name = f"{prompt.server}/{prompt.name}"
    return PromptEntry(name, prompt.description or prompt.title, prompt.arguments, prompt)


def _blanks(lines: Sequence[str]) -> int:
    """How many blank lines precede the text."""
    return next((number for number, line in enumerate(lines) if not is_blank(line)), len(lines))
