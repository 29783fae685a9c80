"""Calls of agents of other programs: their tools, which are kinds of calls, and the form of their
arguments.

The arguments contain everything that the user sees before deciding, so an approval is bound to it.
Does not know the protocol's messages.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, TypeAlias
from urllib.parse import unquote, urlsplit

from parley.frozen import frozen
from parley.late_patterns import late_pattern
from parley.tools.catalogue import Catalogue, Tool, canonical

FileDiff: TypeAlias = Mapping[str, str | None]
"""A file's `path`, its `oldText` (None for a new file) and its `newText`; the texts may be parts."""

# https://agentclientprotocol.com/protocol/tool-calls and `ToolKind` in agent-client-protocol 0.12.1,
# read 2026-11-26. The order is the table's.
KINDS: Mapping[str, str] = {
    "read": "Read files or data",
    "edit": "Change files",
    "delete": "Delete files or data",
    "move": "Move or rename files",
    "search": "Search for information",
    "execute": "Run commands or code",
    "think": "Think or plan",
    "fetch": "Get data from the network",
    "switch_mode": "Switch the agent's mode",
    "other": "Do something else",
}
"""The kinds of calls, which the agent chooses, with their titles."""

NOT_AWAITED = (
    "The agent's permission request ended with its process or its turn, so this call was cancelled "
    "and did not run."
)
"""The result of a call whose agent no longer waits for a choice."""

_MAY_DESTROY = frozenset({"delete", "move", "execute", "switch_mode", "other"})
_OF_FILES = frozenset({"read", "edit", "delete", "move", "search", "fetch"})
_PATH_FIELD = late_pattern("path|file|dir|folder|cwd|root", re.IGNORECASE)
_PATH = late_pattern(r"[/~]|file:|(.*/)?\.\.(/|$)", re.IGNORECASE)
"""Texts that would lead out of a folder if they were paths."""
MOST_DIFFS = 100
"""The maximum number of files that a call may change with diffs; Parley refuses a call with
more."""
TOO_MANY_DIFFS = (
    f"This call changes more than {MOST_DIFFS} files, so Parley refused it. Change fewer files in one "
    "call."
)
"""The result of a call with more diffs."""
EXISTS = "exists"
"""The name of the mark at a diff without old text whose file exists."""
_BESIDE_INPUT = frozenset({"diffs", "paths"})
_SCHEMA: Mapping[str, Any] = {"type": "object"}
_SURROGATE = late_pattern("[\ud800-\udfff]")
_PREFIX = canonical({"agent": []})[:-2]


def agent_identity(command: Sequence[str], folder: str) -> str:
    """The origin of an agent that this command starts, as canonical JSON."""
    return canonical({"agent": list(command), "cwd": folder})


def is_of_agent(tool: Tool) -> bool:
    """Whether a tool is a kind of calls that an agent of another program runs itself."""
    return tool.identity.startswith(_PREFIX)


@cache
def agent_catalogue(server: str, identity: str) -> Catalogue:
    """The tools of the agent with this identity; `server` is its provider's name."""
    return Catalogue.of(
        Tool(
            server,
            kind,
            title,
            input_schema=_SCHEMA,
            annotations={"destructiveHint": True} if kind in _MAY_DESTROY else {},
            identity=identity,
        )
        for kind, title in KINDS.items()
    )


def kind_of_call(kind: object) -> str:
    """The kind of a call as the agent names it; `other` for an unknown kind."""
    return kind if isinstance(kind, str) and kind in KINDS else "other"


def call_arguments(
    title: str, raw: object, diffs: Sequence[FileDiff], paths: Sequence[str] = ()
) -> str:
    """A call's arguments as JSON. `raw` is the agent's own input; `paths` are the files that it
    names. Raises ValueError, or RecursionError for deep values.
    """
    fields: dict[str, Any] = {"title": title}
    if raw not in (None, {}, ""):
        fields["rawInput"] = raw
    if diffs:
        fields["diffs"] = list(diffs)
    if paths:
        fields["paths"] = list(paths)
    return arguments_json(fields)


def arguments_json(fields: Mapping[str, Any]) -> str:
    """Arguments as JSON, escaped if UTF-8 cannot encode a character. Raises ValueError, or
    RecursionError for deep values.
    """
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    if not _SURROGATE.search(text):
        return text
    return json.dumps(fields, separators=(",", ":"), allow_nan=False)


