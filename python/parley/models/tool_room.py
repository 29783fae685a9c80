"""A request's room for tool schemas, and which tools to send if there is not enough.

Knows sizes and names, but not what a tool does or how it was found.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from parley.frozen import frozen
from parley.models.context_window import BYTES_PER_TOKEN
from parley.tools.catalogue import Tool


def tokens_of(tools: Iterable[Tool]) -> int:
    """The estimated number of tokens that tools take, with their schemas."""
    return sum(tool.size for tool in tools) // BYTES_PER_TOKEN


@frozen
class ToolRoom:
    """Limits a request's tools: their tokens (including their schemas), and their number; None
    means no limit.
    """

    tokens: int
    count: int | None = None

    def holds(self, tools: Sequence[Tool]) -> bool:
        """Whether all tools fit with their schemas."""
        return (self.count is None or len(tools) <= self.count) and tokens_of(tools) <= self.tokens

    def fitting(self, tools: Iterable[Tool], others: int = 0) -> list[Tool]:
        """As many of the tools as fit in addition to `others`, in order of priority.

        The first tool always fits, so that a tool that was found can be called even if its schema
        is very large.
        """
        fitting, size = list[Tool](), 0
        for tool in tools:
            if self.count is not None and len(fitting) + others >= self.count:
                break
            if not fitting or (size + tool.size) // BYTES_PER_TOKEN <= self.tokens:
                fitting.append(tool)
                size += tool.size
        return fitting
