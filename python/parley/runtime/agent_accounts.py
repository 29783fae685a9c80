"""Signs the user in to agents of other programs, with the methods that each agent offers.

An agent keeps its own login: Parley neither sees nor stores it. Knows which command or request a
method needs; front ends know the terminal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path

from parley.acp.agent_processes import AgentProcesses
from parley.errors import ParleyError
from parley.frozen import frozen
from parley.models.agent_sign_ins import SignInMethod
from parley.programs import program, working_folder
from parley.settings.values import ProviderSettings
from parley.text import one_line

SIGN_IN_S = 600.0
"""The time limit for a sign-in that the agent itself carries out, for example in a browser."""


@frozen
class TerminalCommand:
    """A command for a terminal, with all of its variables; it starts in `folder`."""

    words: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    folder: str


class AgentAccounts:
    """The sign-ins of the agents of one app; `folder` returns the user's project, `tools` the
    workspace's tools that an agent in a folder may ask for."""

    def __init__(
        self,
        agents: AgentProcesses,
        environ: Mapping[str, str],
        folder: Callable[[], Path],
        tools: Callable[[Path], frozenset[str]],
    ) -> None:
        self._agents = agents
        self._environ = environ
        self._folder = folder
        self._tools = tools

    async def methods(self, provider: ProviderSettings) -> Sequence[SignInMethod]:
        """The sign-in methods that the agent offers. Raises ParleyError if there are none."""
        process = await self._agents.process(provider, self._folder(), self._tools)
        if not process.sign_ins:
            raise ParleyError(
                f"{provider.name} offers no sign-in method. Sign in with its own program"
            )
        return process.sign_ins

    async def command(self, provider: ProviderSettings, method: SignInMethod) -> TerminalCommand:
        """The command of a method for a terminal. Raises ParleyError."""
        process = await self._agents.process(provider, self._folder(), self._tools)
        own, env = process.command()
        words = [*own, *method.words]
        if method.command:
            found = program(method.command, env.get("PATH"))
            if found is None:
                raise ParleyError(
                    f"sign-in to {provider.name} needs the command {one_line(method.command, 60)}, "
                    "which was not found. Install it"
                )
            words = [found, *method.words]
        return TerminalCommand(tuple(words), {**env, **method.env}, working_folder(self._environ))

    async def authenticate(self, provider: ProviderSettings, method: SignInMethod) -> None:
        """Let the agent sign the user in itself. Raises ParleyError."""
        process = await self._agents.process(provider, self._folder(), self._tools)
        try:
            await process.request("authenticate", {"methodId": method.id}, SIGN_IN_S)
        except asyncio.CancelledError:  # the agent would wait on
            process.end()
            raise
        self._agents.renew(provider, process)

    async def sign_out(self, provider: ProviderSettings) -> None:
        """Let the agent delete its login. Raises ParleyError if it cannot."""
        process = await self._agents.process(provider, self._folder(), self._tools)
        match process.capabilities.get("auth"):
            case {"logout": {}}:
                await process.request("logout", {})
            case _:
                raise ParleyError(
                    f"{provider.name} cannot delete its login. Sign out with its own program"
                )
        self.renew(provider)

    def renew(self, provider: ProviderSettings) -> None:
        """Note that the login may have changed: idle processes of the agent end."""
        self._agents.renew(provider)
