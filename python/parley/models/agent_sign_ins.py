"""The sign-in methods of an agent of another program, as the agent names them. Pure.

Knows the protocol's plain JSON; does not know processes or terminals.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any, Literal

from parley.frozen import frozen
from parley.text import one_line, visible

_MOST_METHODS = 10
_NAME_SHOWN = 60
_LONGEST_ID = 1000
_MOST_WORDS = 100
_MOST_CHARACTERS = 500
"""The maximum number of characters of a command with its variables, so that the user sees all of
it."""

SignInKind = Literal["terminal", "variables", "agent"]
"""A command for a terminal, variables that the user sets, or a request that the agent answers when
the user is signed in, for example in a browser that it opens."""


@frozen
class SignInMethod:
    """A sign-in method. For a terminal, `words` follow the agent's own command; if `command` is
    set, they follow this command instead."""

    id: str
    name: str
    kind: SignInKind = "agent"
    about: str = ""
    command: str = ""
    words: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)
    variables: tuple[str, ...] = ()
    """The names of the variables that the user has to set."""

    def command_text(self, program: str = "") -> str:
        """The command for a terminal, with its variables, as a shell would take it; `program` is the
        agent's own command in this form.
        """
        variables = (f"{name}={shlex.quote(value)}" for name, value in self.env.items())
        own = shlex.quote(self.command) if self.command else program
        return " ".join(filter(None, [*variables, own, *map(shlex.quote, self.words)]))


def sign_in_methods(response: Mapping[Any, Any]) -> tuple[SignInMethod, ...]:
    """The methods in the response to `initialize`."""
    methods = response.get("authMethods")
    found = map(_method, methods) if isinstance(methods, list) else ()
    return tuple(filter(None, found))[:_MOST_METHODS]


def _method(raw: Any) -> SignInMethod | None:
    match raw:
        case {"id": str(own), "name": str(name)} if own and len(own) <= _LONGEST_ID:
            pass
        case _:
            return None
    about = raw.get("description")
    known = SignInMethod(
        own,
        one_line(name, _NAME_SHOWN),
        about=one_line(about, 2 * _NAME_SHOWN) if isinstance(about, str) else "",
    )
    # https://agentclientprotocol.com/rfds/auth-methods: a terminal method starts the agent's own
    # program with more arguments. Older agents name a whole command in `_meta`.
    match raw:
        case {"type": "terminal"}:
            return _in_terminal(known, raw)
        case {"type": "env_var", "vars": [*variables]}:
            return _of_variables(known, variables)
        case {"_meta": {"terminal-auth": {"command": str(command), **rest}}} if command:
            return _in_terminal(known, rest, command)
        case {"type": str(kind)} if kind != "agent":
            return None
    return known


def _in_terminal(
    known: SignInMethod, raw: Mapping[Any, Any], command: str = ""
) -> SignInMethod | None:
    words, env = raw.get("args") or [], raw.get("env") or {}
    if not (isinstance(words, list) and isinstance(env, dict)):
        return None
    texts = [command, *words, *env, *env.values()]
    if len(texts) > _MOST_WORDS:
        return None
    if not all(isinstance(text, str) for text in texts) or any("=" in name for name in env):
        return None
    method = SignInMethod(
        known.id, known.name, "terminal", known.about, command, tuple(words), dict(env)
    )
    text = method.command_text()
    return method if len(text) <= _MOST_CHARACTERS and visible(text) == text else None


def _of_variables(known: SignInMethod, variables: list[Any]) -> SignInMethod:
    names = tuple(_required(variables[:_MOST_WORDS]))
    return SignInMethod(known.id, known.name, "variables", known.about, variables=names)


def _required(variables: list[Any]) -> Iterator[str]:
    for each in variables:
        match each:
            case {"name": str(name)} if each.get("optional") is not True:
                yield one_line(name, _NAME_SHOWN)
