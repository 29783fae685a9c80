"""Lists the agents to pick from, each with its state: whether it has a key and a running server.

Knows which agents to show, and in which order; the chat knows which agent is chosen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from urllib.parse import urlsplit

from parley.addresses import flaw
from parley.display.model_rows import price, tokens
from parley.entry_points import PROVIDER_GROUP, EntryPointError, offer
from parley.models.formats import PACKAGE
from parley.nvim.agent_choices import choice_rows
from parley.nvim.chat_buffer import ChatBuffer
from parley.runtime.app import App
from parley.settings.resolve import ListedAgent
from parley.settings.values import DEMO, Agent, ProviderSettings, key_source

_LISTENS_S = 1.0
"""How many seconds a server on this machine may take to accept a connection."""


async def offer_agents(buffer: ChatBuffer) -> None:
    """Let the user pick the agent of a chat, from a list with the model and the state of each.

    The list contains at most one demo agent, at the end.
    """
    app, current = buffer.app, buffer.agent.name
    app.look_at_logins()
    agents = [app.models.listed(agent) for agent in app.settings.all_agents()]
    here = await listeners(app, agents)
    demos = [agent for agent in agents if app.provider(agent.provider).builtin]
    own = [agent for agent in demos if agent.name == current]
    demo = next((agent for agent in [*own, *demos] if agent.name in (current, DEMO)), None)
    shown = [*(agent for agent in agents if agent not in demos), *([demo] if demo else [])]
    if current not in [agent.name for agent in [*agents, *shown]]:
        shown.insert(0, replace(buffer.agent, model=""))  # its name contains the model
    rows = [{"name": a.name, "model": _model(a), "state": _state(app, a, here)} for a in shown]
    rows += choice_rows(buffer)
    more = {"name": "Other models", "model": "", "state": "all that your providers list"}
    buffer.editor.tell("pick_agent", buffer.buf, [*rows, more], current)


def _model(agent: ListedAgent) -> str:
    """An agent's model, with its window and price if the provider lists these."""
    facts = [tokens(agent.facts.window), price(agent.price)]
    return " ".join(filter(None, (agent.model, *facts)))


async def show_welcome(buffer: ChatBuffer) -> None:
    """Show, in a new chat, the agent that will answer and the key that chooses another agent."""
    buffer.app.look_at_logins()
    app, agent = buffer.app, buffer.agent
    state = _state(app, agent, await listeners(app, [agent]))
    key = app.settings.keys.agent or ":ParleyAgent"
    buffer.editor.tell("welcome", buffer.buf, f"{agent.name} answers · {state} · {key} for another")


async def lack_of(app: App, name: str) -> str:
    """Why an agent cannot answer yet, in parentheses after a space; "" if no reason is known."""
    agent = app.settings.named_agent(name)
    lack = agent and _lack(app, agent, await listeners(app, [agent]))
    return f" ({lack})" if lack else ""


def _state(app: App, agent: Agent, here: Mapping[str, bool]) -> str:
    """An agent's state in the list, where a command to install it has no room."""
    provider = app.provider(agent.provider)
    if provider.is_missing:
        return "not installed"
    base = base_url(app, provider)
    running = f"is running at {_place(base)}" if here.get(base) else ""
    return _lack(app, agent, here) or running or key_source(provider)


def _lack(app: App, agent: Agent, here: Mapping[str, bool]) -> str:
    """Why an agent cannot answer yet; "" if no reason is known."""
    provider = app.provider(agent.provider)
    if provider.kind == PACKAGE:
        try:
            offer(PROVIDER_GROUP, provider.name)
        except EntryPointError as error:
            return str(error)
    if missing := app.settings.missing_key(agent, app.environ):
        return f"no key: {provider.sign_in_command or missing}"
    if here.get(base := base_url(app, provider)) is False:
        return f"is not running at {_place(base)}"
    return key_source(provider) if provider.is_missing else ""


def _place(base: str) -> str:
    """The host and port in an address, without a password."""
    parts = urlsplit(base)
    return f"{parts.hostname}:{parts.port}" if parts.port else f"{parts.hostname}"


def base_url(app: App, provider: ProviderSettings) -> str:
    """A provider's address; "" if the SDK chooses it."""
    return app.environ.get(provider.base_url_env or "") or provider.base_url or ""


async def listeners(app: App, agents: Sequence[Agent]) -> dict[str, bool]:
    """For each local address that agents use, such as Ollama's, whether something listens there."""
    from parley.http.proxies import is_here

    bases = {base_url(app, app.provider(agent.provider)) for agent in agents}
    local = [base for base in bases if base and not flaw(base) and is_here(base)]
    return dict(zip(local, await asyncio.gather(*map(_listens, local)), strict=True))


async def _listens(base: str) -> bool:
    parts = urlsplit(base)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        async with asyncio.timeout(_LISTENS_S):
            _, writer = await asyncio.open_connection(parts.hostname, port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True
