"""Requests of agents to their client, as calls of the workspace's tools. Pure.

The approval of a call then is the approval of the request. Knows the parameters of the protocol's
requests, but neither the connection nor files.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from parley.errors import ParleyError
from parley.frozen import frozen
from parley.late_patterns import late_pattern
from parley.tools.agent_calls import arguments_json

# https://agentclientprotocol.com/protocol/file-system and `meta.py` in agent-client-protocol 0.12.1,
# read 2026-11-26.
CLIENT_TOOLS: Mapping[str, str] = {
    "fs/read_text_file": "read_file",
    "fs/write_text_file": "write_file",
    "terminal/create": "run_command",
    "terminal/output": "run_command",
    "terminal/wait_for_exit": "run_command",
    "terminal/kill": "run_command",
    "terminal/release": "run_command",
}
"""The workspace's tool for each request. The user decides on the first three."""
# Tried on 2026-11-26: @google/gemini-cli 0.61.0 can create no file, because it never takes an error
# for a missing file.
MISSING_AS_EMPTY = ("gemini",)
"""Words in the names of the agents for which a missing file is an empty one."""
MOST_WRITTEN = 2_000_000
"""The maximum number of characters of a call's arguments."""
_MOST_TEXTS = 10_000
_BESIDE_COMMAND = frozenset({"description", "timeout"})
"""The fields of an agent's input that do not change what a command does."""
_VARIABLE = late_pattern("[A-Za-z_][A-Za-z0-9_]*")


class ClientParamsError(ParleyError):
    """The parameters of a request are invalid; the text is for the agent."""


@frozen
class ApprovedChange:
    """A change of a file that the user approved with an agent's call, and that has not been made."""

    call_id: str
    base: str
    """The digest of all texts from which the call's changes were computed."""
    path: Path
    before: str | None
    """The text from which the approved diff was computed; None for no file."""
    after: str
    on_write: Callable[[Path], Awaitable[None]] = field(compare=False)
    """Receives the path when Parley has recorded and made the change."""


@frozen
class ApprovedCommand:
    """A command that the user approved with an agent's call, and that has not run."""

    call_id: str
    command: str


def approved_command(
    call_id: str, tool: str, arguments: Mapping[str, Any]
) -> list[ApprovedCommand]:
    """The command that a call of an agent shows, if the call is certainly about nothing else."""
    match tool, arguments.get("rawInput"):
        case "execute", {"command": str(command), **rest} if rest.keys() <= _BESIDE_COMMAND:
            return [ApprovedCommand(call_id, command)]
    return []


class ApprovedWork:
    """What the user has approved for one session of an agent beyond the calls themselves."""

    def __init__(self) -> None:
        self.changes = list[ApprovedChange]()
        """The changes that were approved during this prompt, and that were not made."""
        self.commands = list[ApprovedCommand]()
        """The commands that were approved during this prompt, and that have not run."""
        self._texts = set[str]()

    def end_prompt(self) -> None:
        """Forget what was only approved for one prompt."""
        self.changes.clear()
        self.commands.clear()

    def note_text(self, path: Path, text: str) -> None:
        """Note that the agent has this text of a file with the user's approval."""
        if len(self._texts) >= _MOST_TEXTS:
            self._texts.clear()
        self._texts.add(_digest(path, text))

    def has_text(self, path: Path, text: str) -> bool:
        """Whether the agent has this text of a file, so that sending it discloses nothing."""
        return _digest(path, text) in self._texts


def _digest(path: Path, text: str) -> str:
    return hashlib.sha256(f"{path}\0{text}".encode("utf-8", "surrogatepass")).hexdigest()


def client_arguments(
    method: str, params: Mapping[str, Any], root: Path, folder: Path
) -> dict[str, Any]:
    """The arguments of the tool for a request; paths are from the workspace's root if they are in
    it. `folder` is the agent's working directory. Raises ClientParamsError.
    """
    match method, params:
        case "terminal/create", {"command": str(command)} if command:
            words = _texts(params, "args")
            line = shlex.join([command, *words]) if words else command
            directory = _place(params.get("cwd") or str(folder), root)
            variables = "".join(_variables(params))
            return {
                "command": variables + line,
                **({"directory": directory} if directory != str(root) else {}),
            }
        case "fs/read_text_file", {"path": str(path)}:
            first, most = _number(params, "line"), _number(params, "limit")
            lines = {"first_line": first} if first is not None else {}
            if most is not None:
                lines["last_line"] = (first or 1) + most - 1
            return {"path": _place(path, root), **lines}
        case "fs/write_text_file", {"path": str(path), "content": str(content)}:
            return {"path": _place(path, root), "content": content}
    raise ClientParamsError(f"the parameters of {method} are invalid")


def arguments_text(arguments: Mapping[str, Any]) -> str:
    """Arguments as JSON. Raises ClientParamsError if they are too large for a call."""
    text = arguments_json(arguments)
    if len(text) > MOST_WRITTEN:
        raise ClientParamsError(f"the request has more than {MOST_WRITTEN:,} characters")
    return text


def _number(params: Mapping[str, Any], name: str) -> int | None:
    """A line number or a number of lines, at least 1; None if it is missing."""
    match params.get(name):
        case None:
            return None
        case int(number) if number > 0 and not isinstance(number, bool):
            return number
    raise ClientParamsError(f"{name} is not a number of at least 1")


def _texts(params: Mapping[str, Any], name: str) -> list[str]:
    match params.get(name):
        case None:
            return []
        case [*texts] if all(isinstance(text, str) for text in texts):
            return texts
    raise ClientParamsError(f"{name} is not a list of texts")


def _variables(params: Mapping[str, Any]) -> Iterator[str]:
    """The commands that set the variables, so the user sees them."""
    variables = params.get("env")
    if not isinstance(variables, list | None):
        raise ClientParamsError("env is not a list")
    for variable in variables or ():
        match variable:
            case {"name": str(name), "value": str(value)} if _VARIABLE.fullmatch(name):
                yield f"export {name}={shlex.quote(value)}; "
            case _:
                raise ClientParamsError("env has an invalid variable")


def output_limit(params: Mapping[str, Any]) -> int | None:
    """The maximum number of bytes of a terminal's output. Raises ClientParamsError."""
    match params.get("outputByteLimit"):
        case None:
            return None
        case int(limit) if limit >= 0 and not isinstance(limit, bool):
            return limit
    raise ClientParamsError("outputByteLimit is not a number of bytes")


def _place(path: object, root: Path) -> str:
    if not isinstance(path, str) or not path.startswith("/"):
        raise ClientParamsError("the path is not absolute")
    return path.removeprefix(f"{root}/") or path
