"""Converts a user's table, from Lua or TOML, to settings, and checks that its values are
consistent.

Reports an invalid value with its path, and uses the default instead: a broken setting never keeps
Parley from starting. Does not know the tables' origin.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any

from parley.addresses import flaw
from parley.http.request_headers import name_flaw, value_flaw
from parley.instructions.project import is_plain_name
from parley.policy.rules import Pattern
from parley.settings.values import (
    OWN_MODEL,
    PROVIDERS,
    Agent,
    Key,
    ProviderSettings,
    Settings,
)
from parley.tables import NO_VALUE, Kind, TableReader, expected
from parley.text import one_line
from parley.tools.server_settings import RESERVED

_ASK = "approval.ask"
_KINDS = {
    Key: Kind(
        ("a key", "false"),
        lambda raw: raw if isinstance(raw, str) else "" if raw is False else NO_VALUE,
    )
}


def read_settings(
    table: Any, place: Callable[[str], str] = lambda _: ""
) -> tuple[Settings, tuple[str, ...]]:
    """A table's settings, and its problems, each on one line with the path.

    `place` returns the place of a path; in the line, the place precedes the path.
    """
    reader = _Reader("there is no such setting", _KINDS)
    settings = reader.settings(table)
    return settings, tuple(one_line(f"parley: {place(flaw.path)}{flaw}") for flaw in reader.flaws)


_OF_THE_SERVER = ("quirks", "model_list")


def _with_builtin(settings: Settings, table: Any) -> Settings:
    """The settings, with the values of built-in providers that the user's table does not set.

    A provider with another address receives none of the official host's values, such as its key. If
    the built-in provider is not the official host, it receives those of its server.
    """
    providers = dict(settings.providers)
    for name, provider in settings.providers.items():
        builtin = PROVIDERS.get(name)
        if builtin is None:
            continue
        is_elsewhere = provider.base_url is not None or provider.base_url_env is not None
        keys = _OF_THE_SERVER if is_elsewhere else [each.name for each in fields(builtin)]
        if not (builtin.official and is_elsewhere):
            unset = [key for key in keys if key not in table["providers"][name]]
            providers[name] = replace(provider, **{key: getattr(builtin, key) for key in unset})
    return replace(settings, providers=providers)


class _Reader(TableReader):
    """Reads settings, and then checks whether they are consistent."""

    def settings(self, table: Any) -> Settings:
        """The settings in a table, without unusable parts."""
        values = self.values(Settings, table)
        if values is NO_VALUE:
            self.flaws = [replace(flaw, path="setup") for flaw in self.flaws]
            return Settings()
        settings = self._with_headers(_with_builtin(Settings(**values), table))
        settings = self._with_agent_models(settings)
        numbered = list(enumerate(settings.agents, 1))
        sound = tuple(a for n, a in numbered if self._is_sound(settings, a, f"agents[{n}]"))
        settings = self._without_reserved(replace(settings, agents=sound))
        settings = self._with_plain_names(self._asking(settings))
        self._check_patterns(settings)
        self._check_addresses(settings)
        if settings.agent and settings.named_agent(settings.agent) is None:
            names = [agent.name for agent in settings.all_agents()]
            self._wrong("agent", "the name of an agent", settings.agent, names)
        return settings

    def _with_agent_models(self, settings: Settings) -> Settings:
        """Name a model for agents of other programs, which choose it themselves; report their
        providers if they have no command.
        """
        for name, provider in settings.providers.items():
            if provider.is_agent and not provider.command:
                self._wrong(f"providers.{name}.command", "a command with its arguments", [])
        agents = (
            replace(agent, model=agent.model or OWN_MODEL)
            if (own := settings.provider(agent.provider)) and own.is_agent
            else agent
            for agent in settings.agents
        )
        return replace(settings, agents=tuple(agents))

    def _wrong(self, path: str, noun: str, value: Any, known: Sequence[str] = ()) -> None:
        self.flaw(path, expected(noun, value, known=known))

    def _asking(self, settings: Settings) -> Settings:
        """The settings, with a rule to ask about all calls if a rule of `approval.ask` is flawed.

        The rule may have meant any call.
        """
        if not any(flaw.path.startswith(_ASK) or flaw.path == "approval" for flaw in self.flaws):
            return settings
        approval = settings.approval
        return replace(settings, approval=replace(approval, ask=(*approval.ask, Pattern("*"))))

    def _with_plain_names(self, settings: Settings) -> Settings:
        """Report instruction files outside of the project, and drop them."""
        for number, name in enumerate(settings.instructions, 1):
            if not is_plain_name(name):
                self._wrong(f"instructions[{number}]", "a file name without ..", name)
        return replace(settings, instructions=tuple(filter(is_plain_name, settings.instructions)))

    def _check_patterns(self, settings: Settings) -> None:
        """Report invalid regular expressions. Flawed rules of this kind are kept: in doubt, they
        block calls.
        """
        for number, text in enumerate(settings.safety.blocked_tool_patterns, 1):
            if len(text) > 2 and text.startswith("/") and text.endswith("/"):
                self._check_expression(f"safety.blocked_tool_patterns[{number}]", text[1:-1])
        approval = settings.approval
        rules = ("auto", approval.auto), ("deny", approval.deny), ("ask", approval.ask)
        for name, patterns in rules:
            for number, pattern in enumerate(patterns, 1):
                for key, text in pattern.args.items():
                    self._check_expression(f"approval.{name}[{number}].args.{key}", text)

    def _check_addresses(self, settings: Settings) -> None:
        """Report invalid addresses. Flawed values are kept, because the default would be another
        provider's address.
        """
        addresses = {
            f"providers.{n}.base_url": owner.base_url for n, owner in settings.providers.items()
        }
        addresses |= {
            f"mcp.servers.{n}.url": owner.url for n, owner in settings.mcp.servers.items()
        }
        for path, url in addresses.items():
            if url is not None and "${" not in url and (why := flaw(url)):
                self.flaw(path, why)

    def _with_headers(self, settings: Settings) -> Settings:
        """Report headers that cannot be sent, and drop them. Never shows a value."""
        providers = {
            name: replace(
                provider,
                headers={
                    header: value
                    for header, value in provider.headers.items()
                    if self._is_sendable(provider, header, value)
                },
            )
            for name, provider in settings.providers.items()
        }
        return replace(settings, providers=providers)

    def _is_sendable(self, provider: ProviderSettings, header: str, value: str) -> bool:
        """Whether this header can be sent; if it cannot, reports why."""
        why = name_flaw(header) or value_flaw(value)
        if not why and header.lower() == "authorization" and provider.has_key:
            why = (
                "it would replace the key that api_key_env or api_key_command provides. Set only "
                "one of them"
            )
        spellings = [name for name in provider.headers if name.lower() == header.lower()]
        if not why and spellings[0] != header:
            why = f"this header is already set as {spellings[0]}"
        if why:
            self.flaw(f"providers.{provider.name}.headers.{header}", why)
        return not why

    def _without_reserved(self, settings: Settings) -> Settings:
        """Report servers with the built-in servers' names, and drop them."""
        servers = dict(settings.mcp.servers)
        for name in RESERVED:
            if servers.pop(name, None) is not None:
                self.flaw(f"mcp.servers.{name}", "this name is reserved for a built-in server")
        return replace(settings, mcp=replace(settings.mcp, servers=servers))

    def _check_expression(self, path: str, text: str) -> None:
        try:
            re.compile(text)
        except re.error as error:
            self._wrong(path, f"a regular expression ({error})", text)

    def _is_sound(self, settings: Settings, agent: Agent, path: str) -> bool:
        """Whether this agent is usable; if it is not, reports why."""
        before = len(self.flaws)
        known = [*settings.providers, *PROVIDERS]
        if not re.fullmatch(r"[^\]\x00-\x1f]+", agent.name):
            self._wrong(f"{path}.name", "a one-line name without ]", agent.name)
        if agent.provider not in known:
            self._wrong(f"{path}.provider", "the name of a provider", agent.provider, known)
        if not agent.model:
            self._wrong(f"{path}.model", "the name of a model", agent.model)
        return len(self.flaws) == before
