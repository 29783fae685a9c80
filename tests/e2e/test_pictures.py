"""Pictures next to a chat reach the demo model, in each format."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from parley import engine
from parley.chat.attachments import attachment_of, link
from parley.chat.transcript import Result
from parley.demo.server import DemoServer, start
from parley.mock_server import PIXEL
from parley.models.encode import encoded
from parley.models.events import Aside
from parley.policy.rules import Pattern
from parley.providers.client import wire_format
from parley.runtime.asyncio_ports import Callbacks
from parley.settings.values import Agent, Approval, Mcp, ProviderSettings, Settings, Status
from parley.storage.chat_file import FileDocument
from parley.tools.server_settings import ServerSettings
from tests.e2e.machine import Machine, Process, proposals, read
from tests.forks import forks
from tests.pictures import beside, png, question
from tests.strict import check

RESPONSES = ProviderSettings(
    "demo-responses", "openai", api="responses", official=True, builtin=True
)
SETTINGS = Settings(
    status=Status(llm=False),
    providers={RESPONSES.name: RESPONSES},
    agents=(Agent("Demo-Responses", "demo-responses", "demo"),),
)
SEEING = ["Demo", "Demo-OpenAI", "Demo-Responses"]


@pytest.fixture(autouse=True)
async def demo(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[DemoServer]:
    """The demo model, for this test alone."""
    async with await start(check=check) as server:
        monkeypatch.setenv("PARLEY_DEMO_PORT", server.url.rsplit(":", 1)[1])
        yield server


def requests(demo: DemoServer) -> list[dict[str, Any]]:
    """The bodies of the requests to the demo model."""
    return [body for _, body in demo.requests]


async def respond(process: Process, path: Path) -> list[str]:
    """The messages to the user during a turn."""
    told = list[str]()

    def note(what: engine.TurnEvent) -> None:
        if isinstance(what, Aside):
            told.append(what.text)

    ports = process.app.ports(FileDocument(path), str(path), Callbacks(on_event=note))
    await engine.run_turn(ports, process.app.resolve(None))
    return told


def machine(folder: Path, text: str = "What is this?") -> tuple[Machine, Path]:
    """A machine with a chat about a picture."""
    machine = Machine(folder)
    path = machine.chat("")
    path.write_text(question(beside(path, png()), text=text), encoding="utf-8")
    return machine, path


@pytest.mark.parametrize("agent", SEEING)
async def test_a_model_that_sees_gets_the_picture(
    demo: DemoServer, tmp_path: Path, agent: str
) -> None:
    where, path = machine(tmp_path)
    async with where.start(replace(SETTINGS, agent=agent)) as process:
        assert await respond(process, path) == []
        assert "I am shown image/png." in path.read_text(encoding="utf-8")
        (sent,) = requests(demo)
    async with where.start(replace(SETTINGS, agent=agent)) as fresh:
        before = path.read_text(encoding="utf-8").partition("🤖:")[0]
        path.write_text(before, encoding="utf-8")
        ports = fresh.app.ports(FileDocument(path), str(path), Callbacks())
        seen = await engine.observe(ports, fresh.app.resolve(None))
        request = await engine.with_pictures(ports, seen.next_request())
        form = wire_format(fresh.app.provider(request.provider), request)
        assert encoded(form.body(request)) == encoded(sent)


async def test_a_model_that_cannot_see_gets_words_and_the_user_is_told_once(
    demo: DemoServer, tmp_path: Path
) -> None:
    where, path = machine(tmp_path)
    async with where.start(replace(SETTINGS, agent="Demo-Text", tool_mode="off")) as process:
        assert await respond(process, path) == [
            "demo-text cannot see pictures, so Parley sends text instead"
        ]
        text = path.read_text(encoding="utf-8")
        assert "I have no rule for that question" in text
        path.write_text(f"{text}and now?\n", encoding="utf-8")
        assert await respond(process, path) == []
        refused, *taken = map(json.dumps, requests(demo))
    assert "data:image/png;base64," in refused
    assert len(taken) == 2
    assert all("data:" not in body and "[image image/png, 69 B]" in body for body in taken)


@pytest.mark.parametrize("agent", SEEING)
async def test_without_the_folder_the_chat_continues_in_words(
    demo: DemoServer, tmp_path: Path, agent: str
) -> None:
    where, path = machine(tmp_path)
    (tmp_path / "chat.assets").rename(tmp_path / "lost")
    async with where.start(replace(SETTINGS, agent=agent)) as process:
        (aside,) = await respond(process, path)
        assert aside == "chat.assets/c47dd946….png: no such file. Parley sends text instead"
        assert "[image image/png, 69 B]" in json.dumps(requests(demo))
    assert "🔒:" not in path.read_text(encoding="utf-8")


async def test_a_question_may_consist_of_a_picture_alone(tmp_path: Path) -> None:
    where, path = machine(tmp_path, "")
    async with where.start(replace(SETTINGS, agent="Demo")) as process:
        await respond(process, path)
    assert "I am shown image/png." in path.read_text(encoding="utf-8")


AUTO = Approval(auto=(Pattern("extra/*"),))


def tooled(folder: Path, agent: str) -> tuple[Machine, Path, Settings]:
    """A machine with a server whose tool returns a picture."""
    machine = Machine(folder)
    path = machine.chat("💬: call picture {}\n")
    extra = ServerSettings("extra", forks().python, ("-m", "parley.mock_server", "--extra"))
    return machine, path, replace(SETTINGS, agent=agent, mcp=Mcp({"extra": extra}), approval=AUTO)


@pytest.mark.parametrize("agent", SEEING)
async def test_a_picture_from_a_tool_is_kept_next_to_the_chat_and_sent_to_the_model(
    demo: DemoServer, tmp_path: Path, agent: str
) -> None:
    where, path, settings = tooled(tmp_path, agent)
    async with where.start(settings) as process:
        assert await respond(process, path) == []
        _, second = map(json.dumps, requests(demo))
    (proposal,) = proposals(path)
    assert proposal.result == Result("ok", "", (attachment_of(PIXEL, "chat.assets", "png"),))
    assert (tmp_path / proposal.result.attachments[0].path).read_bytes() == PIXEL
    assert b64encode(PIXEL).decode() in second
    assert "picture returned" in path.read_text(encoding="utf-8")
    assert "image/png." in path.read_text(encoding="utf-8")
    assert read(path).problems == ()


async def test_a_model_without_tools_or_vision_is_told_about_the_picture(
    demo: DemoServer, tmp_path: Path
) -> None:
    where, path, settings = tooled(tmp_path, "Demo-Text")
    async with where.start(settings) as process:
        told = await respond(process, path)
        *_, last = map(json.dumps, requests(demo))
    assert told == [
        "demo-text does not support tools, so Parley describes them in the prompt",
        "demo-text cannot see pictures, so Parley sends text instead",
    ]
    assert b64encode(PIXEL).decode() not in last
    assert "[image image/png, 68 B]" in last
    assert proposals(path)[0].result == Result(
        "ok", "", (attachment_of(PIXEL, "chat.assets", "png"),)
    )


LONG, ROOM = 15_000, 10_000


@pytest.mark.parametrize("agent", SEEING)
async def test_a_long_result_is_kept_next_to_the_chat_and_readable_without_asking(
    demo: DemoServer, tmp_path: Path, agent: str
) -> None:
    where, path, settings = tooled(tmp_path, agent)
    settings = replace(settings, loop=replace(settings.loop, result_max_bytes=ROOM))
    path.write_text(f'💬: call long {{"bytes": {LONG}}}\n', encoding="utf-8")
    async with where.start(settings) as process:
        await respond(process, path)
        (first,) = proposals(path)
        assert first.result
        (whole,) = first.result.attachments
        text = (tmp_path / whole.path).read_text(encoding="utf-8")
        assert (len(text), whole.label) == (LONG, "15 kB")
        assert first.result.body == f"{text[:ROOM]}… [truncated: 5000 bytes omitted]"
        before = path.read_text(encoding="utf-8")
        path.write_text(
            f'{before}call read_result {{"call": "{first.call.id}"}}\n', encoding="utf-8"
        )
        assert await respond(process, path) == []
        *_, asked, _ = map(json.dumps, requests(demo))
    assert '"read_result"' in asked
    assert f'call \\"{first.call.id}\\" reads on in this result' in asked
    (_, second) = proposals(path)
    assert second.result
    end = f"\n[Characters {ROOM} to {LONG} of {LONG}; this is the end]"
    assert second.result == Result("ok", text[ROOM:] + end)
    assert read(path).problems == ()


async def test_a_referenced_picture_becomes_an_attachment(tmp_path: Path) -> None:
    where = Machine(tmp_path)
    path = where.chat("💬: What is in @@pic.png@@?\n")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "pic.png").write_bytes(png())
    async with where.start(replace(SETTINGS, agent="Demo")) as process:
        ports = process.app.ports(
            FileDocument(path), str(path), Callbacks(), folder=lambda: tmp_path / "work"
        )
        await engine.run_turn(ports, process.app.resolve(None))
    text = path.read_text(encoding="utf-8")
    picture = attachment_of(png(), "chat.assets", "png")
    assert text.startswith(f"💬: What is in @@pic.png@@?\n\n{link(picture)}\n\n🤖:[Demo]\n")
    assert "I am shown image/png." in text
    assert (tmp_path / picture.path).read_bytes() == png()
