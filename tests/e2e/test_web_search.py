"""A chat in which one provider searches the web continues with every other provider: each request
is one that the provider accepts, and a new process makes the same bytes.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from parley import engine
from parley.chat.transcript import Proposal, Text
from parley.demo.signing import seal, sign
from parley.models.encode import encoded
from parley.policy.rules import Pattern
from parley.providers.client import wire_format
from parley.runtime.app import App
from parley.runtime.asyncio_ports import Callbacks
from parley.settings.values import PROVIDERS, Agent, Approval, Mcp, Safety, Settings, Status
from parley.storage.chat_file import FileDocument
from parley.storage.ledger import LedgerFile
from parley.tools.server_settings import ServerSettings
from tests.e2e.machine import SERVER, read
from tests.faulty_server import SAYS, event
from tests.ledgers import open_ledger
from tests.model_servers import Answer, ModelServer
from tests.strict import check_anthropic, check_openai, check_responses

ROOT = Path(__file__).parents[2]
MODELS = {
    "openai": "gpt-5.4",
    "anthropic": "claude-sonnet-5-5",
    "gemini": "gemini-pro-latest",
    "ollama": "qwen3",
}
SEARCHING = ("openai", "anthropic")
CHECKS: Mapping[str, Callable[[Any], list[str]]] = {
    "/openai/v1/responses": check_responses,
    "/anthropic/v1/messages": check_anthropic,
    "/gemini/v1/chat/completions": lambda body: check_openai(body, host="gemini"),
    "/ollama/v1/chat/completions": lambda body: check_openai(body, host="ollama"),
}
NEWS = "https://neovim.io/news/"


def settings(url: str, folder: Path) -> Settings:
    """All providers on the local server; its own tool runs without a question."""
    environ = {"CALLS": str(folder / "calls")}
    return Settings(
        agents=tuple(Agent(name, name, MODELS[name], web_search=True) for name in MODELS),
        providers={
            name: replace(
                PROVIDERS[name],
                base_url=f"{url}/{name}" + ("" if name == "anthropic" else "/v1"),
                base_url_env=None,
            )
            for name in MODELS
        },
        mcp=Mcp({"count": ServerSettings("count", sys.executable, (str(SERVER),), environ)}),
        approval=Approval(auto=(Pattern("count/*"),)),
        status=Status(llm=False),
        safety=Safety(rate_limit_per_minute=1000),
    )


def app_on(
    url: str, folder: Path, ledger: LedgerFile | None = None, approval: Approval | None = None
) -> App:
    environ = {"HOME": str(folder), "XDG_STATE_HOME": str(folder)}
    environ |= {f"{name.upper()}_API_KEY": "k" for name in MODELS}
    chosen = settings(url, folder)
    chosen = replace(chosen, approval=approval) if approval else chosen
    return App(chosen, environ, ledger or open_ledger(), folder=lambda: folder)


def openai_search() -> list[bytes]:
    """Reasoning, a search, reasoning, a text with a source, and a call."""
    action = {"type": "search", "queries": ["neovim"], "sources": [{"type": "url", "url": NEWS}]}
    source = {
        "type": "url_citation",
        "url": NEWS,
        "title": "News",
        "start_index": 0,
        "end_index": 1,
    }
    text = {"type": "output_text", "text": "It is out.", "annotations": [source]}
    call = {"call_id": "call_1", "name": "note", "arguments": '{"text":"out"}'}
    items = [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": seal("1")},
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": action},
        {"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": seal("2")},
        {"type": "message", "role": "assistant", "content": [text]},
        {"type": "function_call", **call},
    ]
    done = {"type": "response.output_item.done"}
    return [
        *(event({**done, "output_index": at, "item": item}) for at, item in enumerate(items)),
        event({"type": "response.completed", "response": {"status": "completed"}}),
    ]


def anthropic_search() -> list[bytes]:
    """The same from Anthropic, where the search has results of its own."""
    found = {"type": "web_search_result", "url": NEWS, "title": "News", "page_age": None}
    source = {"type": "web_search_result_location", "url": NEWS, "title": "News"}
    blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]] = [
        (
            {"type": "thinking", "thinking": "", "signature": ""},
            [
                {"type": "thinking_delta", "thinking": "1"},
                {"type": "signature_delta", "signature": sign("1")},
            ],
        ),
        (
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
            [{"type": "input_json_delta", "partial_json": '{"query":"neovim"}'}],
        ),
        (
            {
                "type": "web_search_tool_result",
                "tool_use_id": "srvtoolu_1",
                "content": [{**found, "encrypted_content": "Eq1"}],
            },
            [],
        ),
        (
            {"type": "text", "text": "", "citations": []},
            [
                {
                    "type": "citations_delta",
                    "citation": {**source, "encrypted_index": "i", "cited_text": "out"},
                },
                {"type": "text_delta", "text": "It is out."},
            ],
        ),
        (
            {"type": "tool_use", "id": "toolu_1", "name": "note", "input": {}},
            [{"type": "input_json_delta", "partial_json": '{"text":"out"}'}],
        ),
    ]
    pieces = [event({"type": "message_start", "message": {"usage": {"input_tokens": 3}}})]
    for at, (block, deltas) in enumerate(blocks):
        pieces += [event({"type": "content_block_start", "index": at, "content_block": block})]
        for delta in deltas:
            pieces += [event({"type": "content_block_delta", "index": at, "delta": delta})]
        pieces += [event({"type": "content_block_stop", "index": at})]
    usage = {"output_tokens": 2, "server_tool_use": {"web_search_requests": 1}}
    end = {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": usage}
    return [*pieces, event(end), event({"type": "message_stop"})]


SEARCHES = {"openai": openai_search, "anthropic": anthropic_search}


@dataclass
class Providers:
    """All providers: the first question to one that may search begins a search and a call; the next
    request is refused if `refuses`, and every other request gets a short text.
    """

    path: Path
    """The chat."""
    refuses: bool = False
    reasons: list[str] = field(default_factory=list)
    sent: list[tuple[str, str, bytes]] = field(default_factory=list)
    """Each request: the provider, the name of the chat's copy at that moment, and the body."""

    def __call__(self, path: str, query: Mapping[str, str], body: Any) -> Answer:
        name = path.split("/")[1]
        self.reasons += CHECKS[path](body)
        copy = self.path.with_name(f"{self.path.stem}-{len(self.sent)}.copy")
        copy.write_bytes(self.path.read_bytes())
        self.sent.append((name, copy.name, encoded(body)))
        words = json.dumps(body)
        if "It is out." not in words and name in SEARCHES:
            return 200, b"".join(SEARCHES[name]())
        if self.refuses:
            self.refuses = False
            return 400, {"error": {"type": "x", "message": "not today"}}
        kind = {"openai": "responses", "anthropic": "anthropic"}.get(name, "chat")
        return 200, b"".join(SAYS[kind]("Well."))


