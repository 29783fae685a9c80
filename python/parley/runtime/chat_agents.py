"""The calls that agents of other programs ask about in one chat, as the engine's ports need them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from parley.acp.agent_processes import AgentProcesses
from parley.acp.client_request import AgentTerminal, ClientRequest
from parley.chat.front_matter import read_front_matter
from parley.frozen import frozen
from parley.mcp.server_session import Progress
from parley.models.events import Event
from parley.models.request import Request
from parley.policy.approval import CallKey
from parley.policy.permissions import is_of_workspace
from parley.runtime.agent_servers import AgentServers
from parley.settings.values import ProviderSettings
from parley.tools.agent_calls import NOT_AWAITED
from parley.tools.catalogue import Catalogue
from parley.tools.client_calls import approved_command
from parley.tools.results import Outcome
from parley.tools.schema import decode_arguments

if TYPE_CHECKING:
    from parley.runtime.agent_changes import AgentChanges
    from parley.runtime.workspace_client import WorkspaceClient
    from parley.workspace.toolbox import Workspace


@frozen
class ChatAgents:
    """Implements the engine's port for agents, and parts of its ports for models and tools."""

    agents: AgentProcesses
    chat: str
    key: str
    """The chat's key among the agents' sessions, which no other chat has."""
    folder: Callable[[], Path]
    """Returns the chat's project."""
    changes: Callable[[str, Path], AgentChanges]
    """Watches the files in the project for the call with this id."""
    workspace: Callable[[], Workspace | None]
    """Returns the workspace; None if its tools are not offered."""
    servers: Callable[[], AgentServers]
    """Returns the servers in the user's settings."""
    max_bytes: int
    """The limit of a result in the chat."""

    def stream(
        self, provider: ProviderSettings, request: Request, note_start: Callable[[bool], None]
    ) -> AsyncIterator[Event]:
        """The events of an agent's reply; `note_start` as in `AgentProcesses.stream`."""
        client = self._client(request.catalogue)
        globs = read_front_matter(request.transcript.front_matter).keys.get("tools")
        servers = self.servers().passed(provider.servers, globs)
        folder = self.folder()
        return self.agents.stream(provider, request, self.key, folder, client, servers, note_start)

    def _client(self, catalogue: Catalogue | None = None) -> WorkspaceClient | None:
        """The workspace for the agent, with the tools in this catalogue; None if it has none."""
        own = [t for _, t in catalogue.tools if is_of_workspace(t)] if catalogue else []
        work = self.workspace()
        if work is None or (catalogue and not own):
            return None
        from parley.runtime.workspace_client import WorkspaceClient

        return WorkspaceClient(work, self.chat, frozenset(t.name for t in own), self.max_bytes)

    async def call(self, key: CallKey, progress: Progress) -> Outcome:
        """Allow a call that was approved with this key, and wait for its outcome; or carry out the
        request that it was made from.
        """
        if not self.awaits(key.id):
            return Outcome("error", NOT_AWAITED)
        client = self._client()

        async def work(request: ClientRequest) -> Outcome | AgentTerminal:
            if client is None:
                return Outcome("error", NOT_AWAITED)
            return await client.serve(request, key, progress)

        served = await self.agents.serve(self.key, key.id, work)
        if served is not None:
            return served
        async with self.changes(key.id, self.folder()).recorded(key) as on_write:
            known = client.approved_by if client else None
            approved = await asyncio.to_thread(known, key, on_write) if known else []
            commands = approved_command(key.id, key.tool, decode_arguments(key.arguments))
            return await self.agents.call(self.key, key.id, approved, commands)

    def awaits(self, call_id: str) -> bool:
        """Whether the agent still waits for the choice on this call."""
        return self.agents.awaits(self.key, call_id)

    def dismiss(self, reasons: Mapping[str, str]) -> None:
        """Tell the agent that the calls with these ids will not run, and why."""
        self.agents.dismiss(self.key, reasons)
