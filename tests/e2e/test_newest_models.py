"""The model that a question reaches: from the provider's list, the same in the whole answer, and
named in file and log if another one answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from parley import engine
from parley.chat.reader import parse
from parley.nvim.chat_buffer import ChatBuffer
from parley.runtime.app import App
from parley.session import Session
from parley.settings.values import Agent, ProviderSettings, Settings
from tests.faulty_server import SAYS, event
from tests.ledgers import open_ledger
from tests.model_servers import CLAUDES, Answer, ModelServer, anthropic, claude

CHAT = "💬: hello\n"


class Anthropic:
    """A server that lists models and answers; `model` is the one that it says has answered."""

    def __init__(self) -> None:
        self.bodies = list[Any]()
        self.model = ""
        self.has_list = True
        self.newer = list[dict[str, Any]]()

    def __call__(self, path: str, query: Mapping[str, str], body: Any) -> Answer:
        if path == "/v1/models":
            if self.newer:
                return 200, {"data": [*CLAUDES, *self.newer]}
            return anthropic(path, query, body) if self.has_list else (404, {})
        self.bodies.append(body)
        start = {"model": self.model or body["model"], "usage": {"input_tokens": 3}}
        _, *rest = SAYS["anthropic"]("well")
        return 200, b"".join([event({"type": "message_start", "message": start}), *rest])


def environ(server: ModelServer, home: Path) -> dict[str, str]:
    names = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "k"}
    return {**names, "XDG_STATE_HOME": str(home), "HOME": str(home)}


async def test_the_first_question_asks_the_newest_model_with_its_own_limits(tmp_path: Path) -> None:
    model = Anthropic()
    async with ModelServer(model) as server, Session(environ=environ(server, tmp_path)) as session:
        assert await session.process_message("hello") == "well"
        assert await session.process_message("and now?") == "well"
    for body in model.bodies:
        assert (body["model"], body["max_tokens"]) == ("claude-nova-1", 64_000)
        assert body["thinking"] == {"type": "adaptive", "display": "summarized"}
        assert body["output_config"] == {"effort": "high"}
    listed = [path for path in server.requests if path.startswith("/v1/models")]
    assert len(listed) == 2  # two pages, once


@pytest.mark.parametrize("newest", ["sonnet", ""])
async def test_without_a_list_the_model_in_the_agents_entry_is_asked(
    tmp_path: Path, newest: str
) -> None:
    model = Anthropic()
    model.has_list = False
    provider = ProviderSettings("near", "anthropic")
    agent = Agent("A", "near", "claude-sonnet-5-5", tuple(filter(None, [newest])))
    async with ModelServer(model) as server:
        settings = Settings(
            agents=(agent,),
            agent="A",
            providers={"near": ProviderSettings("near", "anthropic", server.url)},
        )
        async with Session(settings, environ=environ(server, tmp_path)) as session:
            assert await session.process_message("hello") == "well"
            assert await session.process_message("and now?") == "well"
    assert [body["model"] for body in model.bodies] == ["claude-sonnet-5-5"] * 2
    # A failed list is not asked for again at once, and nobody needs one for a fixed name.
    assert len(server.requests) == 2 + bool(newest)
    assert provider.model_list == "auto"


async def test_an_answer_keeps_its_model_although_a_new_list_arrives(tmp_path: Path) -> None:
    model = Anthropic()
    async with ModelServer(model) as server:
        env = environ(server, tmp_path)
        app = App(Settings(), env, open_ledger(), folder=lambda: tmp_path)
        buffer = ChatBuffer(Editor(), app, 1, "")  # type: ignore[arg-type]
        await app.models.prepare(parse(CHAT), None)
        turn, of_buffer = app.resolve(None), buffer.resolve_for(engine.Snapshot.of(CHAT, 0), None)
        assert turn(parse(CHAT)).request.model == "claude-nova-1"
        model.newer = [claude("claude-nova-2", "sonnet", "2027-03-01T00:00:00Z")]
        await app.models.all(refresh=True)
        begun = f"{CHAT}\n🤖:[Claude]\n\nhm\n"
        later = buffer.resolve_for(engine.Snapshot.of(begun, 0), None)
        following = f"{begun}\n💬: more\n"
        other = buffer.resolve_for(engine.Snapshot.of(following, 9), None)
        models = [
            resolve(parse(text)).request.model
            for resolve, text in (
                *((turn, begun), (of_buffer, begun), (later, begun)),
                *((other, following), (app.resolve(None), following)),
            )
        ]
        assert models == [*["claude-nova-1"] * 3, *["claude-nova-2"] * 2]
        await app.models.prepare(parse(begun), None)
        await app.close()


class Editor:
    """Enough of an editor for a chat's agent."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()


ANSWERED = "🔒: [Answered by claude-opus-9, for claude-nova-1]"


async def test_a_model_other_than_the_requested_one_is_named_once_in_the_file_and_always_in_the_log(
    tmp_path: Path,
) -> None:
    model = Anthropic()
    async with ModelServer(model) as server, Session(environ=environ(server, tmp_path)) as session:
        for name in ("claude-nova-1-20270201", "claude-opus-9", "claude-opus-9", "x\ny", ""):
            model.model = name
            assert await session.process_message("hello") == "well"
        text, records = session.transcript, session._app.ledger("").history()
    assert text.count("🔒: [") == 1
    assert f"well\n\n{ANSWERED}\n\n💬: hello" in text
    assert [facts.get("answered") for _, kind, facts in records if kind == "request"] == [
        *("claude-nova-1-20270201", "claude-opus-9", "claude-opus-9", None, None)
    ]
    assert ANSWERED[2:] not in json.dumps(model.bodies, ensure_ascii=False)
    assert not parse(text).problems
