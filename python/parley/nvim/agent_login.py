"""Signs the user in to an agent of another program: in a terminal window, or by the agent itself.

Knows the questions and messages; `runtime.agent_accounts` knows what a sign-in method needs.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable

from parley.display.agent_rows import sign_in_row
from parley.display.summary import legible_line
from parley.errors import ParleyError
from parley.models.agent_sign_ins import SignInMethod
from parley.nvim.dialogs import Dialogs
from parley.nvim.editor import Editor
from parley.runtime.app import App
from parley.settings.values import ProviderSettings


class AgentLogin:
    """The sign-ins of an editor's user at agents of other programs."""

    def __init__(self, editor: Editor, dialogs: Dialogs, app: Callable[[], App]) -> None:
        self._editor = editor
        self._dialogs = dialogs
        self._app = app
        self._running = dict[str, asyncio.Task[None]]()

    def begin(self, provider: ProviderSettings) -> None:
        """Let the user sign in to an agent, or cancel a running sign-in."""
        running = self._running.pop(provider.name, None)
        if running is not None and not running.done():
            running.cancel()
            self._editor.message(f"the sign-in to {legible_line(provider.name)} was cancelled")
            return
        self._running[provider.name] = self._editor.spawn(self._sign_in(provider))

    async def sign_out(self, provider: ProviderSettings) -> None:
        """Let the agent delete its login. Raises ParleyError."""
        await self._app().agent_accounts.sign_out(provider)
        self._editor.message(f"signed out of {legible_line(provider.name)}")

    async def _sign_in(self, provider: ProviderSettings) -> None:
        accounts, name = self._app().agent_accounts, legible_line(provider.name)
        self._editor.message(f"asking {name} how to sign in...")
        methods = await accounts.methods(provider)
        program = shlex.join(provider.command)
        rows = [sign_in_row(method, program) for method in methods]
        number = await self._dialogs.select(f"Sign in to {name}", rows)
        if number is not None:
            await self._use(provider, methods[number])

    async def _use(self, provider: ProviderSettings, method: SignInMethod) -> None:
        accounts, name = self._app().agent_accounts, legible_line(provider.name)
        match method.kind:
            case "variables":
                raise ParleyError(
                    f"{name} needs variables. Set providers.{name}.env: "
                    f"{', '.join(method.variables)}"
                )
            case "terminal":
                command = await accounts.command(provider, method)
                code = await self._dialogs.terminal(command.words, command.env, command.folder)
                accounts.renew(provider)
                if code:
                    raise ParleyError(
                        f"the sign-in command of {name} ended with {code}: its terminal shows why"
                    )
            case "agent":
                self._editor.message(
                    f"{name} signs you in, for example in your browser. :ParleyTools shows its "
                    f"output; :ParleyLogin {name} again cancels it"
                )
                await accounts.authenticate(provider, method)
        self._editor.message(f"the sign-in to {name} is complete. Ask again")
