"""The host's part of the health report: agents and their keys, servers, and the ledger.

Reports where Parley found a key, but never the key.
"""

from __future__ import annotations

import asyncio
import os
import platform
import sys
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, Literal, TypeAlias

from parley.chat.transcript import Transcript
from parley.display.summary import legible_line
from parley.entry_points import PROVIDER_GROUP, EntryPointError, offer
from parley.errors import ParleyError
from parley.models.formats import PACKAGE, sdks, searching_format
from parley.models.searches import cannot_search, is_web_search
from parley.nvim.agents import base_url, listeners
from parley.paths import config_path
from parley.runtime.app import App
from parley.settings.origins import address
from parley.settings.values import DEMO, Agent, ProviderSettings, key_source
from parley.storage.ledger import default_path
from parley.text import counted, one_line, size_text
from parley.tools.server_settings import MOCK, WORKSPACE, ServerStatus

Line: TypeAlias = tuple[Literal["start", "ok", "info", "warn", "error"], str, list[str]]
"""A line of the report: level, text, advice."""

PACKAGES = ("pynvim", *(sdk.package for sdk in sdks()), "mcp", "httpx2", "jsonschema", "PyYAML")


async def report(app: App) -> list[dict[str, Any]]:
    """The report's lines for Lua. Starts the servers."""
    app.look_at_logins()
    agents = app.settings.all_agents()
    here, _ = await asyncio.gather(listeners(app, agents), app.servers.catalogue())
    await app.models.fetch_for(agent for agent in agents if _may_list(app, agent, here))
    lines = [
        *_packages(),
        ("start", "parley: agents", []),
        _new_chats(app),
        *(_agent(app, app.models.listed(agent), here) for agent in agents),
        ("start", "parley: MCP servers", []),
        *(_server(status) for status in app.servers.status()),
        _workspace(app),
        ("start", "parley: files", []),
        *_files(app),
    ]
    return [{"level": level, "text": text, "advice": advice} for level, text, advice in lines]


def _packages() -> Iterator[Line]:
    yield "ok", f"Python {platform.python_version()}: {sys.executable}", []
    for name in PACKAGES:
        try:
            yield "ok", f"{name} {metadata.version(name)}", []
        except metadata.PackageNotFoundError:
            yield (
                "error",
                f"{name} is not installed",
                ["Run :ParleyInstall! to rebuild the environment"],
            )


def _new_chats(app: App) -> Line:
    """The agent that answers in new chats, and the reason."""
    settings, environ = app.settings, app.environ
    agent = settings.default_agent(environ)
    text, missing = f"new chats use {agent.name}", settings.missing_key(agent, environ)
    if agent.name == settings.agent:
        text += ": your settings set `agent` to it"
        if missing:
            advice = [f"export {missing}=...", app.provider(agent.provider).sign_in_command]
            return "warn", f"{text}, but it has no key", [*filter(None, advice)]
        return "ok", text, []
    if agent == settings.named_agent(DEMO):
        return "ok", f"{text}: no key is set, and your settings do not set `agent`", []
    why = (
        "the first installed agent below, and no key is set"
        if app.provider(agent.provider).is_installed
        else "the first agent below with a key"
    )
    return "ok", f"{text}: it is {why}; to use another, set `agent`", []


def _may_list(app: App, agent: Agent, here: Mapping[str, bool]) -> bool:
    """Whether a provider may be asked for its models: if the user set a key for it, or it is on
    this machine.
    """
    provider = app.provider(agent.provider)
    has_key = bool(provider.api_key_env or provider.api_key_command)
    is_usable = has_key and not app.settings.missing_key(agent, app.environ)
    return is_usable or here.get(base_url(app, provider), False)


def _agent(app: App, agent: Agent, here: Mapping[str, bool]) -> Line:
    provider = app.provider(agent.provider)
    where = f"{agent.name}: {f'{agent.model} of ' if agent.model else ''}{agent.provider}"
    base = base_url(app, provider)
    where += f" at {address(base)}" if base else ""
    if provider.kind == PACKAGE:
        try:
            where += f" from the package {offer(PROVIDER_GROUP, provider.name).package}"
        except EntryPointError as error:
            return "error", f"{where}: {error}", []
    if missing := app.settings.missing_key(agent, app.environ):
        ways = filter(None, (f"export {missing}=...", provider.sign_in_command))
        return "info", f"{where}: no key. To use the agent: {' or '.join(ways)}", []
    if provider.is_missing:
        return "info", f"{where}: {key_source(provider)}", []
    if not here.get(base, True):
        return "info", f"{where}: nothing is listening there; start the server to use the agent", []
    if why := app.models.problem(agent):
        return "warn", f"{where}: {why}", ["Choose another: :ParleyAgent lists the models"]
    if agent.web_search and not _can_search(app, provider):
        return "warn", f"{where}: {cannot_search(agent.provider)}", []
    listens = ", and a server is listening there" if base in here else ""
    return "ok", f"{where}: {key_source(provider)}{listens}", []


