"""`parley prompts` and `parley skills`: lists both; `parley ask --prompt` begins with a prompt."""

from __future__ import annotations

import argparse
import asyncio
import shlex
from typing import TYPE_CHECKING

from parley.cli.exits import COMPLETE
from parley.cli.show import onlooker
from parley.cli.terminal import complain, emit, remark, say_line, screen
from parley.errors import ParleyError
from parley.instructions.prompt_files import slash_command
from parley.text import one_line

if TYPE_CHECKING:
    from parley.runtime.app import App
    from parley.runtime.prompt_list import PromptEntry
    from parley.storage.skill_folders import SkillFolder

_MOST_SHOWN = 200
_UNTRUSTED = "not trusted"


def prompts(arguments: argparse.Namespace) -> int:
    """List the prompts for questions, and which of this project's you have not trusted."""
    return asyncio.run(_prompts(arguments))


async def _prompts(arguments: argparse.Namespace) -> int:
    async with onlooker() as app:
        known = app.prompts
        entries = await known.all() if arguments.servers else known.files()
        for problem in known.folders.look()[1]:
            complain(problem)
    for entry in entries:
        if arguments.json:
            emit("prompt", **_facts(entry))
        else:
            say_line(_line(entry.name, entry.description, is_trusted=not entry.needs_trust))
    return COMPLETE


def _facts(entry: PromptEntry) -> dict[str, object]:
    return {
        "name": entry.name,
        "description": entry.description,
        "arguments": [
            {"name": a.name, "description": a.description, "required": a.required}
            for a in entry.arguments
        ],
        "agent": entry.agent,
        "path": str(entry.file.path) if entry.file else None,
        "trusted": not entry.needs_trust,
    }


def _line(name: str, description: str, *, is_trusted: bool) -> str:
    """An entry on a line; its name ends at two spaces, for the completion scripts."""
    about = description if is_trusted else f"({_UNTRUSTED}) {description}"
    return f"{one_line(name)}  {one_line(about, _MOST_SHOWN)}".rstrip()


def skills(arguments: argparse.Namespace) -> int:
    """List the skills that models may read, and which of this project's you have not trusted."""
    return asyncio.run(_skills(arguments))


async def _skills(arguments: argparse.Namespace) -> int:
    async with onlooker() as app:
        folders = app.skills
        rows = [
            *((s, True) for s in folders.skills.values()),
            *((s, False) for s in folders.untrusted),
        ]
        for problem in folders.problems:
            complain(problem.removeprefix("parley: "))
    for row, is_trusted in sorted(rows, key=lambda row: row[0].skill.name):
        if arguments.json:
            emit("skill", **_skill_facts(row, is_trusted=is_trusted))
        else:
            say_line(_line(row.skill.name, row.skill.description, is_trusted=is_trusted))
    return COMPLETE


def _skill_facts(row: SkillFolder, *, is_trusted: bool) -> dict[str, object]:
    return {
        "name": row.skill.name,
        "description": row.skill.description,
        "path": str(row.folder),
        "trusted": is_trusted,
    }


async def prompt_text(app: App, arguments: argparse.Namespace) -> str:
    """The text of the prompt that the command names; sets the agent that the user's own prompt asks
    for. Raises ParleyError.
    """
    entry = await app.prompts.named(arguments.prompt)
    return await _text(app, arguments, entry, entry.values(arguments.values))


async def typed_prompt(app: App, arguments: argparse.Namespace, line: str) -> str | None:
    """The text of the prompt that a typed line `/name ...` means, followed by the line's rest; None
    if there is no such prompt. Raises ParleyError.
    """
    command = slash_command(line)
    entry = command and await app.prompts.at_slash(command.name)
    if not command or not entry:
        return None
    values, rest = command.values([argument.name for argument in entry.arguments])
    text = await _text(app, arguments, entry, values)
    return f"{text}\n\n{rest}" if rest else text


async def _text(
    app: App, arguments: argparse.Namespace, entry: PromptEntry, values: dict[str, str]
) -> str:
    if entry.file:
        entry.file.usable()
    if entry.needs_trust and entry.file:
        raise ParleyError(
            f"{entry.file.path} is a prompt of this project that you have not trusted. Read it, "
            f"then run: parley trust {shlex.quote(str(entry.file.path))}"
        )
    for argument in entry.unset:
        if argument.name not in values:
            values[argument.name] = _argument(entry, argument.name, argument.description)
    _take_agent(app, entry, arguments)
    text = await app.prompts.text(entry, values)
    return text if entry.file else text.replace("@@", "@ @")  # a server must not include files


def _argument(entry: PromptEntry, name: str, description: str) -> str:
    if not screen().can_ask:
        raise ParleyError(f"the prompt {entry.name} needs {name}. Pass --argument {name}=VALUE")
    about = f" ({one_line(description, _MOST_SHOWN)})" if description else ""
    return screen().line(f"{one_line(name)}{about}: ")


def _take_agent(app: App, entry: PromptEntry, arguments: argparse.Namespace) -> None:
    """Use the agent that a prompt asks for, unless the command names one. Raises ParleyError if the
    prompt is a project's: it must not choose who reads the question.
    """
    wish, file = entry.agent, entry.file
    if not wish or file is None or arguments.agent:
        return
    if wish not in app.agents():
        if not file.is_shared:
            remark(f"the prompt {entry.name} asks for the agent {one_line(wish)}, which is unknown")
        return
    if file.of_project:
        raise ParleyError(
            f"this project's prompt {entry.name} asks for the agent {wish}. To accept, pass "
            f"--agent {shlex.quote(wish)}"
        )
    arguments.agent = wish
