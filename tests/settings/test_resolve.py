"""A chat's settings: the file selects and restricts, and never extends what the settings allow."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.chat.options import CallLimits, ThinkingSettings
from parley.chat.reader import parse
from parley.engine import ChatSettings
from parley.models.tool_room import ToolRoom
from parley.policy.rules import Pattern, Rules
from parley.settings.read import read_settings
from parley.settings.resolve import agent_of, chat_settings
from parley.settings.values import (
    AGENTS,
    Agent,
    AgentLimits,
    Approval,
    Mcp,
    ProviderSettings,
    Safety,
    Settings,
    Tools,
)
from parley.tools.catalogue import Catalogue
from parley.tools.server_settings import MOCK, ServerSettings
from parley.tools.skill_tool import skill_tool
from tests.chats import tool
from tests.examples import examples

AGENT = Agent("Demo", "demo", "demo", max_tokens=1000, temperature=0.3)
TOOLS = Catalogue.of([tool(), tool("read_file"), tool("remove", "other"), tool("web_search", MOCK)])


def look(
    front_matter: str = "", using: Settings | None = None, agent: Agent = AGENT
) -> ChatSettings:
    text = f"---\n{front_matter}\n---\n💬: q\n" if front_matter else "💬: q\n"
    return chat_settings(parse(text), using or Settings(), agent)


def offered(settings: ChatSettings) -> list[str]:
    return (
        [f"{t.server}/{t.name}" for _, t in settings.tools(TOOLS).tools] if settings.tools else []
    )


ALL = ["demo/read_file", "other/remove", "demo/web_search", "mock/web_search"]


@pytest.mark.parametrize(
    ("front_matter", "globs", "left"),
    [
        ("", None, ALL),
        ("tools: ['*']", None, ALL),
        ("tools: []", None, []),
        ("tools: ['demo/*']", None, ["demo/read_file", "demo/web_search"]),
        ("tools: [read_file]", None, ["demo/read_file"]),
        ("tools: ['*']", ("other/*",), ["other/remove"]),
        ("tools: ['demo/*']", ("other/*",), []),
        ("tools: '*'", ("other/*",), ["other/remove"]),
        ("tool_mode: 'off'", None, []),
        ("", (), []),
    ],
)
def test_a_chat_can_only_reduce_the_tools(front_matter: str, globs: Any, left: list[str]) -> None:
    assert sorted(offered(look(front_matter, agent=replace(AGENT, tools=globs)))) == sorted(left)


def test_tools_that_the_agent_disables_stay_off() -> None:
    off = replace(AGENT, tool_mode="off")
    assert look("tool_mode: native\ntools: ['*']", agent=off).tools is None


def test_the_mock_server_is_for_the_demo_and_on_request() -> None:
    own = Settings(mcp=Mcp({"demo": ServerSettings("demo", "x")}))
    claude = replace(AGENT, provider="anthropic")
    assert "mock/web_search" not in offered(look(using=own, agent=claude))
    assert "mock/web_search" in offered(look(using=own))
    assert "mock/web_search" not in offered(look(agent=claude))
    assert "mock/web_search" in offered(
        look(using=replace(own, mcp=replace(own.mcp, mock=True)), agent=claude)
    )


def test_the_gemini_agent_names_an_alias_that_stays_current() -> None:
    """Its provider keeps this alias pointing at a served model (ai.google.dev, 2026-11-24)."""
    (gemini,) = (agent for agent in AGENTS if agent.provider == "gemini")
    assert gemini.model in ("gemini-pro-latest", "gemini-flash-latest", "gemini-flash-lite-latest")


@pytest.mark.parametrize(
    ("set_", "wish", "left"),
    [
        (CallLimits(), "3", (3, None)),
        (CallLimits(5, 9), "3", (3, 9)),
        (CallLimits(2, 9), "3", (2, 9)),
        (CallLimits(5, 9), "{per_session: 4}", (5, 4)),
        (CallLimits(5, 9), "{per_message: 50, per_session: 90}", (5, 9)),
        (CallLimits(0, None), "10", (0, None)),
        (CallLimits(5, None), "-1", (5, None)),
        (CallLimits(5, None), "{}", (5, None)),
        (CallLimits(5, None), "0", (0, None)),
    ],
)
def test_a_chat_can_only_lower_limits(set_: CallLimits, wish: str, left: tuple[Any, Any]) -> None:
    limits = look(f"max_tool_calls: {wish}", Settings(max_tool_calls=set_)).limits
    assert (limits.per_message, limits.per_session) == left


def test_the_token_limit_applies_to_agent_and_file() -> None:
    bound = Settings(safety=Safety(max_tokens_per_request=500))
    assert look().request.max_tokens == 1000
    assert look("max_tokens: 2000").request.max_tokens == 2000
    assert look("max_tokens: 2000", bound).request.max_tokens == 500
    assert look("max_tokens: 100", bound).request.max_tokens == 100
    assert look("", bound, replace(AGENT, max_tokens=None)).request.max_tokens == 500
    assert look("max_tokens: 0", bound).request.max_tokens == 500


def test_the_system_prompt_is_replaced_or_extended() -> None:
    base = Settings(system_prompt="Base.")
    assert look("", base).request.system == "Base."
    assert look("system_prompt: Mine.", base).request.system == "Mine."
    assert look("system_prompt+: More.", base).request.system == "Base.\n\nMore."
    assert (
        look("system_prompt: Mine.\nsystem_prompt+: More.", base).request.system == "Mine.\n\nMore."
    )
    assert look("system_prompt: ''", base).request.system == ""
    own = replace(AGENT, system_prompt="Agent's.")
    assert look("", base, own).request.system == "Agent's."
    assert look("", base, replace(AGENT, system_prompt="")).request.system == ""


def test_thinking_can_be_switched() -> None:
    thinking = Settings(thinking=ThinkingSettings(budget_tokens=5000))
    assert look("thinking: false", thinking).request.thinking == ThinkingSettings(False, 5000)
    assert look("thinking: {enabled: false}", thinking).request.thinking == ThinkingSettings(
        False, 5000
    )
    assert look("thinking: {enabled: nonsense}", thinking).request.thinking == ThinkingSettings(
        True, 5000
    )


def test_a_file_can_set_all_thinking_options() -> None:
    base = Settings(thinking=ThinkingSettings(budget_tokens=5000))
    every = "{enabled: true, budget_tokens: 2000, effort: low, show: false}"
    assert look(f"thinking: {every}", base).request.thinking == ThinkingSettings(
        True, 2000, "low", False
    )
    assert look("thinking: {effort: max}", base).request.thinking == ThinkingSettings(
        True, 5000, "max"
    )
    assert look("thinking: {show: false}", base).request.thinking == ThinkingSettings(
        True, 5000, None, False
    )
    assert look("thinking: {}", base).request.thinking == ThinkingSettings(True, 5000)


def test_a_file_can_set_the_rest_of_a_request() -> None:
    request = look("temperature: 1\nmax_full_exchanges: 3").request
    assert (request.temperature, request.max_full_exchanges, request.provider, request.model) == (
        1,
        3,
        "demo",
        "demo",
    )
    assert (look().request.temperature, look().request.max_full_exchanges) == (0.3, 42)


def whom(
    front_matter: str, chosen: str | None = None, using: Settings | None = None
) -> tuple[str, str, str]:
    text = f"---\n{front_matter}\n---\n💬: q\n"
    agent = agent_of(parse(text), using or Settings(), {}, chosen)
    return agent.name, agent.provider, agent.model


@pytest.mark.parametrize(
    ("provider", "model", "mode", "room"),
    [
        ("anthropic", "claude-sonnet-5-5", "auto", ToolRoom(150_000)),
        ("openai", "gpt-4o", "auto", ToolRoom(19_200, 128)),
        ("openai", "gpt-4o", "native", ToolRoom(19_200, 128)),
        ("openai", "gpt-4o", "json", ToolRoom(19_200)),
        ("ollama", "llama3.1", "auto", ToolRoom(8_000, 128)),
        ("ollama", "llama3.1", "xml", ToolRoom(8_000)),
    ],
)
def test_tools_have_a_share_of_the_window_and_of_the_provider_limit(
    provider: str, model: str, mode: Any, room: ToolRoom
) -> None:
    agent = Agent("A", provider, model, tool_mode=mode)
    assert look(agent=agent).request.tool_room == room
    budget = Settings(tools=Tools(77))
    assert look(using=budget, agent=agent).request.tool_room == replace(room, tokens=77)
    searching = look(agent=replace(agent, web_search=True)).request.tool_room
    assert searching == replace(room, count=room.count and room.count - 1)


def test_a_chats_agent_comes_from_the_file_or_the_default() -> None:
    claude = ("Claude", "anthropic", "claude-sonnet-5-5")
    assert whom("topic: x") == ("Demo", "demo", "demo")
    assert whom("agent: Claude") == claude
    assert whom("agent: Claude", chosen="Demo") == ("Demo", "demo", "demo")
    assert whom("agent: Nobody") == ("Demo", "demo", "demo")
    assert whom("agent: Nobody", chosen="Claude") == claude
    assert whom("provider: openai\nmodel: gpt") == ("Demo", "openai", "gpt")
    assert whom("provider: https://evil.example\nmodel: m") == ("Demo", "demo", "m")
    assert whom("provider: openai\nmodel: gpt", chosen="Claude") == claude


keys = st.sampled_from(
    [
        *[
            "tools: ['*']",
            "tool_mode: native",
            "tool_mode: json",
            "max_tool_calls: 99",
            "max_tokens: 99999",
        ],
        *[
            "approval: {auto: ['*']}",
            "safety: {}",
            "loop: {max_iterations: 99}",
            "keys: {scope: case}",
            "x",
        ],
        *[
            "max_tool_calls: {per_message: 99}",
            "agent: Claude",
            "mcp: {servers: {}}",
            "base_url: http://x",
            "- a",
        ],
    ]
)


@examples(60)
@given(st.lists(keys, max_size=6).map("\n".join))
def test_no_front_matter_extends_what_the_settings_allow(front_matter: str) -> None:
    strict = Settings(
        max_tool_calls=CallLimits(2, 3),
        safety=Safety(max_tokens_per_request=50, blocked_tool_patterns=("rm",)),
        approval=Approval(deny=(Pattern("*/*"),)),
    )
    agent = replace(AGENT, tools=("other/*",))
    plain, made = look("", strict, agent), look(front_matter, strict, agent)
    assert made.limits == plain.limits
    assert made.rules == Rules(deny=(Pattern("*/*"),))
    assert set(offered(made)) <= set(offered(plain))
    assert (made.request.max_tokens or 0) <= 50
    assert (made.scope, made.parallel, made.timeout_s, made.request.quirks) == (
        plain.scope,
        plain.parallel,
        plain.timeout_s,
        plain.request.quirks,
    )


def test_an_agent_may_have_limits_of_its_own() -> None:
    table = {
        "agents": [
            {"name": "Coder", "provider": "demo", "model": "demo", "loop": {"max_iterations": 60}}
        ],
        "loop": {"max_iterations": 7, "timeout_s": 9},
    }
    settings, problems = read_settings(table)
    assert problems == ()
    agents = {agent.name: agent for agent in settings.all_agents()}
    found = [chat_settings(parse("💬: x\n"), settings, agents[name]) for name in ("Coder", "Demo")]
    assert [each.limits.max_iterations for each in found] == [60, 7]
    assert [each.timeout_s for each in found] == [9, 9]


limit = st.none() | st.integers(0, 9)


@given(limit, limit, limit, limit, st.sampled_from(["", "max_tool_calls: 4"]))
def test_an_agents_limit_of_calls_replaces_the_setting_and_a_file_lowers_it(
    setting: int | None, per_file: int | None, own: int | None, own_per_file: int | None, front: str
) -> None:
    agent = replace(AGENT, limits=AgentLimits(CallLimits(own, own_per_file)))
    limits = look(front, Settings(max_tool_calls=CallLimits(setting, per_file)), agent).limits
    known = [setting if own is None else own, 4 if front else None]
    assert limits.per_message == min((each for each in known if each is not None), default=None)
    assert limits.per_session == (per_file if own_per_file is None else own_per_file)


@given(st.integers(0, 9), limit, limit, limit)
def test_an_agent_only_lowers_the_limits_of_safety(
    calls: int, own_calls: int | None, tokens: int | None, own_tokens: int | None
) -> None:
    safety = Safety(max_tools_per_request=calls, max_tokens_per_request=tokens)
    agent = replace(AGENT, limits=AgentLimits(None, own_calls, own_tokens), max_tokens=None)
    found = look("max_tokens: 8", Settings(safety=safety), agent)
    assert found.limits.max_tools_per_request == min(
        calls, calls if own_calls is None else own_calls
    )
    known = [each for each in (8, tokens, own_tokens) if each]
    assert found.request.max_tokens == min(known)


def test_an_agents_parameters_override_its_providers() -> None:
    provider = ProviderSettings("lab", parameters={"a": {"x": 1, "y": 2}, "b": [1]})
    agent = replace(AGENT, provider="lab", parameters={"a": {"x": 3}, "b": [2], "c": None})
    found = look("", Settings(providers={"lab": provider}), agent)
    assert found.request.parameters == {"a": {"x": 3, "y": 2}, "b": [2], "c": None}


@pytest.mark.parametrize(
    ("keys", "is_offered"),
    [("", True), ("tools: [web_*]", False), ("tools: []", False), ("tools: [read_*]", True)],
)
def test_skills_are_offered_if_the_chats_tools_include_their_tool(
    keys: str, is_offered: bool
) -> None:
    transcript = parse(f"---\n{keys}\n---\n\n\U0001f4ac: hi\n")
    settings = Settings()
    skills = skill_tool("Skills")
    found = chat_settings(transcript, settings, settings.all_agents()[0], skills=skills).skills
    assert (found == skills) == is_offered
