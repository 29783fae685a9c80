"""Resolves a chat's settings: merges the settings from the user, the agent and the front matter.

The front matter selects and restricts; it never allows more than the settings do. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any

from parley.chat.front_matter import FrontMatter, read_front_matter
from parley.chat.options import CallLimits, ToolMode
from parley.chat.transcript import Transcript
from parley.engine import ChatSettings
from parley.frozen import frozen
from parley.instructions.project import Instructions, instruction_block
from parley.models.context_window import known_window
from parley.models.formats import of_kind
from parley.models.model_choice import newest_model
from parley.models.model_facts import NO_FACTS, ModelFacts
from parley.models.model_list import ModelList
from parley.models.request import Request, TextTools
from parley.models.text_tools.template import Templates, builtin_templates, template_for
from parley.models.tool_room import ToolRoom
from parley.policy.permissions import is_of_workspace
from parley.policy.rules import Rules
from parley.policy.turn_limits import Limits
from parley.settings.load import merged
from parley.settings.values import (
    OWN_MODEL,
    TEXT_TOOLS_MAX_TOKENS,
    TOOLS_SHARE,
    TOOLS_TOKENS,
    Agent,
    AgentLimits,
    AgentLoop,
    Loop,
    ProviderSettings,
    Safety,
    Settings,
)
from parley.text import one_line
from parley.tools.agent_calls import agent_catalogue, agent_identity
from parley.tools.catalogue import Catalogue, Tool
from parley.tools.selection import may_take, takes
from parley.tools.server_settings import MOCK, WORKSPACE

_CHOICE_SHOWN = 40
_OF_AGENTS = Loop(max_iterations=1000, max_consecutive_errors=1000, timeout_s=4 * 3600.0)
"""The limits for agents of other programs, unless the user's entry for the agent sets limits: these
agents work for a long time, and have their own limits."""


@frozen
class ListedAgent(Agent):
    """An agent with the model that it uses, and what its provider's list states about the model."""

    facts: ModelFacts = NO_FACTS


def listed_agent(agent: Agent, models: ModelList) -> ListedAgent:
    """The agent with its model and the facts about it, from its provider's list."""
    model = newest_model(agent.newest, models.models) or agent.model
    entry = models.find(model)
    facts = entry.facts if entry else NO_FACTS
    own = {each.name: getattr(agent, each.name) for each in fields(Agent)}
    own |= {"model": model, "price": agent.price or facts.price}
    return ListedAgent(**own, facts=facts)


def agent_of(
    transcript: Transcript, settings: Settings, environ: Mapping[str, str], chosen: str | None
) -> Agent:
    """A chat's agent: the chosen agent, else the front matter's agent, else the default agent."""
    keys = read_front_matter(transcript.front_matter).keys
    named = settings.named_agent(chosen or keys.get("agent", ""))
    agent = named or settings.default_agent(environ)
    if chosen:
        return agent
    provider = keys.get("provider", agent.provider)
    known = provider if settings.provider(provider) else agent.provider
    is_same = known == agent.provider and "model" not in keys
    return replace(
        agent,
        provider=known,
        model=keys.get("model", agent.model),
        newest=agent.newest if is_same else (),
    )


def chat_settings(
    transcript: Transcript,
    settings: Settings,
    agent: Agent,
    templates: Templates | None = None,
    skills: Tool | None = None,
    instructions: Instructions = (),
) -> ChatSettings:
    """The settings for a turn in this chat with this agent; built-in templates by default.

    `skills` is the tool that reads skills, if there are any; it is a tool like any other. The
    system prompt ends with the `instructions`.
    """
    front = read_front_matter(transcript.front_matter)
    provider = settings.provider(agent.provider) or ProviderSettings(agent.provider)
    if provider.is_agent:
        instructions, skills = (), None  # it finds both itself
    loop = _OF_AGENTS if provider.is_agent else settings.loop
    own, least = agent.loop or AgentLoop(), agent.limits or AgentLimits()
    safety = _lowered(settings.safety, least)
    settings = replace(settings, safety=safety)
    limits = _call_limits(_own_calls(settings.max_tool_calls, least.max_tool_calls), front)
    return ChatSettings(
        agent=", ".join([agent.name, *(_choices(front) if provider.is_agent else [])]),
        request=_with_tools(
            _ask(transcript, settings, agent, provider, front, instructions),
            settings,
            provider,
            tool_mode(settings, agent, front),
            templates or builtin_templates(),
        ),
        limits=Limits(
            per_message=limits.per_message,
            per_session=limits.per_session,
            max_iterations=own.max_iterations or loop.max_iterations,
            max_consecutive_errors=own.max_consecutive_errors or loop.max_consecutive_errors,
            max_tools_per_request=safety.max_tools_per_request,
            blocked=safety.blocked_tool_patterns,
        ),
        rules=Rules(
            settings.approval.auto,
            settings.approval.deny,
            settings.approval.auto_read_only,
            settings.approval.ask,
        ),
        tools=_narrowing(settings, agent, provider, front),
        scope=settings.keys.scope,
        parallel=settings.loop.parallel,
        timeout_s=loop.timeout_s if own.timeout_s is None else own.timeout_s,
        result_max_bytes=settings.loop.result_max_bytes,
        skills=skills if skills and _takes(_globs(agent, front), skills) else None,
    )


