"""Parley as a library: a conversation in memory, over the demo."""

from __future__ import annotations

import pytest

from parley import Session
from parley.chat.reader import parse
from parley.engine import ChatSettings
from parley.errors import ParleyError
from parley.settings.values import Settings
from parley.tools.servers import ServerSettings

ENVIRON = {"PARLEY_DEMO_PACE": "0"}
STOCKS = "What is the stock price of google?"


async def test_a_message_is_answered_with_tools_when_they_are_approved() -> None:
    async with Session(approve=lambda _: "ya", environ=ENVIRON) as session:
        kinds = [chunk["type"] async for chunk in session.send_message_stream(STOCKS)]
        assert "911" in await session.process_message(STOCKS)
    assert {"tool_start", "tool_result", "content"} <= set(kinds)
    assert kinds[-1] == "done"
    assert parse(session.transcript).problems == ()
    assert len(parse(session.transcript).exchanges) == 3


async def test_without_approval_no_tool_runs() -> None:
    async with Session(environ=ENVIRON) as session:
        kinds = [chunk["type"] async for chunk in session.send_message_stream(STOCKS)]
    assert "tool_start" not in kinds
    assert "[refused]" in session.transcript


@pytest.mark.parametrize("text", ["", " \n\t\n"])
async def test_an_empty_message_is_an_error_and_no_silence(text: str) -> None:
    async with Session(environ=ENVIRON) as session:
        chunks = [chunk async for chunk in session.send_message_stream(text)]
        assert chunks == [{"type": "error", "error": "nothing is asked: the text is empty"}, {"type": "done"}]
        with pytest.raises(ParleyError, match="nothing is asked"):
            await session.process_message(text)


async def test_any_text_can_be_asked() -> None:
    async with Session(environ=ENVIRON) as session:
        await session.process_message("\n\n💬: not a\0 marker\n\n❓:[yA] `{}` \ud800\n\n")
    (asked, _) = parse(session.transcript).exchanges
    assert asked.question
    assert asked.question.text == "💬: not a␀ marker\n\n❓:[yA] `{}` \ufffd"


async def test_whoever_asks_hears_that_the_tools_of_a_server_are_missing() -> None:
    gone = Settings().with_servers({"gone": ServerSettings("gone", "/no/such/program")})
    async with Session(gone, agent="Demo", environ=ENVIRON) as session:
        chunks = [chunk async for chunk in session.send_message_stream("say: hello")]
    (hint,) = [chunk["content"] for chunk in chunks if chunk["type"] == "hint"]
    assert hint.startswith("no tools of MCP server 'gone': ")
    assert "hello" in session.transcript


async def test_a_bug_is_no_silence() -> None:
    async with Session(environ=ENVIRON) as session:

        def broken(_: object) -> ChatSettings:
            raise ZeroDivisionError

        session.app.resolve = lambda _: broken
        with pytest.raises(ZeroDivisionError):
            await session.process_message("hi")


async def test_a_reference_that_cannot_be_brought_stops_the_question_once() -> None:
    async with Session(environ=ENVIRON) as session:
        await session.process_message("say: first")
        before = session.transcript
        with pytest.raises(ParleyError, match=r"^not asked: @@/none\.txt@@: .*; asking again"):
            await session.process_message("say: hello @@/none.txt@@")
        assert session.transcript == before
        assert "hello" in await session.process_message("say: hello @@/none.txt@@")
    assert [exchange.answers != () for exchange in parse(session.transcript).exchanges] == [True, True, False]
