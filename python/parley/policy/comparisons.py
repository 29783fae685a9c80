"""Which agents can be compared with each other. Pure."""

from __future__ import annotations

from collections.abc import Sequence

MOST_AGENTS = 8
"""The maximum number of agents in a comparison: Neovim compares at most eight buffers."""


def flaw(agents: Sequence[str]) -> str:
    """Why these agents cannot be compared; "" if they can."""
    twice = next((agent for n, agent in enumerate(agents) if agent in agents[:n]), "")
    if twice:
        return f"{twice} is named twice. Name each agent once"
    if not 2 <= len(agents) <= MOST_AGENTS:
        return f"expected 2 to {MOST_AGENTS} agents to compare, got {len(agents)}"
    return ""
