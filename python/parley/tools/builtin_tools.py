"""The tools of the servers that are part of Parley, which are known before these servers start.

The servers have exactly these definitions, so a model's call passes the usual comparison with the
server's own list. Knows what the tools are, not what they do: that is in `workspace.tool_server`
and `mock_server`.
"""

from collections.abc import Mapping
from typing import Any

from parley.tools.catalogue import Tool
from parley.tools.convert import from_mcp
from parley.tools.server_settings import MOCK, WORKSPACE, ServerSettings

_READ_ONLY = {"readOnlyHint": True, "openWorldHint": False}
_EDITS = {"readOnlyHint": False, "destructiveHint": False, "openWorldHint": False}
_DESTROYS = {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": False}
_RUNS = {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": True}
_TEXT: Mapping[str, Any] = {"type": "string"}
_NUMBER: Mapping[str, Any] = {"type": "integer"}


def _by_default(value: Any, kind: str) -> dict[str, Any]:
    return {"default": value, "type": kind}


def _definition(
    title: str, description: str, hints: Mapping[str, Any], schema: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "name": title.lower().replace(" ", "_"),
        "title": title,
        "description": description,
        "inputSchema": {"type": "object", **schema},
        "annotations": dict(hints),
    }


FILE_TOOLS = (
    _definition(
        "List files",
        "List the files of the project as a tree. Paths are relative to the project's root. depth "
        "limits the levels.",
        _READ_ONLY,
        {
            "properties": {
                "path": _by_default(".", "string"),
                "glob": _by_default("", "string"),
                "depth": _by_default(0, "integer"),
            }
        },
    ),
    _definition(
        "Search text",
        "Find the lines of files that contain a pattern. context adds lines around each match. "
        "Leaves out hidden files and files that Git ignores.",
        _READ_ONLY,
        {
            "properties": {
                "pattern": _TEXT,
                "path": _by_default(".", "string"),
                "glob": _by_default("", "string"),
                "is_regex": _by_default(False, "boolean"),
                "context": _by_default(0, "integer"),
            },
            "required": ["pattern"],
        },
    ),
    _definition(
        "Read file",
        "Read a text file with line numbers, or see a picture. last_line 0 means the end.",
        _READ_ONLY,
        {
            "properties": {
                "path": _TEXT,
                "first_line": _by_default(1, "integer"),
                "last_line": _by_default(0, "integer"),
            },
            "required": ["path"],
        },
    ),
    _definition(
        "Edit file",
        "Replace text in a file. old must match one place exactly, or set all. Edits apply in order. "
        "Returns the diff.",
        _EDITS,
        {
            "$defs": {
                "Replacing": {
                    "description": "One edit, as the model writes it.",
                    "properties": {
                        "old": _TEXT,
                        "new": _TEXT,
                        "all": _by_default(False, "boolean"),
                    },
                    "required": ["old", "new"],
                    "type": "object",
                }
            },
            "properties": {
                "path": _TEXT,
                "edits": {"items": {"$ref": "#/$defs/Replacing"}, "type": "array"},
            },
            "required": ["path", "edits"],
        },
    ),
    _definition(
        "Write file",
        "Create a file, or replace all of its text. Prefer edit_file for existing files.",
        _EDITS,
        {"properties": {"path": _TEXT, "content": _TEXT}, "required": ["path", "content"]},
    ),
    _definition(
        "Move file",
        "Move or rename a file.",
        _DESTROYS,
        {"properties": {"path": _TEXT, "to": _TEXT}, "required": ["path", "to"]},
    ),
    _definition(
        "Delete file",
        "Delete a file.",
        _DESTROYS,
        {"properties": {"path": _TEXT}, "required": ["path"]},
    ),
)
COMMAND_TOOLS = (
    _definition(
        "Run command",
        "Run a shell command in the project, without input. Returns exit code and output.",
        _RUNS,
        {
            "properties": {
                "command": _TEXT,
                "directory": _by_default(".", "string"),
                "timeout_s": _by_default(0, "number"),
            },
            "required": ["command"],
        },
    ),
)
_PLACE = {
    "properties": {"path": _TEXT, "line": _NUMBER, "name": _TEXT},
    "required": ["path", "line", "name"],
}
CODE_TOOLS = (
    _definition(
        "Diagnostics",
        "Get errors and warnings of the editor's language servers, for one open file or for all.",
        _READ_ONLY,
        {"properties": {"path": _by_default("", "string")}},
    ),
    _definition(
        "Symbols",
        "Find functions, classes and other symbols of the project by name.",
        _READ_ONLY,
        {"properties": {"query": _TEXT}, "required": ["query"]},
    ),
    _definition(
        "Definition", "Find where a name that this line contains is defined.", _READ_ONLY, _PLACE
    ),
    _definition(
        "References", "Find all uses of a name that this line contains.", _READ_ONLY, _PLACE
    ),
)
MOCK_TOOLS = (
    _definition(
        "Web search",
        "Search the web (a mock: answers are made up). Returns JSON with a list of matches.",
        _READ_ONLY,
        {
            "properties": {"query": {"title": "Query", **_TEXT}},
            "required": ["query"],
            "title": "web_searchArguments",
        },
    ),
)
DEFINITIONS: Mapping[str, Mapping[str, Any]] = {
    each["name"]: each for each in (*FILE_TOOLS, *COMMAND_TOOLS, *CODE_TOOLS, *MOCK_TOOLS)
}
NO_COMMAND = "--no-command"
"""The argument of a workspace server that runs no commands."""


def builtin_tools(settings: ServerSettings, *, has_code: bool) -> tuple[Tool, ...] | None:
    """The enabled tools of a server that is part of Parley; None if only the server knows them.

    `has_code` says whether there is an editor whose language servers can be asked.
    """
    if settings.builtin and settings.name == WORKSPACE:
        command = () if NO_COMMAND in settings.args else COMMAND_TOOLS
        offered = (*FILE_TOOLS, *command, *(CODE_TOOLS if has_code else ()))
    elif settings.builtin and settings.name == MOCK and not settings.args:
        offered = MOCK_TOOLS
    else:
        return None
    return tuple(
        from_mcp(
            definition,
            server=settings.name,
            identity=settings.identity,
            trusted=settings.trusted,
            of_project=settings.origin == "project",
        )
        for definition in offered
        if settings.takes(definition["name"])
    )
