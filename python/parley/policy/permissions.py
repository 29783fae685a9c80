"""Permissions, which keep the user's yes beyond one chat, and what a capital letter remembers. Pure.

Knows tools, arguments and previews. Does not know where permissions are stored, or how the user
gives one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from typing import Literal, TypeAlias

from parley.frozen import frozen
from parley.policy.previews import CallPreview
from parley.text import one_line
from parley.tools.agent_calls import is_of_agent
from parley.tools.catalogue import Tool, canonical
from parley.tools.schema import decode_arguments
from parley.tools.server_settings import WORKSPACE

Memory: TypeAlias = Literal["tool", "arguments", "nothing"]
"""What a capital letter remembers: the tool, only these arguments of the tool, or nothing."""

_BUILTIN = canonical({"builtin": WORKSPACE})[:-1]
"""The beginning of the identity of that server; the folder that it works in follows."""
_COMMAND, _WRITE = "run_command", "write_file"
_EDIT = "edit"
"""The kind of agents' calls that change files."""
_TAKES_AWAY = ("move_file", "delete_file")
_LONGEST_NAME = 30


def is_of_workspace(tool: Tool) -> bool:
    """Whether this is a tool of Parley's own server, not of another server with its name."""
    return tool.server == WORKSPACE and tool.identity.startswith(_BUILTIN)


def in_any_folder(tool: Tool) -> Tool:
    """A tool as a permission for every folder knows it: Parley's own tools work in each folder in
    the same way.
    """
    return replace(tool, identity=f"{_BUILTIN}}}") if is_of_workspace(tool) else tool


def is_command(tool: Tool) -> bool:
    """Whether this is Parley's own tool that runs any command."""
    return is_of_workspace(tool) and tool.name == _COMMAND


def is_destructive(tool: Tool) -> bool:
    """Whether each call of this tool may destroy something.

    In MCP, a missing `destructiveHint` means true. Here, only a server that sends true counts,
    because most servers leave the hint out of tools that destroy nothing.
    """
    takes_away = is_of_workspace(tool) and tool.name in _TAKES_AWAY
    return takes_away or tool.annotations.get("destructiveHint") is True


def memory_of(tool: Tool, preview: CallPreview | None) -> Memory:
    """What a capital letter on a call of this tool remembers, and what may approve the call."""
    if is_command(tool):
        return "arguments"
    if is_destructive(tool):
        return "nothing"
    if is_of_workspace(tool) and tool.name == _WRITE and not _only_creates(preview):
        return "nothing"
    if is_of_agent(tool) and tool.name == _EDIT and not (preview and preview.changes):
        return "nothing"  # without a diff, it may be any change
    return "tool"


def _only_creates(preview: CallPreview | None) -> bool:
    """Whether a call certainly overwrites no file."""
    return (
        preview is not None
        and bool(preview.changes)
        and all(change.before is None for change in preview.changes)
    )


def exact(arguments: str) -> str | None:
    """Arguments in a form that is equal for equal values; None if they cannot be read."""
    try:
        return canonical(decode_arguments(arguments))
    except ValueError:
        return None


