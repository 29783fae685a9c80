"""The calls that agents of other programs ask about in one chat, as the engine's ports need them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from parley.acp.agent_processes import AgentProcesses
from parley.models.events import Event
from parley.models.request import Request
from parley.policy.approval import CallKey
from parley.runtime.agent_changes import AgentChanges
from parley.settings.values import ProviderSettings
from parley.tools.results import Outcome


@dataclass(frozen=True, slots=True)
class ChatAgents:
    """Implements the engine's port for agents, and parts of its ports for models and tools."""

    agents: AgentProcesses
    chat: str
    folder: Callable[[], Path]
    """Returns the chat's project."""
    changes: Callable[[str, Path], AgentChanges]
    """Watches the files in the project for the call with this id."""

    def stream(self, provider: ProviderSettings, request: Request) -> AsyncIterator[Event]:
        """The events of an agent's reply."""
        return self.agents.stream(provider, request, self.chat, self.folder())

    async def call(self, key: CallKey) -> Outcome:
        """Allow a call that was approved with this key, and wait for its outcome."""
        if not self.awaits(key.id):
            return await self.agents.call(self.chat, key.id)
        async with self.changes(key.id, self.folder()).recorded(key):
            return await self.agents.call(self.chat, key.id)

    def awaits(self, call_id: str) -> bool:
        """Whether the agent still waits for the choice on this call."""
        return self.agents.awaits(self.chat, call_id)

    def dismiss(self, call_ids: Collection[str]) -> None:
        """Tell the agent that these calls will not run."""
        self.agents.dismiss(self.chat, call_ids)
