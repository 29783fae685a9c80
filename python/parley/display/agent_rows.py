"""Rows about agents of other programs: their sign-in methods. Pure."""

from __future__ import annotations

from parley.display.summary import legible_line
from parley.models.agent_sign_ins import SignInMethod


def sign_in_row(method: SignInMethod, program: str) -> str:
    """A sign-in method, with what it does; `program` is the agent's own command."""
    return legible_line(f"{method.name}: {_effect(method, program)}")


def _effect(method: SignInMethod, program: str) -> str:
    match method.kind:
        case "terminal":
            return f"$ {method.command_text(program)}"
        case "variables":
            return f"set {', '.join(method.variables) or 'its variables'} in the provider's env"
        case "agent":
            return method.about or "the agent does the rest itself"
