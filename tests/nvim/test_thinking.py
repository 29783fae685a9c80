"""Signed thinking survives a kill of Neovim while a call waits: it is sent back unchanged."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from parley.demo.signing import seal, sign
from tests.faulty_server import SAYS, FaultyServer, Response, event
from tests.nvim.harness import Child, child
from tests.strict import check_anthropic, check_responses

BOUND_S = 60.0
MARKER = "\U0001f4ac:"
FIRST = (
    "They want two prices.\n\n> as if quoted\n\U0001f4ac: no question, \\ and ```\n\ttab "
    "\U0001f600\n"
)
SECOND = "  Both at once, then."
QUERIES = ("google stock price", "microsoft stock price")

ISSUED: Mapping[str, list[Any]] = {
    "Claude": [
        {"type": "thinking", "thinking": FIRST, "signature": sign(FIRST)},
        {"type": "redacted_thinking", "data": seal("not for your eyes")},
        {"type": "thinking", "thinking": "", "signature": sign("")},
        {"type": "thinking", "thinking": SECOND, "signature": sign(SECOND)},
    ],
    "ChatGPT": [
        {
            "type": "reasoning",
            "id": f"rs_{number}",
            "summary": [{"type": "summary_text", "text": text}] if text else [],
            "encrypted_content": seal(f"secret {number}"),
        }
        for number, text in enumerate(("**Looking** at it\n\nand on", "", "> and again"))
    ],
}
"""The thinking that each model's maker issues before its calls, and requires back."""


def claude() -> Iterator[Any]:
    yield {"type": "message_start", "message": {"usage": {"input_tokens": 3}}}
    said = {"type": "text", "text": "I look both up."}
    calls = [
        {"type": "tool_use", "id": f"toolu_{n}", "name": "web_search", "input": {"query": query}}
        for n, query in enumerate(QUERIES)
    ]
    for index, block in enumerate([*ISSUED["Claude"], said, *calls]):
        at = {"index": index}
        whole = block["type"] in ("redacted_thinking", "tool_use")
        empty = (
            block
            if whole
            else {**block, block["type"]: "", **({"signature": ""} if "signature" in block else {})}
        )
        yield {"type": "content_block_start", "content_block": empty, **at}
        for kind, key in (
            ("thinking_delta", "thinking"),
            ("text_delta", "text"),
            ("signature_delta", "signature"),
        ):
            for piece in pieces(block.get(key, "")):
                delta = {"type": kind, key: piece}
                yield {"type": "content_block_delta", "delta": delta, **at}
        yield {"type": "content_block_stop", **at}
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use"},
        "usage": {"output_tokens": 9},
    }
    yield {"type": "message_stop"}


def chatgpt() -> Iterator[Any]:
    calls = [
        {
            "type": "function_call",
            "call_id": f"call_{n}",
            "name": "web_search",
            "arguments": json.dumps({"query": query}),
        }
        for n, query in enumerate(QUERIES)
    ]
    for index, item in enumerate([*ISSUED["ChatGPT"], *calls]):
        at = {"output_index": index}
        yield {
            "type": "response.output_item.added",
            "item": {**item, "summary": [], "arguments": ""},
            **at,
        }
        for part in item.get("summary", []):
            for piece in pieces(part["text"]):
                yield {"type": "response.reasoning_summary_text.delta", "delta": piece, **at}
        yield {"type": "response.output_item.done", "item": item, **at}
    yield {"type": "response.completed", "response": {"status": "completed"}}


def pieces(text: str) -> list[str]:
    return [text[at : at + 7] for at in range(0, len(text), 7)]


MAKERS = {
    "Claude": ("anthropic", "ANTHROPIC", claude, check_anthropic),
    "ChatGPT": ("responses", "OPENAI", chatgpt, check_responses),
}


def sent_back(agent: str, body: Mapping[str, Any]) -> Sequence[Any]:
    """The thinking in a request, in order."""
    if agent == "ChatGPT":
        return [item for item in body["input"] if item.get("type") == "reasoning"]
    said = [
        block
        for message in body["messages"]
        if message["role"] == "assistant"
        for block in message["content"]
    ]
    return [block for block in said if "thinking" in block["type"]]


@contextmanager
def serving(*script: Response) -> Iterator[FaultyServer]:
    """A server in a thread, because Neovim is driven without an event loop."""
    loop, server = asyncio.new_event_loop(), FaultyServer()
    server.plan(*script)
    thread = Thread(target=loop.run_forever)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result(BOUND_S)
        yield server
        asyncio.run_coroutine_threadsafe(server.__aexit__(), loop).result(BOUND_S)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@contextmanager
def editor(home: Path, agent: str, url: str) -> Iterator[Child]:
    """A new Neovim in this home, whose agent is at this address."""
    _, maker, _, _ = MAKERS[agent]
    where = url if agent == "Claude" else f"{url}/v1"
    env = {f"{maker}_API_KEY": "a-key", f"{maker}_BASE_URL": where}
    provider = f"providers = {{ {maker.lower()} = {{ model_list = 'off' }} }}"
    settings = f"agent = '{agent}', status = {{ llm = false }}, mcp = {{ mock = true }}, {provider}"
    init = f"require('parley').setup({{ {settings} }})"
    with suppress(EOFError, OSError), child(home, init=init, env=env) as nvim:
        yield nvim


@pytest.mark.timeout(180)
@pytest.mark.parametrize("agent", MAKERS)
def test_after_neovim_was_killed_thinking_is_sent_back_unchanged(
    tmp_path: Path, agent: str
) -> None:
    kind, _, stream, check = MAKERS[agent]
    calls, end = (
        Response([event(each) for each in stream()]),
        Response(SAYS[kind]("There you are.")),
    )
    with serving(*[calls] * len(FOLDERS), *[end] * len(FOLDERS)) as server:
        with editor(tmp_path, agent, server.url) as nvim:
            paths = [waiting(nvim, folder) for folder in FOLDERS]
            os.kill(nvim.pid, signal.SIGKILL)
        with editor(tmp_path, agent, server.url) as nvim:
            for path in paths:
                nvim.command(f"edit {path}")
                nvim.until_waiting(BOUND_S)
                nvim.command("call search('^❓')")
                nvim.keys("yA")
                nvim.until_text("There you are.", BOUND_S)
                nvim.until_idle(BOUND_S)
                assert nvim.text().count("\U0001f6e0\ufe0f: [web_search]") == 2
    bodies = server.requests[len(FOLDERS) :]
    assert [sent_back(agent, body) for body in bodies] == [ISSUED[agent]] * len(FOLDERS)
    assert [check(body) for body in bodies] == [[]] * len(FOLDERS)


FOLDERS = ("data/parley/chats", "elsewhere")


def waiting(nvim: Child, folder: str) -> Path:
    """A chat on disk that waits for a choice."""
    path = nvim.edit(f"{folder}/chat.md", f"{MARKER} the prices of google and microsoft?\n")
    nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    nvim.keys("<C-g><C-g>")
    nvim.until_waiting(BOUND_S)
    nvim.until_idle(BOUND_S)
    if folder == "elsewhere":
        nvim.command("write")  # in the chat folder, a turn is saved at its end
    return path
