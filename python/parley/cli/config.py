"""`parley agents` and `parley config`: list agents, and settings with origins, but never keys."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import time
from collections.abc import Sequence
from typing import Any

from parley.cli.exits import COMPLETE
from parley.cli.terminal import (
    emit,
    in_the_shell,
    model_lists,
    plain,
    remark,
    say,
    say_line,
    settings,
    with_logins,
)
from parley.display.model_rows import day, rows, title
from parley.entry_points import PROVIDER_GROUP, EntryPointError, offer
from parley.errors import ParleyError
from parley.models.formats import PACKAGE
from parley.models.model_list import ListedModel, ProviderModels
from parley.settings.load import settings_file
from parley.settings.origins import SettingOrigin, entries
from parley.settings.resolve import listed_agent
from parley.settings.values import Agent, ProviderSettings, Settings, key_source
from parley.tables import did_you_mean
from parley.text import one_line

_IN_NEOVIM = "in Neovim, setup() overrides these values, but the shell cannot see its settings"


def agents(arguments: argparse.Namespace) -> int:
    """List the agents, whether each has a key, and which one answers by default."""
    if arguments.models or arguments.refresh:
        return asyncio.run(_models(refresh=arguments.refresh, as_json=arguments.json))
    known = with_logins(settings())
    default = known.default_agent(os.environ).name
    lists = model_lists()
    every = [
        listed_agent(
            agent, lists.known(known.provider(agent.provider) or ProviderSettings(agent.provider))
        )
        for agent in known.all_agents()
    ]
    widths = [max(map(len, column)) for column in zip(*map(_cells, every), strict=True)]
    for agent in every:
        has_key, key = _key(agent, known)
        is_default = agent.name == default
        if arguments.json:
            facts = {"name": agent.name, "provider": agent.provider, "model": agent.model}
            emit("agent", **facts, has_key=has_key, key=key, is_default=is_default)
            continue
        cells = "  ".join(
            cell.ljust(width) for cell, width in zip(_cells(agent), widths, strict=True)
        )
        say_line(f"{'*' if is_default else ' '} {cells}  {key}")
    return COMPLETE


async def _models(*, refresh: bool, as_json: bool) -> int:
    """List each provider's models, with their facts as far as the provider lists them."""
    from parley.runtime.app import App

    app, now = App(settings(), os.environ), time.time()
    try:
        every = await app.models.all(refresh=refresh)
    finally:
        await app.close()
    for models in every:
        if as_json:
            emit("model_list", **_list_facts(models))
            for model in models.listed.models:
                emit("model", provider=models.provider, **_model_facts(model))
            continue
        say_line(in_the_shell(title(models, now)))
        for row in rows(models.listed, day(now)):
            say_line(f"  {row}")
    return COMPLETE


def _list_facts(models: ProviderModels) -> dict[str, Any]:
    listed = models.listed
    return {
        "provider": models.provider,
        "models": len(listed.models),
        "listed": listed.at or None,
        "problem": one_line(models.problem),
    }


def _model_facts(model: ListedModel) -> dict[str, Any]:
    facts, price = model.facts, model.facts.price
    return {
        "name": model.id,
        "window": facts.window,
        "max_output": facts.max_output,
        "price": plain(price) if price else None,
        "lifecycle": model.lifecycle,
        "ends": model.ends,
    }


def _cells(agent: Agent) -> tuple[str, ...]:
    return agent.name, agent.provider, agent.model


def _key(agent: Agent, known: Settings) -> tuple[bool, str]:
    """Whether an agent's key is available, and a phrase about where Parley looks for the key."""
    provider = known.provider(agent.provider)
    assert provider is not None, "the settings have no agent without a provider"
    missing = known.missing_key(agent, os.environ)
    text = f"no key: {missing} is not set" if missing else key_source(provider)
    if missing and provider.signs_in:
        text += f"; to sign in: {in_the_shell(provider.sign_in_command)}"
    if provider.kind == PACKAGE:
        text = f"{text}, {_package(provider)}"
    return not (missing or provider.is_missing), text


def _package(provider: ProviderSettings) -> str:
    """A phrase with the provider's package, or with the reason why it has none."""
    try:
        return f"from the package {offer(PROVIDER_GROUP, provider.name).package}"
    except EntryPointError as error:
        return f"but {error}"


def config(arguments: argparse.Namespace) -> int:
    """Print all settings with the origin of each value, or the value of one setting."""
    file = settings_file(os.environ)
    rows = _below(arguments.key, entries(with_logins(settings(file)), file, os.environ))
    if arguments.json:
        for row in rows:
            emit("setting", name=row.name, value=row.value, origin=row.origin)
        return COMPLETE
    if rows[0].name == arguments.key:
        say(rows[0].value if isinstance(rows[0].value, str) else _json(rows[0].value))
        return COMPLETE
    if not arguments.key:
        say_line(f"# {file.path}" + ("" if file.is_there else ": no such file"))
    for row in rows:
        say_line(f"{row.name} = {_json(row.value)}  # {row.origin}")
    remark(_IN_NEOVIM)
    return COMPLETE


def _below(key: str, rows: Sequence[SettingOrigin]) -> Sequence[SettingOrigin]:
    """The setting or table with this name; all settings for "". Raises ParleyError."""
    below = [
        row
        for row in rows
        if not key or row.name == key or row.name.startswith((f"{key}.", f"{key}["))
    ]
    if not below:
        known = {name: None for row in rows for name in (row.name.partition(".")[0], row.name)}
        raise ParleyError(f"unknown setting {one_line(key)}{did_you_mean(key, known)}")
    return below


def _json(value: Any) -> str:
    return "none" if value is None else json.dumps(value, ensure_ascii=False)