def _choices(front: FrontMatter) -> Iterator[str]:
    """The front matter's choices for an agent of another program, as an answer's line can contain
    them.
    """
    for key in ("model", "mode"):
        if (value := front.keys.get(key)) and (key, value) != ("model", OWN_MODEL):
            plain = re.sub(r"[\[\]]", "_", value)
            yield f"{key} {one_line(plain, _CHOICE_SHOWN)}"


def _ask(
    transcript: Transcript,
    settings: Settings,
    agent: Agent,
    provider: ProviderSettings,
    front: FrontMatter,
    instructions: Instructions,
) -> Request:
    keys = front.keys
    most = settings.safety.max_tokens_per_request
    max_tokens = keys.get("max_tokens", agent.max_tokens)
    # An agent of another program has instructions of its own, so it receives only the user's.
    usual = "" if provider.is_agent else settings.system_prompt
    system = keys.get(
        "system_prompt", usual if agent.system_prompt is None else agent.system_prompt
    )
    more = keys.get("system_prompt+")
    return Request(
        transcript=transcript,
        at=0,
        provider=provider.name,
        model=agent.model,
        system="\n\n".join(filter(None, (system, more, instruction_block(instructions)))),
        instructions=instructions,
        mode=keys.get("mode", ""),
        max_tokens=min(filter(None, (max_tokens, most)), default=None),
        temperature=keys.get("temperature", agent.temperature),
        web_search=keys.get("web_search", agent.web_search)
        and tool_mode(settings, agent, front) != "off",
        thinking=replace(agent.thinking or settings.thinking, **keys.get("thinking", {})),
        max_full_exchanges=keys.get("max_full_exchanges", settings.max_full_exchanges),
        quirks=provider.quirks,
        price=agent.price,
        parameters=parameters(provider, agent),
        facts=_facts(agent),
    )


def _facts(agent: Agent) -> ModelFacts:
    """The facts about the agent's model; the agent's own settings take precedence."""
    facts = agent.facts if isinstance(agent, ListedAgent) else NO_FACTS
    return replace(
        facts,
        window=agent.window or facts.window,
        max_output=agent.max_output or facts.max_output,
    )


def parameters(provider: ProviderSettings, agent: Agent) -> Mapping[str, Any]:
    """The user's own fields for the bodies of an agent's requests."""
    return merged(provider.parameters, agent.parameters)


def tool_mode(settings: Settings, agent: Agent, front: FrontMatter) -> ToolMode:
    """The tool mode from the file, else from the agent, else from the settings; "off" cannot be
    overridden.
    """
    configured = agent.tool_mode or settings.tool_mode
    mode: ToolMode = front.keys.get("tool_mode", configured)
    return "off" if configured == "off" else mode


def _with_tools(
    request: Request,
    settings: Settings,
    provider: ProviderSettings,
    mode: ToolMode,
    templates: Templates,
) -> Request:
    """The request, with its room for tools and its settings for tools as text.

    Even with tools off, earlier calls may have to be text, because providers without tools do not
    understand calls.
    """
    window = known_window(request.model, request.facts)
    room = _tool_room(window, settings, provider, mode)
    if room.count and request.web_search:
        room = replace(room, count=room.count - 1)  # the search is a tool, too
    request = replace(request, tool_room=room)
    if mode == "native":
        return request
    text_tools = TextTools(
        mode="auto" if mode == "off" else mode,
        template=template_for(request.model, templates),
        filter=settings.xml.filter,
        most_tokens=settings.safety.max_tokens_per_request or TEXT_TOOLS_MAX_TOKENS,
    )
    return replace(request, text_tools=text_tools)


