"""The room that a request has for the schemas of tools, and which of them are sent where it is too small.

Knows sizes and names; what a tool is for, and who found which, is known elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from parley.models.context_window import BYTES_PER_TOKEN
from parley.tools.catalogue import Tool


def tokens_of(tools: Iterable[Tool]) -> int:
    """The tokens of tools with their schemas, by the estimate that decides what fits."""
    return sum(tool.size for tool in tools) // BYTES_PER_TOKEN


@dataclass(frozen=True, slots=True)
class ToolRoom:
    """The most tokens that tools may take with their schemas, and the most tools; None is no limit."""

    tokens: int
    count: int | None = None

    def holds(self, tools: Sequence[Tool]) -> bool:
        """Whether all of the tools may be sent with their schemas."""
        return (self.count is None or len(tools) <= self.count) and tokens_of(tools) <= self.tokens

    def fitting(self, tools: Iterable[Tool], others: int = 0) -> list[Tool]:
        """As many of the tools as there is room for beside some others; the first ones go before the rest.

        One is always among them: a tool that was found can be called, however much its schema is.
        """
        fitting, size = list[Tool](), 0
        for tool in tools:
            if self.count is not None and len(fitting) + others >= self.count:
                break
            if not fitting or (size + tool.size) // BYTES_PER_TOKEN <= self.tokens:
                fitting.append(tool)
                size += tool.size
        return fitting
