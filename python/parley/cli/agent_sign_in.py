"""`parley login` and `logout` for an agent of another program, which keeps its own login."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from parley.cli.exits import COMPLETE
from parley.cli.terminal import remark, say_line, screen
from parley.display.agent_rows import sign_in_row
from parley.errors import ParleyError, reason_of
from parley.models.agent_sign_ins import SignInMethod
from parley.settings.values import ProviderSettings
from parley.text import one_line

if TYPE_CHECKING:
    from parley.runtime.agent_accounts import TerminalCommand
    from parley.runtime.app import App


async def sign_in_to_agent(app: App, provider: ProviderSettings, way: str | None) -> int:
    """Sign the user in with the method `way`, or ask which one. Raises ParleyError."""
    accounts, name = app.agent_accounts, provider.name
    method = _chosen(provider, await accounts.methods(provider), way)
    match method.kind:
        case "variables":
            names = ", ".join(method.variables)
            raise ParleyError(f"{name} needs variables. Set providers.{name}.env: {names}")
        case "terminal":
            if not screen().can_ask:
                raise ParleyError(f"the sign-in to {name} needs a terminal. Run it in one")
            command = await accounts.command(provider, method)
            if way is not None:  # no list has shown the command
                remark(sign_in_row(method, shlex.join(provider.command)))
            await _run(name, command)
        case "agent":
            remark(f"{name} signs you in, for example in your browser; Ctrl-C cancels it")
            await accounts.authenticate(provider, method)
    say_line(f"the sign-in to {name} is complete")
    return COMPLETE


async def sign_out_of_agent(app: App, provider: ProviderSettings) -> int:
    """Let the agent delete its login. Raises ParleyError."""
    await app.agent_accounts.sign_out(provider)
    say_line(f"signed out of {provider.name}")
    return COMPLETE


def _chosen(
    provider: ProviderSettings, methods: Sequence[SignInMethod], way: str | None
) -> SignInMethod:
    """The method with the id or number `way`, or the method that the user picks. Raises
    ParleyError.
    """
    if way is None and not screen().can_ask:
        if len(methods) == 1:
            return methods[0]
        known = ", ".join(one_line(method.id, 60) for method in methods)
        raise ParleyError(
            f"{provider.name} offers {len(methods)} sign-in methods. Pass --method with one of "
            f"{known}"
        )
    program = shlex.join(provider.command)
    if is_listed := way is None:
        for number, method in enumerate(methods, 1):
            say_line(f"{number}: {sign_in_row(method, program)}")
        way = screen().line(f"Sign in to {one_line(provider.name)} with number: ").strip()
    numbers = {str(number): method for number, method in enumerate(methods, 1)}
    ids = {method.id: method for method in methods}
    by_name = ids | numbers if is_listed else numbers | ids
    if way not in by_name:
        known = ", ".join(one_line(method.id, 60) for method in methods)
        raise ParleyError(
            f"{provider.name} has no sign-in method {one_line(way, 60)!r}. Choose one of {known}"
        )
    return by_name[way]


async def _run(name: str, command: TerminalCommand) -> None:
    """Run a command in this terminal. Raises ParleyError if it fails."""
    try:
        process = await asyncio.create_subprocess_exec(
            *command.words, env=dict(command.env), cwd=command.folder
        )
    except OSError as error:
        raise ParleyError(
            f"the sign-in command of {name} did not start: {reason_of(error)}"
        ) from error
    if code := await process.wait():
        raise ParleyError(f"the sign-in command of {name} ended with {code}")
