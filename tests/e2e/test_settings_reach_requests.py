"""Each setting in an agent, its provider and a chat file reaches the request through the engine."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, fields
from typing import Any

import pytest

from parley import engine
from parley.chat.front_matter import KEYS
from parley.chat.options import ThinkingSettings
from parley.runtime.app import App
from parley.runtime.asyncio_ports import Callbacks
from parley.settings.load import merged
from parley.settings.read import read_settings
from parley.settings.values import Agent, ProviderSettings, Settings
from parley.storage.chat_file import TextDocument
from tests.faulty_server import SAYS, FaultyServer, Response
from tests.ledgers import open_ledger

CHAT = "".join(f"💬: {n}\n\n🤖:\n\nfine\n\n📝: sum {n}\n\n" for n in "ab") + "💬: and now?\n"


@dataclass(frozen=True)
class Outcome:
    """A question's outcome: the request, and the file after it."""

    head: str
    body: Any
    text: str

    @property
    def path(self) -> str:
        return self.head.split(" ", 2)[1] if self.head else ""

    @property
    def system(self) -> str:
        """The system prompt, at its place in the format."""
        return json.dumps(self.body["messages"][0], ensure_ascii=False)


Condition = Callable[[Outcome], bool]


@dataclass(frozen=True)
class Row:
    """A setting as the user writes it, its part of the request, and other settings that both
    requests need.

    `file` is front matter. The server's address replaces `LAB`.
    """

    seen: Condition
    agent: Mapping[str, Any] | None = None
    provider: Mapping[str, Any] | None = None
    other: Mapping[str, Any] | None = None
    file: str = ""
    base: Mapping[str, Any] | None = None


LAB = "http://LAB"
CLAUDE = {"kind": "anthropic", "base_url": LAB}
QUESTIONS = {
    "agents": [{"name": "A", "provider": "lab", "model": "claude-sonnet-5-5"}],
    "providers": {"lab": CLAUDE},
}
MANUAL = {
    "agents": [{"name": "A", "provider": "lab", "model": "claude-sonnet-4-5"}],
    "providers": {"lab": CLAUDE},
}
NEWER = {"agents": [{"name": "A", "provider": "lab", "model": "gpt-5.4"}]}
REASONING = {"agents": [{"name": "A", "provider": "lab", "model": "gpt-5"}]}
LIMITED = {"agents": [{"name": "A", "provider": "lab", "model": "gpt-4.1", "max_tokens": 77}]}
SEARCHING = {"providers": {"lab": {"api": "responses"}}}
SECOND = {
    "agents": [
        {"name": "A", "provider": "lab", "model": "gpt-4.1"},
        {"name": "B", "provider": "lab", "model": "other"},
    ],
    "providers": {"second": {"base_url": f"{LAB}/second/v1"}},
}


def has_no_tools(outcome: Outcome) -> bool:
    return "tools" not in outcome.body


def tells_of_tools(outcome: Outcome) -> bool:
    return has_no_tools(outcome) and "web_search" in outcome.system


def may_search(outcome: Outcome) -> bool:
    return {"type": "web_search"} in outcome.body["tools"]


def stands_in(count: int) -> Condition:
    return lambda outcome: json.dumps(outcome.body).count("[Previous messages omitted]") == count


def thinking(key: str, value: Any) -> Condition:
    return lambda outcome: outcome.body["thinking"].get(key) == value


def is_asked(key: str, value: Any) -> Condition:
    return lambda outcome: outcome.body.get(key) == value


