"""Decides on calls by the settings, without asking: patterns for tools and arguments. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from fnmatch import fnmatchcase
from posixpath import normpath
from typing import Any
from urllib.parse import unquote

from parley.frozen import frozen
from parley.policy.expressions import fits
from parley.policy.permissions import is_command
from parley.tables import rule
from parley.tools.catalogue import Tool
from parley.tools.schema import decode_arguments

OF_PROJECT = "project:"
"""The prefix of a pattern for a project's servers: a project can give its server any name."""
_ESCAPED_TWICE = 2


@frozen
class Pattern:
    """A `server/tool` glob, with regular expressions that whole argument values must match."""

    tool: str = field(metadata=rule(is_short=True))
    args: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        """The rule as written in the settings."""
        return f"{self.tool!r}" + (f" with {json.dumps(dict(self.args))}" if self.args else "")

    def allows(self, tool: Tool, arguments: str) -> bool:
        """Whether the pattern certainly covers a call; without `/`, it covers only trusted servers.

        It covers servers from the settings; with the prefix `project:`, it covers a project's
        servers instead.
        """
        if tool.of_project != self.tool.startswith(OF_PROJECT):
            return False
        server, slash, name = self.tool.removeprefix(OF_PROJECT).partition("/")
        if slash:  # compared part by part, so that a slash in a tool's name cannot imitate a server
            is_named = fnmatchcase(tool.server, server) and fnmatchcase(tool.name, name)
        else:
            is_named = tool.trusted and fnmatchcase(tool.name, self.tool)
        return is_named and self._fit(arguments, _surely_fits)

    def forbids(self, tool: Tool, arguments: str) -> bool:
        """Whether the pattern may cover a call; a broken expression matches any value."""
        glob = self.tool.removeprefix(OF_PROJECT) if tool.of_project else self.tool
        name = f"{tool.server}/{tool.name}" if "/" in glob else tool.name
        return fnmatchcase(name, glob) and self._fit(arguments, _may_fit)

    def _fit(self, arguments: str, fits: Callable[[str, Any], bool]) -> bool:
        if not self.args:
            return True
        try:
            values = decode_arguments(arguments)
        except ValueError:
            return False
        return all(fits(expression, values.get(name)) for name, expression in self.args.items())


def _surely_fits(expression: str, value: Any) -> bool:
    """Whether a value certainly fits. A path with `..` matches only `.*`, because it may lead
    anywhere.
    """
    if not isinstance(value, str) or (expression != ".*" and ".." in _plain(value).split("/")):
        return False
    return fits(expression, value, otherwise=False)


def _may_fit(expression: str, value: Any) -> bool:
    """Whether a value may match: a text as it is, across all its lines, or as a path; any other
    value as JSON, or through the texts that it contains.
    """
    spellings = (spelling for text in _texts_of(value) for spelling in _spellings(text))
    return any(
        fits(expression, spelling, otherwise=True, over_lines=True) for spelling in spellings
    )


def _spellings(text: str) -> Iterator[str]:
    """A text itself, and the normalized path that it stands for."""
    yield text
    if "/" in (plain := _plain(text)):
        yield re.sub("^//", "/", normpath(plain))  # POSIX leaves the meaning of two slashes open


def _plain(text: str) -> str:
    """A path as most programs read it: with `/` as separator, and with URL escapes decoded."""
    for _ in range(_ESCAPED_TWICE):
        text = unquote(text, errors="surrogateescape")
    return text.replace("\\", "/")


def _texts_of(value: Any) -> Iterator[str]:
    """The texts that a program may read from a value."""
    yield value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    match value:
        case float() if value.is_integer():
            yield str(int(value))
        case list():
            yield from (text for inner in value for text in _texts_of(inner))
        case dict():
            yield from (text for inner in value.values() for text in _texts_of(inner))


@frozen
class Rules:
    """The rules for all chats: `approval.auto`, `approval.deny`, `approval.auto_read_only`,
    `approval.ask`."""

    auto: tuple[Pattern, ...] = ()
    deny: tuple[Pattern, ...] = ()
    auto_read_only: bool = False
    ask: tuple[Pattern, ...] = ()

    def denied(self, tool: Tool, arguments: str) -> Pattern | None:
        """The pattern that forbids this call; None if no pattern does."""
        return next((p for p in self.deny if p.forbids(tool, arguments)), None)

    def ask_pattern(self, tool: Tool, arguments: str) -> Pattern | None:
        """The pattern because of which Parley always asks about this call; None if no pattern
        does."""
        return next((p for p in self.ask if p.forbids(tool, arguments)), None)

    def may_ask(self, tool: Tool) -> bool:
        """Whether calls to a tool may wait for the user."""
        return not tool.unasked and (
            self.ask_pattern(tool, "{}") is not None or self.allowed(tool, "{}") is None
        )

    def allowed(self, tool: Tool, arguments: str) -> str | None:
        """The rule that allows this call without asking; None if no rule does.

        A rule allows a command only if the rule has an expression for the whole command.
        """
        auto = (p for p in self.auto if "command" in p.args or not is_command(tool))
        if pattern := next((p for p in auto if p.allows(tool, arguments)), None):
            return f"approval.auto has {pattern}"
        if self.auto_read_only and tool.only_reads:
            return f"{tool.server} is trusted and says that {tool.name} only reads"
        return None