@frozen
class Permission:
    """The user's yes to later calls of a tool as it is defined now."""

    server: str
    tool: str
    digest: str
    """The digest of the tool's definition. With another definition, the permission is void."""
    chat: str = ""
    """The path of the only chat that it applies to; "" for any chat."""
    root: str = ""
    """The only project that it applies to, by its folder; "" for any folder."""
    arguments: str = ""
    """The only arguments that it applies to, as `exact` returns them; "" for any arguments."""
    number: int = field(default=0, compare=False)
    """Its number in the ledger; 0 before it is stored."""

    @property
    def is_everywhere(self) -> bool:
        """Whether it applies in every chat and every project."""
        return not (self.chat or self.root)

    @property
    def place(self) -> str:
        """The place where it applies, in words."""
        if self.chat:
            return f"in the chat {self.chat}"
        return f"in {self.root}" if self.root else "everywhere"

    def applies_in(self, chat: str, root: str) -> bool:
        """Whether it applies to this chat, in the project with this folder."""
        return self.chat in ("", chat) and self.root in ("", root)

    def names(self, tool: Tool, arguments: str) -> bool:
        """Whether it is about such a call, even if the tool's definition has changed.

        A permission for every folder is never about a project's server, because another project can
        use the same command for another program.
        """
        if (self.server, self.tool) != (tool.server, tool.name):
            return False
        if self.is_everywhere and tool.of_project:
            return False
        return not self.arguments or self.arguments == exact(arguments)

    def is_for(self, tool: Tool) -> bool:
        """Whether it was given for the tool as it is defined now."""
        return self.digest == (in_any_folder(tool) if self.is_everywhere else tool).digest

    def covers(self, tool: Tool, arguments: str, memory: Memory) -> bool:
        """Whether it allows a call; one for any arguments allows only a call that a capital letter
        would remember by its tool.
        """
        is_enough = bool(self.arguments) or memory == "tool"
        return is_enough and self.is_for(tool) and self.names(tool, arguments)


def permission_for(
    permissions: Iterable[Permission], tool: Tool, arguments: str, memory: Memory
) -> Permission | None:
    """The permission that allows a call; None if no permission does."""
    return next((p for p in permissions if p.covers(tool, arguments, memory)), None)


def reason(permission: Permission) -> str:
    """Why a call ran that a permission allowed, for the log."""
    these = " with these arguments" if permission.arguments else ""
    tool = f"{permission.server}/{permission.tool}"
    return f"permission {permission.number} allows {tool}{these} {permission.place}"


def listing(permission: Permission) -> str:
    """A permission on one line, for lists."""
    these = f", only with {permission.arguments}" if permission.arguments else ""
    tool = f"{permission.server}/{permission.tool}"
    return f"{permission.number}: {tool} {permission.place}{these}"


def remembering(calls: Sequence[tuple[str, Memory]]) -> str:
    """What a capital letter on calls, each with its tool's name, has remembered, for the user."""
    names = {memory: list(dict.fromkeys(n for n, m in calls if m == memory)) for _, memory in calls}
    parts = list[str]()
    if tools := names.get("tool"):
        parts.append(f"remembered {_named(tools)} in this chat")
    if names.get("arguments"):
        parts.append("remembered this exact command in this chat")
    if others := names.get("nothing"):
        parts.append(f"{_named(others)}: approved this time only, because a call may destroy data")
    wider = " (:ParleyAllow widens it)" if "tool" in names or "arguments" in names else ""
    return "; ".join(parts) + wider


def _named(names: Sequence[str]) -> str:
    return one_line(names[0], _LONGEST_NAME) if len(names) == 1 else f"{len(names)} tools"


@frozen
class Offer:
    """A permission that the user may give for a call, and its name in the list."""

    title: str
    permission: Permission


def offers(tool: Tool, arguments: str, chat: str, root: str) -> list[Offer]:
    """The permissions that the user may give for a call, the narrowest first.

    A tool that may destroy something is offered only with these arguments. Parley's own tools that
    move or delete files are not offered, because the same call rarely makes sense again. A
    project's tool is not offered everywhere.
    """
    values = exact(arguments)
    known = tool.server, tool.name, tool.digest
    if values is None or (is_of_workspace(tool) and tool.name in _TAKES_AWAY):
        return []
    these = Offer("This project, these arguments", Permission(*known, root=root, arguments=values))
    if is_command(tool) or is_destructive(tool):
        this_chat = Permission(*known, chat=chat, arguments=values)
        return [Offer("This chat, these arguments", this_chat), these]
    made = [
        Offer("This chat", Permission(*known, chat=chat)),
        these,
        Offer("This project, this tool", Permission(*known, root=root)),
    ]
    if not tool.of_project:
        digest = in_any_folder(tool).digest
        made.append(Offer("Everywhere, this tool", Permission(tool.server, tool.name, digest)))
    return made
