"""A thinking Claude accepts and continues an answer that began without its thinking."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from parley import engine
from parley.chat.call_lines import proposal_json
from parley.chat.transcript import ToolCall
from parley.demo.signing import sign
from parley.engine.ports import TurnEvent
from parley.models.events import Aside
from parley.policy.plan import waiting
from parley.runtime.app import App
from parley.runtime.asyncio_ports import Callbacks
from parley.settings.values import Agent, Mcp, ProviderSettings, Settings, Status
from parley.storage.chat_file import FileDocument
from parley.storage.ledger import LedgerFile
from tests.faulty_server import SAYS, FaultyServer, Response, event
from tests.strict import check_anthropic

ADAPTIVE = (
    "claude-sonnet-4-6",
    "claude-opus-4-7",
    "claude-sonnet-5",
    "claude-sonnet-5-5",
    "claude-opus-5-5",
)
MANUAL = (
    "claude-3-7-sonnet",
    "claude-sonnet-4-0",
    "claude-opus-4-1",
    "claude-haiku-4-5",
    "claude-opus-4-5",
)
PAUSED = (
    "continues this answer without thinking, because the answer does not start with thinking by "
    "this model"
)

CALL = f"❓:[ya] `{proposal_json(ToolCall('call_1', 'web_search', '{}'))}`"
RESULT = "🛠️: [web_search][call_1]\n\n`found`\n"
BEGUN = {
    "by another provider": "",
    "with thinking off": "Let me see.\n\n",
    "by another model": f"🧠:[anthropic:claude-sonnet-3-9 {sign('Hm.')}]\n> Hm.\n\n",
    "without a signature": "🧠:[anthropic:MODEL]\n> Hm.\n\n",
}


def calls() -> list[dict[str, object]]:
    made = {"type": "tool_use", "id": "toolu_1", "name": "web_search", "input": {"query": "y"}}
    return [
        {"type": "message_start", "message": {}},
        {"type": "content_block_start", "index": 0, "content_block": made},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    ]


@pytest.mark.parametrize("how", BEGUN)
@pytest.mark.parametrize("model", [*MANUAL, *ADAPTIVE])
async def test_a_loop_without_thinking_stays_so_and_the_user_is_told_once(
    tmp_path: Path, model: str, how: str
) -> None:
    path = tmp_path / "chat.md"
    begun = BEGUN[how].replace("MODEL", model)
    path.write_text(f"💬: look x up\n\n🤖:[Claude]\n\n{begun}{CALL}\n{RESULT}\n", encoding="utf-8")
    asides = list[str]()

    def hear(event: TurnEvent) -> None:
        if isinstance(event, Aside) and "thinking" in event.text:
            asides.append(event.text)

    async with FaultyServer(check_anthropic) as server:
        settings = Settings(
            agents=(Agent("Claude", "anthropic", model),),
            providers={"anthropic": ProviderSettings("anthropic", "anthropic", server.url)},
            status=Status(llm=False),
            mcp=Mcp(mock=True),
        )
        app = App(settings, os.environ, LedgerFile(None))
        try:
            ports = app.ports(FileDocument(path, 0), str(path), Callbacks(on_event=hear))
            resolve = app.resolve("Claude")
            said = Response(SAYS["anthropic"]("Found."))
            server.plan(Response([event(each) for each in calls()]), said)
            assert await engine.run_turn(ports, resolve) == engine.End("waiting")
            (call,) = waiting((await engine.observe(ports, resolve)).snapshot.answer)
            await engine.choose(ports, resolve, call.span.start, engine.Press("ya", "key"))
            assert await engine.run_turn(ports, resolve) == engine.End("complete")
            text = path.read_text(encoding="utf-8").rstrip()
            path.write_text(f"{text} and now?\n", encoding="utf-8")
            ports = app.ports(
                FileDocument(path, text.count("\n")), str(path), Callbacks(on_event=hear)
            )
            assert await engine.run_turn(ports, resolve) == engine.End("complete")
        finally:
            await app.close()
    *in_loop, after = server.requests
    kinds = [(request.get("thinking") or {}).get("type") for request in in_loop]
    assert kinds == ([None] if model in MANUAL else ["adaptive"]) * 2, json.dumps(in_loop)
    assert after["thinking"]["type"] == ("enabled" if model in MANUAL else "adaptive")
    assert asides == ([f"{model} {PAUSED}"] if model in MANUAL else [])


@pytest.mark.parametrize("model", MANUAL)
def test_the_demos_check_refuses_the_same_as_the_provider(model: str) -> None:
    made = {"type": "tool_use", "id": "toolu_1", "name": "web_search", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "found"}
    messages = [
        {"role": "user", "content": "look x up"},
        {"role": "assistant", "content": [made]},
        {"role": "user", "content": [result]},
    ]
    tools = [{"name": "web_search", "input_schema": {"type": "object"}}]
    body = {
        "model": model,
        "max_tokens": 4096,
        "stream": True,
        "messages": messages,
        "tools": tools,
    }
    thinking = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
    assert check_anthropic(body) == []
    assert any("but found `tool_use`" in each for each in check_anthropic(body | thinking))
