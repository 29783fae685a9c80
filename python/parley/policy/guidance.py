"""What a model is told about the tools it is offered, at the end of its system prompt."""

from __future__ import annotations

from parley.tools.catalogue import Catalogue

_RULES = """\
- Use tools one after another as needed to complete the task.
- If a tool call fails, try another way.
- If the task cannot be completed after reasonable attempts, say why.
- Stop calling tools once there is enough to answer."""


def guidance(catalogue: Catalogue) -> str:
    """The list of tools and the rules for using them; "" where there is no tool."""
    names = ", ".join(catalogue.names())
    return f"You have access to the following tools: {names}\n{_RULES}" if names else ""