@frozen
class AnnouncedDiff:
    """A diff in a call's arguments; with `is_over`, the file exists, although the agent does not name
    its old text."""

    path: str
    old: str | None
    new: str
    is_over: bool = False


def shown_fields(arguments: Mapping[str, Any], *, is_brief: bool = False) -> Mapping[str, Any]:
    """A call's arguments for one line: the agent's own input in place of `rawInput`, and nothing
    twice; or, if `is_brief`, only the title. Arguments of another form stay.
    """
    match arguments:
        case {"title": str(title), **rest} if is_brief and title.strip():
            return {"title": title}
        case {"title": str(title), "rawInput": Mapping() as raw, **rest} if (
            rest.keys() <= _BESIDE_INPUT and not raw.keys() & {"title", *_BESIDE_INPUT}
        ):
            values = [value for value in raw.values() if isinstance(value, str)]
            fields = {} if title in values else {"title": title}
            more = {name: value for name, value in rest.items() if name != "paths"}
            paths = [path for path in rest.get("paths", ()) if path not in values]
            return {**fields, **raw, **more, **({"paths": paths} if paths else {})}
    return arguments


def diffs_of(arguments: str) -> list[AnnouncedDiff]:
    """The diffs in a call's arguments; none if the arguments have another form."""
    try:
        decoded = json.loads(arguments)
    except (ValueError, RecursionError):
        return []
    match decoded:
        case {"title": str(), "diffs": [*diffs]}:
            found = list(map(_texts_of, diffs))
            return [each for each in found if each] if all(found) else []
    return []


def paths_of(kind: str, arguments: Mapping[str, Any], *, with_texts: bool = True) -> list[str]:
    """The files that a call with these arguments names: in its diffs and paths, and in the agent's own
    input, in fields that are named like paths, and `with_texts` in texts that may lead elsewhere. None
    for a kind that is not about files.
    """
    if kind not in _OF_FILES:
        return []
    found = dict[str, None]()
    open_values: list[tuple[str, Any]] = [("", arguments.get("rawInput"))]
    open_values += [("path", arguments.get("paths")), ("", arguments.get("diffs"))]
    while open_values:
        field, value = open_values.pop()
        match value:
            case str() if _PATH_FIELD.search(field) or (with_texts and _is_like_path(value)):
                found[path_of_url(value)] = None
            case Mapping() if "newText" in value:  # a diff, whose texts are no paths
                open_values.append(("path", value.get("path")))
            case Mapping():
                open_values += [(str(name), each) for name, each in value.items()]
            case [*values]:
                open_values += [(field, each) for each in values]
    return list(filter(None, found))


def _is_like_path(text: str) -> bool:
    return "\n" not in text and bool(_PATH.match(text))


def path_of_url(text: str) -> str:
    """A path, also from its URL."""
    try:
        is_url = text[:5].lower() == "file:"
        return unquote(urlsplit(text).path) if is_url else text
    except ValueError:  # it is no URL
        return text


def _texts_of(diff: Any) -> AnnouncedDiff | None:
    match diff:
        case {"path": str(path), "oldText": str(old), "newText": str(new)} if path:
            return AnnouncedDiff(path, old, new)
        case {"path": str(path), "oldText": None, "newText": str(new)} if path:
            return AnnouncedDiff(path, None, new, diff.get(EXISTS) is True)
    return None


def with_existing(arguments: str, exists: Callable[[str], bool]) -> str:
    """The arguments with a mark for each file that exists, although its diff has no old text: Claude
    Code sends such diffs when it overwrites a file.
    """
    if '"oldText":null' not in arguments or len(diffs_of(arguments)) > MOST_DIFFS:
        return arguments
    with suppress(ValueError, RecursionError):
        match json.loads(arguments):
            case {"title": str(title), "diffs": [*diffs], **rest} if all(map(_texts_of, diffs)):
                marked = [
                    {**diff, EXISTS: True}
                    if diff["oldText"] is None and exists(diff["path"])
                    else diff
                    for diff in diffs
                ]
                return call_arguments(title, rest.get("rawInput"), marked)
    return arguments
