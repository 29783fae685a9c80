"""What is known about the process of an agent of another program. Pure."""

from __future__ import annotations

from parley.frozen import frozen


@frozen
class AgentStatus:
    """A process of the agent with this provider's name, which works in `folder`. `problem` is its last
    error, and `stderr` contains its last lines."""

    name: str
    folder: str
    is_running: bool
    problem: str = ""
    stderr: tuple[str, ...] = ()