ROWS: Mapping[str, Row] = {
    "agents.name": Row(
        lambda outcome: "🤖:[B]" in outcome.text, {"name": "B"}, other={"agent": "B"}
    ),
    "agents.provider": Row(
        lambda outcome: "/second/" in outcome.path, {"provider": "second"}, base=SECOND
    ),
    "agents.model": Row(is_asked("model", "gpt-4o"), {"model": "gpt-4o"}),
    "agents.system_prompt": Row(
        lambda outcome: "Be terse." in outcome.system, {"system_prompt": "Be terse."}
    ),
    "agents.tools": Row(has_no_tools, {"tools": ["no_such_*"]}),
    "agents.tool_mode": Row(tells_of_tools, {"tool_mode": "json"}),
    "agents.web_search": Row(may_search, {"web_search": True}, base=SEARCHING),
    "agents.temperature": Row(is_asked("temperature", 0.3), {"temperature": 0.3}),
    "agents.max_tokens": Row(is_asked("max_tokens", 77), {"max_tokens": 77}),
    "agents.window": Row(thinking("budget_tokens", 10_000), {"window": 30_000}, base=MANUAL),
    "agents.max_output": Row(is_asked("max_tokens", 9000), {"max_output": 9000}, base=QUESTIONS),
    "agents.thinking": Row(
        is_asked("reasoning_effort", "low"), {"thinking": {"effort": "low"}}, base=REASONING
    ),
    "providers.kind": Row(lambda outcome: outcome.path == "/v1/messages", provider=CLAUDE),
    "providers.base_url": Row(
        lambda outcome: outcome.path.startswith("/x/"), provider={"base_url": f"{LAB}/x"}
    ),
    "providers.base_url_env": Row(
        lambda outcome: outcome.path.startswith("/env/"), provider={"base_url_env": "LAB_URL"}
    ),
    "providers.api_key_env": Row(
        lambda outcome: "bearer key-of-the-lab" in outcome.head, provider={"api_key_env": "LAB_KEY"}
    ),
    "providers.api_key_command": Row(
        lambda outcome: "bearer printed-key" in outcome.head,
        provider={"api_key_command": ["echo", "printed-key"]},
    ),
    "providers.api": Row(
        lambda outcome: outcome.path == "/v1/responses", provider={"api": "responses"}
    ),
    "providers.quirks": Row(
        is_asked("max_completion_tokens", 77), provider={"quirks": []}, base=LIMITED
    ),
    "providers.official": Row(
        lambda outcome: outcome.path == "/v1/responses", provider={"official": True}, base=NEWER
    ),
    "providers.builtin": Row(lambda outcome: outcome.body is None, provider={"builtin": True}),
    "providers.headers": Row(
        lambda outcome: "x-gateway: token key-of-the-lab" in outcome.head,
        provider={"headers": {"X-Gateway": "Token ${LAB_KEY}"}},
    ),
    "providers.parameters": Row(is_asked("top_k", 40), provider={"parameters": {"top_k": 40}}),
    "agents.parameters": Row(
        is_asked("reasoning", {"effort": "low", "fast": True}),
        {"parameters": {"reasoning": {"effort": "low"}}},
        provider={"parameters": {"reasoning": {"effort": "high", "fast": True}}},
    ),
    "agents.limits": Row(
        is_asked("max_tokens", 9), {"limits": {"max_tokens_per_request": 9}}, base=LIMITED
    ),
    "thinking.enabled": Row(
        thinking("type", "between_tools"), other={"thinking": {"enabled": False}}, base=QUESTIONS
    ),
    "thinking.budget_tokens": Row(
        thinking("budget_tokens", 2000), other={"thinking": {"budget_tokens": 2000}}, base=MANUAL
    ),
    "thinking.effort": Row(
        is_asked("output_config", {"effort": "max"}),
        other={"thinking": {"effort": "max"}},
        base=QUESTIONS,
    ),
    "thinking.show": Row(
        thinking("display", "omitted"), other={"thinking": {"show": False}}, base=QUESTIONS
    ),
    "agent": Row(is_asked("model", "other"), other={"agent": "B"}, base=SECOND),
    "system_prompt": Row(
        lambda outcome: "Be kind." in outcome.system, other={"system_prompt": "Be kind."}
    ),
    "max_full_exchanges": Row(stands_in(1), other={"max_full_exchanges": 2}),
    "max_tool_calls": Row(has_no_tools, other={"max_tool_calls": 0}),
    "tool_mode": Row(has_no_tools, other={"tool_mode": "off"}),
    "tools": Row(
        lambda outcome: (
            [each["function"]["name"] for each in outcome.body["tools"]] == ["find_tools"]
        ),
        other={"tools": {"budget_tokens": 0}},
    ),
    "safety.max_tokens_per_request": Row(
        is_asked("max_tokens", 9), other={"safety": {"max_tokens_per_request": 9}}
    ),
    "file: agent": Row(is_asked("model", "other"), file="agent: B", base=SECOND),
    "file: provider": Row(
        lambda outcome: "/second/" in outcome.path, file="provider: second", base=SECOND
    ),
    "file: model": Row(is_asked("model", "gpt-4o"), file="model: gpt-4o"),
    "file: system_prompt": Row(
        lambda outcome: "Be kind." in outcome.system, file="system_prompt: Be kind."
    ),
    "file: system_prompt+": Row(
        lambda outcome: "kind." in outcome.system and "📝" in outcome.system,
        file="system_prompt+: Be kind.",
    ),
    "file: temperature": Row(is_asked("temperature", 0.3), file="temperature: 0.3"),
    "file: max_tokens": Row(is_asked("max_tokens", 77), file="max_tokens: 77"),
    "file: thinking": Row(
        is_asked("reasoning_effort", "low"), file="thinking: {effort: low}", base=REASONING
    ),
    "file: tool_mode": Row(tells_of_tools, file="tool_mode: xml"),
    "file: web_search": Row(may_search, file="web_search: true", base=SEARCHING),
    "file: tools": Row(has_no_tools, file="tools: ['no_such_*']"),
    "file: max_tool_calls": Row(has_no_tools, file="max_tool_calls: 0"),
    "file: max_full_exchanges": Row(stands_in(2), file="max_full_exchanges: 1"),
}

