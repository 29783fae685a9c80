"""The parts of a text that contains tool calls: prose, thinking, calls, failures.

Shared by the two syntaxes, JSON and XML. Knows whether a call matches its tool's schema; knows
nothing about either syntax, events or requests.
"""

from __future__ import annotations

from itertools import groupby
from typing import Protocol, TypeAlias

from parley.errors import ParleyError
from parley.frozen import frozen
from parley.tools.catalogue import Catalogue
from parley.tools.schema import check_call
from parley.tools.search import available

_NAME_SHOWN = 128


@frozen
class Prose:
    """Text that is meant for the user; never empty."""

    text: str


@frozen
class Thought:
    """The next piece of a thinking block; never empty."""

    text: str


@frozen
class ThoughtEnd:
    """The end of a thinking block."""


@frozen
class TextCall:
    """A call: its tool, and the JSON text of its arguments."""

    name: str
    arguments: str


@frozen
class Failed:
    """Text that was meant as a call but is invalid; `error` tells the model how to fix it."""

    error: str
    text: str


Item: TypeAlias = Prose | Thought | ThoughtEnd | TextCall | Failed


class ReplyReader(Protocol):
    """Reads the text of a reply in pieces, cut anywhere."""

    limit: ToolLimitReached | None
    """The reason why the rest of the reply is not read; None while the reply may continue."""

    def feed(self, piece: str) -> list[Item]:
        """The items that this piece settles; the rest waits. Raises `limit` once this has been
        reached.
        """
        ...

    def end(self, *, cut: bool = False) -> list[Item]:
        """The waiting items; if the reply was `cut`, an unfinished call is dropped."""
        ...


class ToolLimitReached(ParleyError):  # noqa: N818 - its name is what it says: this is no failure
    """The reply continues after the only call that it may make."""

    def __init__(self) -> None:
        super().__init__("Tool limit reached - only one tool per message allowed")


def problem_of(call: TextCall, catalogue: Catalogue) -> str | None:
    """The problem of a call, for the model to read; None if it may be proposed.

    If the model knows only the name of a tool, the call is answered in the file, so that the model
    finds the tool.
    """
    tool = catalogue.get(call.name)
    if tool is not None and catalogue.is_name_only(tool):
        return None
    if tool is not None:
        return check_call(call.arguments, tool)
    near = catalogue.nearest(call.name)
    hint = f", did you mean '{near}'?" if near else "."
    return f"Unknown tool '{call.name[:_NAME_SHOWN]}'{hint} Available tools: {available(catalogue)}"


def joined(items: list[Item]) -> list[Item]:
    """The items with adjacent prose joined."""
    whole = list[Item]()
    for is_prose, run in groupby(items, key=lambda item: isinstance(item, Prose)):
        adjacent = list(run)
        text = "".join(item.text for item in adjacent if isinstance(item, Prose))
        whole += [Prose(text)] if is_prose else adjacent
    return whole
