"""Rows about agents of other programs: their sign-in methods. Pure."""

from __future__ import annotations

import shlex

from parley.display.summary import legible_line
from parley.models.agent_sign_ins import SignInMethod
from parley.text import one_line

_COMMAND_SHOWN = 100


def sign_in_row(method: SignInMethod, program: str) -> str:
    """A sign-in method, with what it does; `program` is the agent's own command."""
    return legible_line(f"{method.name}: {_effect(method, program)}")


def sign_in_command(method: SignInMethod, program: str) -> str:
    """The command that a terminal would run, which the user sees first."""
    words = shlex.join(filter(None, [method.command, *method.words]))
    return one_line(words if method.command else f"{program} {words}".strip(), _COMMAND_SHOWN)


def _effect(method: SignInMethod, program: str) -> str:
    match method.kind:
        case "terminal":
            return f"$ {sign_in_command(method, program)}"
        case "variables":
            return f"set {', '.join(method.variables) or 'its variables'} in the provider's env"
        case "agent":
            return method.about or "the agent does the rest itself"