def _can_search(app: App, provider: ProviderSettings) -> bool:
    """Whether a provider, or a server's tool, can search the web."""
    servers = (status for status in app.servers.status() if status.name != MOCK)
    tools = (tool for status in servers for tool in status.tools)
    form = searching_format(provider.kind, provider.api, is_official=provider.official)
    return form is not None or any(map(is_web_search, tools))


def _server(status: ServerStatus) -> Line:
    if not status.enabled:
        return "info", f"{status.name}: disabled", []
    if status.state == "failed":
        advice = [f"stderr: {line}" for line in status.stderr[-3:]] or ["See :ParleyTools"]
        return "error", f"{status.name}: {status.error}", advice
    if status.state == "starting":
        return "warn", f"{status.name}: still starting", ["See :ParleyTools"]
    protocol = f", protocol {status.protocol}" if status.protocol else ""
    tools = counted(len(status.tools), "tool")
    return "ok", f"{status.name}: {status.state}{protocol}, {tools}", []


def _workspace(app: App) -> Line:
    """The folder of Parley's own file tools, or why they are not offered."""
    if app.workspace.root.path:
        return "info", f"{WORKSPACE}: its tools work in {app.workspace.root.path}", []
    return "info", f"{WORKSPACE} is not offered: {app.workspace.root.reason}", []


def _files(app: App) -> Iterator[Line]:
    config, ledger = config_path(app.environ), default_path(app.environ)
    yield (
        "info",
        f"editor and shell settings: {config}" + ("" if config.exists() else " (missing)"),
        [],
    )
    if servers := app.settings.mcp.config_file:
        yield "info", f"MCP servers from mcp.config_file: {servers}", []
    yield from _project(app)
    yield from _texts(app)
    try:
        app.ledger("/").view()
        yield "ok", f"approval ledger: {ledger} ({_extent(app, ledger)})", []
    except ParleyError as error:
        yield "error", str(error), [f"Make {_nearest(ledger)} writable"]


def _extent(app: App, ledger: Path) -> str:
    """The ledger's size, and how long it keeps records."""
    size, days = size_text(ledger.stat().st_size), app.settings.log.keep_days
    if not days:
        return f"{size}, keeps all records because `log.keep_days` is 0"
    return f"{size}, keeps records for {counted(days, 'day')}: `log.keep_days`"


def _project(app: App) -> Iterator[Line]:
    """The working directory's server files, and whether the user trusts them."""
    for path in app.untrusted():
        yield (
            "warn",
            f"{path} is not used because you have not trusted it",
            ["To review it, press t in :ParleyTools"],
        )
    for path in app.trusted():
        yield "ok", f"{path} is trusted, and its MCP servers are used", []
    found = app.instructions(Transcript())
    for text in found.offered:
        yield (
            "warn",
            f"{legible_line(text.name)} is not sent because you have not agreed to it",
            ["To review it, ask a question, or press t in :ParleyTools"],
        )
    for each in found.agreed:
        yield "ok", f"instructions from {legible_line(each.name)} are sent", []
    for problem in app.problems():
        yield "warn", problem.removeprefix("parley: "), ["Fix the file, then trust it again"]


def _texts(app: App) -> Iterator[Line]:
    """The skills and prompts, and the files that are flawed or not trusted."""
    skills = app.skills
    if app.settings.skills.enabled:
        yield "info", f"{counted(len(skills.skills), 'skill')} for models that have tools", []
    for skill in skills.untrusted:
        text = f"the skill {one_line(skill.place)} is not used: you have not trusted it"
        yield "warn", text, ["To review it, press t in :ParleyTools"]
    for problem in skills.problems:
        yield "warn", problem.removeprefix("parley: "), []
    prompts, problems = app.prompts.folders.look()
    yield "info", f"{counted(len(prompts), 'prompt file')} for questions", []
    for prompt in prompts:
        if prompt.flaw:
            yield "warn", one_line(f"{prompt.path}: {prompt.flaw}"), []
    for text in problems:
        yield "warn", one_line(text), []


def _nearest(path: Path) -> Path:
    return next((p for p in path.parents if p.exists()), Path(os.sep))
