"""Puts a server's prompt into a chat as its question: the user chooses the prompt, fills it in and
reads it before asking.

Knows in which order to ask the user; `chat.edits` knows where a question is in a file.
"""

from __future__ import annotations

from collections.abc import Sequence

from parley import engine
from parley.chat.edits import Edit, put_question
from parley.chat.grammar import fit
from parley.chat.transcript import is_blank
from parley.errors import ParleyError
from parley.mcp.servers import Servers
from parley.nvim.chat import Chat
from parley.nvim.dialogs import Dialogs
from parley.nvim.editor import Editor
from parley.text import one_line
from parley.tools.forms import TEXT_SHOWN
from parley.tools.prompts import Prompt


async def insert_prompt(
    servers: Servers, dialogs: Dialogs, chat: Chat, handle: int, words: Sequence[str]
) -> None:
    """Put a prompt into the question at a handle; `words` are the prompt's name, followed by
    name=value for each argument.

    Asks the user for missing arguments; if the user dismisses a prompt for one, nothing changes.
    Raises ParleyError.
    """
    prompts = await servers.prompts()
    prompt = named(prompts, words[0]) if words else await _picked(prompts, dialogs)
    if prompt is None:
        return
    values = arguments(prompt, words[1:])
    for argument in prompt.arguments:
        if argument.required and argument.name not in values:
            about = (
                f" ({one_line(argument.description, TEXT_SHOWN)})" if argument.description else ""
            )
            typed = await dialogs.input(f"{argument.name}{about}:")
            if typed is None:
                return
            values[argument.name] = typed
    lines = fit(await servers.get_prompt(prompt.server, prompt.name, values)).split("\n")
    text = "\n".join(lines[_blanks(lines) : len(lines) - _blanks(lines[::-1])])
    if not text:
        raise ParleyError(f"the prompt {full_name(prompt)} has no text")
    await chat.change(handle, lambda shot: _put(shot, text))


async def list_prompts(editor: Editor, servers: Servers) -> None:
    """Tell the editor the names of the servers' prompts and of their arguments, to complete."""
    names = {full_name(p): [a.name for a in p.arguments] for p in await servers.prompts()}
    named = {n: [a for a in arguments if a.isprintable()] for n, arguments in names.items()}
    editor.tell("prompts", {n: a for n, a in named.items() if n.isprintable()})


def _blanks(lines: Sequence[str]) -> int:
    """How many blank lines precede the text."""
    return next((number for number, line in enumerate(lines) if not is_blank(line)), len(lines))


async def _picked(prompts: Sequence[Prompt], dialogs: Dialogs) -> Prompt | None:
    if not prompts:
        raise ParleyError("no MCP server offers a prompt. See :ParleyTools")
    items = [
        (
            f"{one_line(full_name(p), TEXT_SHOWN)}  "
            f"{one_line(p.description or p.title, TEXT_SHOWN)}"
        ).rstrip()
        for p in prompts
    ]
    number = await dialogs.select("Prompt", items)
    return None if number is None else prompts[number]


def full_name(prompt: Prompt) -> str:
    """The prompt's name in `:ParleyPrompt`."""
    return f"{prompt.server}/{prompt.name}"


def named(prompts: Sequence[Prompt], name: str) -> Prompt:
    """The prompt with this name, which may include the server's name. Raises ParleyError."""
    matches = [p for p in prompts if full_name(p) == name] or [p for p in prompts if p.name == name]
    if len(matches) == 1:
        return matches[0]
    known = ", ".join(full_name(p) for p in matches or prompts) or "none is offered"
    raise ParleyError(
        f"there {'are several prompts' if matches else 'is no prompt'} {name}: {known}"
    )


def arguments(prompt: Prompt, words: Sequence[str]) -> dict[str, str]:
    """The arguments from words such as name=value. Raises ParleyError for unknown names."""
    known = [argument.name for argument in prompt.arguments]
    pairs = [word.partition("=") for word in words]
    if wrong := [name for name, sign, _ in pairs if not sign or name not in known]:
        takes = ", ".join(f"{name}=..." for name in known) or "nothing"
        raise ParleyError(f"the prompt {full_name(prompt)} accepts {takes}, not {wrong[0]}")
    return {name: value for name, _, value in pairs}


def _put(shot: engine.Snapshot, text: str) -> list[Edit]:
    return [put_question(shot.lines, shot.transcript, shot.at, text)]
