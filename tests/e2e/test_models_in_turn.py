"""One chat whose tool loop passes from model to model: each accepts the others' parts."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from parley import engine
from parley.chat.reader import parse
from parley.chat.transcript import Text
from parley.demo.signing import seal, sign
from parley.models.quirks import COMPATIBLE, Quirk
from parley.policy.plan import waiting
from parley.runtime.app import App
from parley.runtime.asyncio_ports import Callbacks
from parley.settings.values import Agent, Mcp, ProviderSettings, Settings, Status
from parley.storage.chat_file import FileDocument
from tests.faulty_server import SAYS, FaultyServer, Response, event
from tests.ledgers import open_ledger
from tests.strict import check_anthropic, check_openai, check_responses

QUERY = '{"query": "google stock price"}'
SIGNATURE = {"google": {"thought_signature": "c2lnbmVkIGJ5IGdlbWluaQ=="}}


def claude() -> list[Any]:
    """Signed and hidden thinking, text, two calls."""
    blocks = [
        {"type": "thinking", "thinking": "Hm.\n> so", "signature": sign("Hm.\n> so")},
        {"type": "redacted_thinking", "data": seal("hidden")},
        {"type": "text", "text": "Two searches."},
        *(
            {
                "type": "tool_use",
                "id": f"toolu_{n}",
                "name": "web_search",
                "input": json.loads(QUERY),
            }
            for n in "ab"
        ),
    ]
    frames = [
        frame
        for n, block in enumerate(blocks)
        for frame in (
            {"type": "content_block_start", "index": n, "content_block": block},
            {"type": "content_block_stop", "index": n},
        )
    ]
    stop = {"type": "message_delta", "delta": {"stop_reason": "tool_use"}}
    return [{"type": "message_start", "message": {}}, *frames, stop, {"type": "message_stop"}]


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def call_delta(call_id: str | None, arguments: Any = QUERY, **more: Any) -> dict[str, Any]:
    return {
        "index": 0,
        "id": call_id,
        "function": {"name": "web_search", "arguments": arguments},
        **more,
    }


def chat() -> list[Any]:
    """Text, and a call in pieces."""
    rest = {"index": 0, "function": {"arguments": QUERY[4:]}}
    first = call_delta("call_1", QUERY[:4], type="function")
    return [
        chunk(content="One."),
        chunk(tool_calls=[first]),
        chunk(tool_calls=[rest]),
        chunk("tool_calls"),
    ]


def responses() -> list[Any]:
    """Encrypted reasoning, and a call whose id equals another model's."""
    thought = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [],
        "encrypted_content": seal("secret"),
    }
    made = {"type": "function_call", "call_id": "call_1", "name": "web_search", "arguments": QUERY}
    done = [
        {"type": "response.output_item.done", "output_index": n, "item": item}
        for n, item in enumerate((thought, made))
    ]
    return [*done, {"type": "response.completed", "response": {"status": "completed"}}]


def gemini() -> list[Any]:
    """Two whole calls without ids at one index, the first of them signed."""
    both = [call_delta("", extra_content=SIGNATURE), call_delta("")]
    return [chunk(role="assistant", tool_calls=both), chunk("stop")]


def ollama() -> list[Any]:
    """A whole call without an id; its arguments are an object, and other fields are null."""
    made = call_delta(None, json.loads(QUERY))
    return [chunk(role="assistant", content=None, tool_calls=[made]), chunk("stop", content="")]


@dataclass(frozen=True)
class Shape:
    """A model: its reply with calls, its last reply, and the requests that it refuses."""

    provider: str
    model: str
    calls: Callable[[], list[Any]]
    says: str
    check: Callable[[Any], list[str]]
    count: int = 1
    official: bool = True
    quirks: tuple[Quirk, ...] = ()