async def bodies(app: App, requests: list[tuple[str, str]], folder: Path) -> list[bytes]:
    """The requests that a process makes of the copies of a chat."""
    made = list[bytes]()
    for name, copy in requests:
        ports = app.ports(FileDocument(folder / copy), str(folder / copy), Callbacks())
        seen = await engine.observe(ports, app.resolve(name))
        request = await engine.with_pictures(ports, seen.next_request())
        form = wire_format(app.provider(request.provider), request)
        made.append(encoded(form.body(request)))
    return made


async def reopened(url: str, folder: Path, requests: list[tuple[str, str]]) -> None:
    """Print what `bodies` returns; runs in a new process."""
    app = app_on(url, folder)
    try:
        found = await bodies(app, requests, folder)
    finally:
        await app.close()
    print(json.dumps([body.decode() for body in found]))


def in_a_new_process(url: str, folder: Path, requests: list[tuple[str, str]]) -> list[bytes]:
    """The requests that a new process makes of the copies."""
    arguments = json.dumps([url, str(folder), requests])
    program = (
        "import asyncio, json, sys; from pathlib import Path; from tests.e2e import test_web_search;"
        "url, folder, requests = json.loads(sys.argv[1]);"
        "asyncio.run(test_web_search.reopened(url, Path(folder), requests))"
    )
    line = [sys.executable, "-c", program, arguments]
    ran = subprocess.run(line, cwd=ROOT, capture_output=True, check=False, timeout=60)
    assert ran.returncode == 0, ran.stderr.decode()
    return [body.encode() for body in json.loads(ran.stdout)]


def ask(path: Path, question: str) -> None:
    """Write a question at the chat's end."""
    text = path.read_text(encoding="utf-8").rstrip().removesuffix("💬:") if path.exists() else ""
    path.write_text(f"{text}💬: {question}\n", encoding="utf-8")


async def asked(app: App, path: Path, agent: str, question: str = "") -> engine.End:
    if question:
        ask(path, question)
    ports = app.ports(FileDocument(path), str(path), Callbacks())
    return await engine.run_turn(ports, app.resolve(agent))


async def test_a_chat_with_a_search_continues_with_each_provider_in_and_after_the_loop(
    tmp_path: Path,
) -> None:
    every = list[tuple[str, str, bytes]]()
    providers = Providers(tmp_path / "chat.md")
    async with ModelServer(lambda *request: providers(*request)) as server:
        app = app_on(server.url, tmp_path)
        try:
            for first in SEARCHING:
                for second in MODELS:
                    path = tmp_path / f"{first}-{second}.md"
                    providers = Providers(path, refuses=second != first)
                    if second != first:
                        assert (await asked(app, path, first, "news?")).kind == "interrupted"
                        assert (await asked(app, path, second)).kind == "complete"
                    else:
                        assert (await asked(app, path, first, "news?")).kind == "complete"
                    for later in (second, first):
                        assert (await asked(app, path, later, "and?")).kind == "complete"
                    assert providers.reasons == []
                    check_chat(path, providers, first)
                    every += providers.sent
        finally:
            await app.close()
        made = await asyncio.to_thread(
            in_a_new_process, server.url, tmp_path, [(name, copy) for name, copy, _ in every]
        )
    assert made == [body for _, _, body in every]


RAW = ("ws_1", "srvtoolu_1")


def check_chat(path: Path, providers: Providers, first: str) -> None:
    """The file has the search and its source; only its provider is sent more than the text."""
    transcript = read(path)
    assert transcript.problems == ()
    segments = transcript.exchanges[0].answers[0].segments
    search = next(s for s in segments if isinstance(s, Proposal))
    assert (search.ran_by, search.call.name) == ("provider", "web_search")
    assert search.result
    assert NEWS in search.result.body
    assert [a.is_text for a in search.result.attachments] == [True]
    texts = [s.text for s in segments if isinstance(s, Text)]
    assert texts[0] == f"It is out.[^1]\n\n[^1]: [News]({NEWS})"
    _, loop, *_ = bodies_of = [body.decode() for _, _, body in providers.sent]
    assert any(raw in loop for raw in RAW)
    for (name, _, _), body in list(zip(providers.sent, bodies_of, strict=True))[1:]:
        has_footnotes = name != "anthropic"  # which gets none in the open loop
        assert f"It is out.{'[^1]' if has_footnotes else ''}" in body
        assert name == first or not any(raw in body for raw in RAW)