IN_NO_REQUEST = {
    *("providers.name", "agents.price", "file: topic", "file: tags", "file: forked_from"),
    *(
        "chat_dir",
        "prompt_tools",
        "xml",
        "loop",
        "retry",
        "safety",
        "status",
        "approval",
        "keys",
        "log",
        "highlight",
        "mcp",
        "skills",
        "workspace",
    ),
    "agents.loop",
    *("agents.newest", "providers.model_list"),  # see `test_newest_models.py`
    *("picker", "pictures", "save", "start_insert", "fill_topic"),
    *("agents", "providers", "thinking"),  # each of their fields has its row
    *("providers.command", "providers.env", "providers.cwd", "file: mode"),  # tests/acp
    "providers.servers",  # tests/runtime/test_agent_servers.py
    *("instructions", "file: instructions"),  # tests/e2e/test_instructions.py has files for them
}
"""Settings that no request shows: paths, the loop's limits and rules, keys, appearance, servers."""


def test_every_setting_has_a_row() -> None:
    def names(cls: Any) -> list[str]:
        rules = {each.name: each.metadata.get("rule") for each in fields(cls)}
        return [name for name, rule in rules.items() if not (rule and rule.is_internal)]

    known = {*names(Settings), *(f"file: {key}" for key in KEYS)}
    for prefix, cls in (
        ("agents", Agent),
        ("providers", ProviderSettings),
        ("thinking", ThinkingSettings),
    ):
        known |= {f"{prefix}.{name}" for name in names(cls)}
    assert known - set(ROWS) == IN_NO_REQUEST
    assert set(ROWS) - known == {"safety.max_tokens_per_request"}


PLAIN: Mapping[str, Any] = {
    "agent": "A",
    "agents": [{"name": "A", "provider": "lab", "model": "gpt-4.1"}],
    "mcp": {"mock": True},
    "providers": {"lab": {"base_url": f"{LAB}/v1"}},
    "status": {"llm": False},
}


def setup(row: Row) -> dict[str, Any]:
    """The user's table with the row's settings."""
    table = merged(merged(PLAIN, row.base or {}), row.other or {})
    first, *rest = table["agents"]
    lab = {**table["providers"]["lab"], **(row.provider or {})}
    return table | {
        "agents": [{**first, **(row.agent or {})}, *rest],
        "providers": {**table["providers"], "lab": lab},
    }


async def outcome_of(server: FaultyServer, table: dict[str, Any], front: str) -> Outcome:
    """The outcome of a chat's last question with these settings."""
    settings, problems = read_settings(json.loads(json.dumps(table).replace(LAB, server.url)))
    assert problems == ()
    environ = {
        "LAB_KEY": "key-of-the-lab",
        "LAB_URL": f"{server.url}/env/v1",
        "PARLEY_DEMO_PACE": "0",
    }
    app = App(settings, environ, open_ledger())
    document = TextDocument(f"---\n{front}\n---\n{CHAT}" if front else CHAT, 10**6)
    server.plan(Response(SAYS["chat"]("Fine.")))
    try:
        await engine.run_turn(app.ports(document, "", Callbacks()), app.resolve(None))
    finally:
        await app.close()
    return Outcome(
        server.heads[0] if server.heads else "",
        server.requests[0] if server.requests else None,
        document.text,
    )


@pytest.mark.parametrize("name", ROWS)
async def test_the_setting_reaches_the_request(name: str) -> None:
    row = ROWS[name]
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(FaultyServer())
        plain = merged(PLAIN, row.base or {})
        assert not row.seen(await outcome_of(server, plain, ""))
        assert row.seen(await outcome_of(server, setup(row), row.file))