SIGNED: tuple[Quirk, ...] = (*COMPATIBLE, "thought_signatures")
SHAPES = {
    "Claude": Shape("anthropic", "claude-sonnet-5-5", claude, "anthropic", check_anthropic, 2),
    "ChatGPT-chat": Shape("openai-chat", "gpt-4.1", chat, "chat", check_openai),
    "ChatGPT": Shape("openai", "gpt-5.6", responses, "responses", check_responses),
    "Gemini": Shape(
        "gemini",
        "gemini-3-pro",
        gemini,
        "chat",
        partial(check_openai, host="gemini"),
        2,
        False,
        SIGNED,
    ),
    "Ollama": Shape(
        "ollama",
        "llama3.1",
        ollama,
        "chat",
        partial(check_openai, host="ollama"),
        1,
        False,
        COMPATIBLE,
    ),
}


def settings(urls: dict[str, str]) -> Settings:
    """Each provider on its own server."""
    api: Any = {"openai-chat": "chat"}
    providers = {
        shape.provider: ProviderSettings(
            shape.provider,
            "anthropic" if name == "Claude" else "openai",
            urls[name] if name == "Claude" else f"{urls[name]}/v1",
            official=shape.official,
            quirks=shape.quirks,
            api=api.get(shape.provider, "auto"),
        )
        for name, shape in SHAPES.items()
    }
    agents = tuple(Agent(name, shape.provider, shape.model) for name, shape in SHAPES.items())
    mcp = Mcp(mock=True)
    return Settings(agents=agents, providers=providers, status=Status(llm=False), mcp=mcp)


@pytest.mark.parametrize("first", range(len(SHAPES)))
async def test_a_tool_loop_passes_from_model_to_model_and_each_request_is_accepted(
    tmp_path: Path, first: int
) -> None:
    names = [*SHAPES][first:] + [*SHAPES][:first]
    path = tmp_path / "chat.md"
    path.write_text("💬: the price of google?\n", encoding="utf-8")
    async with AsyncExitStack() as stack:
        servers = {
            name: await stack.enter_async_context(FaultyServer(SHAPES[name].check))
            for name in names
        }
        for name, server in servers.items():
            answer = Response(SAYS[SHAPES[name].says]("It is $911."))
            server.plan(Response([event(each) for each in SHAPES[name].calls()]), answer)
        urls = {name: server.url for name, server in servers.items()}
        app = App(settings(urls), os.environ, open_ledger())
        stack.push_async_callback(app.close)
        for name in names:
            assert await go_on(app, path, name) == engine.End("waiting"), (name, path.read_text())
            assert await decide(app, path, name) == SHAPES[name].count
        assert await go_on(app, path, names[0]) == engine.End("complete")
    transcript = parse(path.read_text(encoding="utf-8"))
    assert not transcript.problems
    made = transcript.exchanges[0].answers[0]
    assert made.segments[-1] == Text("It is $911.")
    assert [p.result is not None for p in made.proposals] == [True] * 7
    assert [len(server.requests) for server in servers.values()] == [2, 1, 1, 1, 1]
    check_own_thinking_goes_back(names[0], servers[names[0]].requests[1])


def ports(app: App, path: Path) -> engine.Ports:
    return app.ports(FileDocument(path, 0), str(path), Callbacks())


async def go_on(app: App, path: Path, agent: str) -> engine.End:
    """Run `:ParleyRespond` with this agent, on the file in its present state."""
    return await engine.run_turn(ports(app, path), app.resolve(agent))


async def decide(app: App, path: Path, agent: str) -> int:
    """Approve all waiting calls; return how many there were."""
    there, resolve = ports(app, path), app.resolve(agent)
    calls = waiting((await engine.observe(there, resolve)).snapshot.answer)
    await engine.choose(there, resolve, calls[0].span.start, engine.Press("ya", "key"))
    return len(calls)


def check_own_thinking_goes_back(name: str, body: Any) -> None:
    """Check that a model gets back only its own signed parts."""
    said = json.dumps(body)
    own = {"Claude": [sign("Hm.\n> so"), seal("hidden")], "ChatGPT": [seal("secret")]}
    own["Gemini"] = [SIGNATURE["google"]["thought_signature"]]
    for model, signatures in own.items():
        assert [signature in said for signature in signatures] == [model == name] * len(signatures)