def _tool_room(
    window: int | None, settings: Settings, provider: ProviderSettings, mode: ToolMode
) -> ToolRoom:
    """The room that tools may take in a model's window."""
    tokens = settings.tools.budget_tokens
    if tokens is None:
        tokens = int(window * TOOLS_SHARE) if window else TOOLS_TOKENS
    most = min(
        (entry.most_tools for entry in of_kind(provider.kind) if entry.most_tools), default=None
    )
    return ToolRoom(tokens, None if mode in ("json", "xml") else most)


def _call_limits(limits: CallLimits, front: FrontMatter) -> CallLimits:
    """The lower value for each limit, because a file can only lower limits."""
    table = front.keys.get("max_tool_calls", {})
    return CallLimits(
        _lower(limits.per_message, table.get("per_message")),
        _lower(limits.per_session, table.get("per_session")),
    )


def _own_calls(limits: CallLimits, own: CallLimits | None) -> CallLimits:
    """The limits in the settings, replaced by the agent's own limits."""
    if own is None:
        return limits
    return CallLimits(
        limits.per_message if own.per_message is None else own.per_message,
        limits.per_session if own.per_session is None else own.per_session,
    )


def _lowered(safety: Safety, own: AgentLimits) -> Safety:
    """The limits that an agent can only lower."""
    calls = _lower(safety.max_tools_per_request, own.max_tools_per_request)
    tokens = filter(None, (safety.max_tokens_per_request, own.max_tokens_per_request))
    return replace(
        safety, max_tools_per_request=calls or 0, max_tokens_per_request=min(tokens, default=None)
    )


def _lower(one: int | None, other: int | None) -> int | None:
    return min((limit for limit in (one, other) if limit is not None), default=None)


def names(wire: str, tool: Tool) -> tuple[str, ...]:
    """The names of a tool that a glob may match."""
    return wire, tool.name, f"{tool.server}/{tool.name}"


def _globs(agent: Agent, front: FrontMatter) -> list[Any]:
    """The lists of globs that a tool must match."""
    return [g for g in (agent.tools, front.keys.get("tools")) if g is not None]


def _takes(globs: Iterable[Any], tool: Tool) -> bool:
    return all(takes(glob, names(tool.name, tool)) for glob in globs)


def _narrowing(
    settings: Settings, agent: Agent, provider: ProviderSettings, front: FrontMatter
) -> Any:
    """The function that reduces the catalogue to this chat's tools; None if tools are off."""
    if tool_mode(settings, agent, front) == "off":
        return None
    globs = _globs(agent, front)
    if provider.is_agent:
        own = agent_catalogue(provider.name, agent_identity(provider.command, provider.cwd))
        return partial(_agents_tools, [t for _, t in own.tools if _takes(globs, t)], globs)
    mock = settings.mcp.mock or provider.builtin

    def narrow(catalogue: Catalogue) -> Catalogue:
        tools = (
            (wire, tool)
            for wire, tool in catalogue.tools
            if (mock or tool.server != MOCK)
            and all(takes(glob, names(wire, tool)) for glob in globs)
        )
        servers = (server for server in catalogue.missing if mock or server != MOCK)
        return Catalogue(
            tuple(tools), tuple(s for s in servers if all(may_take(g, s) for g in globs))
        )

    return narrow


def _agents_tools(kinds: Sequence[Tool], globs: Sequence[Any], catalogue: Catalogue) -> Catalogue:
    """The tools of an agent of another program: its kinds of calls, and the workspace's tools that
    it may ask Parley for."""
    from parley.tools.client_calls import CLIENT_TOOLS

    asked = (
        tool
        for _, tool in catalogue.tools
        if is_of_workspace(tool) and tool.name in CLIENT_TOOLS.values() and _takes(globs, tool)
    )
    missing = [name for name in catalogue.missing if name == WORKSPACE]
    return Catalogue.of([*kinds, *asked], missing)
