"""Parley as a library: a conversation in memory, with the demo."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any, Literal

import pytest
from mcp.server import MCPServer

from parley import (
    CallLimits,
    Choice,
    Chunk,
    Decision,
    Finished,
    ModelError,
    Proposal,
    Provider,
    ProviderEvent,
    ProviderRequest,
    Session,
    TextDelta,
    Usage,
)
from parley.chat.reader import parse
from parley.engine import ChatSettings
from parley.errors import BusyError, ParleyError, SettingsError, UserCancelled
from parley.settings.values import Mcp, Settings
from parley.tools.server_settings import ServerSettings
from tests.forks import forks
from tests.mcp import resource_server
from tests.workspace.trees import work_tree, write

ENVIRON = {"PARLEY_DEMO_PACE": "0"}
SLOWLY = {"PARLEY_DEMO_PACE": "0.01"}
STOCKS = "What is the stock price of google?"
TWO_STOCKS = "What is the stock price of google and microsoft?"
MOCK = {"mcp": {"mock": True}}
STOPPED = "🔒: [Stopped: by the user]"


def of_type(chunks: list[Chunk], kind: str) -> list[Mapping[str, Any]]:
    return [chunk for chunk in chunks if chunk["type"] == kind]


async def begun(session: Session, text: str) -> asyncio.Task[str]:
    """A message whose answer has begun."""
    task = asyncio.ensure_future(session.process_message(text))
    async with asyncio.timeout(10):
        while "🤖:" not in session.transcript.rpartition("💬:")[2]:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0)
    return task


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
async def test_an_empty_message_is_an_error(text: str) -> None:
    async with Session(environ=ENVIRON) as session:
        chunks = [chunk async for chunk in session.send_message_stream(text)]
        assert chunks == [{"type": "error", "error": "the message is empty"}, {"type": "done"}]
        with pytest.raises(ParleyError, match="the message is empty"):
            await session.process_message(text)


async def test_any_text_can_be_asked() -> None:
    async with Session(environ=ENVIRON) as session:
        await session.process_message("\n\n💬: not a\0 marker\n\n❓:[yA] `{}` \ud800\n\n")
    (asked, _) = parse(session.transcript).exchanges
    assert asked.question
    assert asked.question.text == "💬: not a␀ marker\n\n❓:[yA] `{}` \ufffd"


async def test_a_hint_says_that_a_servers_tools_are_missing() -> None:
    gone = Settings().with_servers({"gone": ServerSettings("gone", "/no/such/program")})
    async with Session(gone, agent="Demo", environ=ENVIRON) as session:
        chunks = [chunk async for chunk in session.send_message_stream("say: hello")]
    (hint,) = of_type(chunks, "hint")
    assert hint["content"].startswith("no tools from MCP server 'gone': ")
    assert "hello" in session.transcript


async def test_a_bug_propagates(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Session(environ=ENVIRON) as session:

        def broken(_: object) -> ChatSettings:
            raise ZeroDivisionError

        monkeypatch.setattr(session._app, "resolve", lambda _: broken)
        with pytest.raises(ZeroDivisionError):
            await session.process_message("hi")


REFERENCES = ("note.txt", "note.txt:1-1", "*.txt", "sub/*", "diff", "docs:note://tea", "/none.txt")


@pytest.mark.parametrize("reference", REFERENCES)
async def test_a_question_reads_no_files_unless_the_program_names_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reference: str
) -> None:
    (tmp_path / "note.txt").write_text("in the folder")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "x.md").write_text("in the folder")
    monkeypatch.chdir(tmp_path)
    asked = f"say: a @@{reference}@@ b"
    servers = {"docs": resource_server.create()}
    async with Session(
        agent="Demo", transcript=f"💬: {asked}\n", servers=servers, environ=ENVIRON
    ) as session:
        answer = await session.process_message(asked)
    assert f"@@{reference}@@" in answer
    assert [e.question.text for e in parse(session.transcript).exchanges if e.question] == [
        asked,
        asked,
        "",
    ]


async def test_a_question_reads_files_from_the_folder_that_the_program_names(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    (folder / "note.txt").write_text("in the folder")
    (tmp_path / "key.txt").write_text("outside")
    async with Session(agent="Demo", references=folder, environ=ENVIRON) as session:
        await session.process_message("say: @@note.txt@@")
        assert "in the folder" in session.transcript
        with pytest.raises(ParleyError, match="outside the working directory, so not read"):
            await session.process_message("say: @@../key.txt@@")
    with pytest.raises(SettingsError, match=r"^references: no such folder: .*/none$"):
        Session(references=tmp_path / "none")


async def test_a_hidden_file_is_read_only_if_the_program_agrees_to_it(tmp_path: Path) -> None:
    asked = list[str]()
    for name in (".hidden", ".other", ".env"):
        (tmp_path / name).write_text(f"the text of {name}")

    async def may_read(path: Path) -> bool:
        asked.append(path.name)
        return path.name == ".hidden"

    async with Session(
        agent="Demo", references=tmp_path, environ=ENVIRON, may_read=may_read
    ) as session:
        await session.process_message("say: @@.hidden@@")
        assert "the text of .hidden" in session.transcript
        await session.process_message("say: again @@.hidden@@")
        with pytest.raises(ParleyError, match="hidden, so not read"):
            await session.process_message("say: @@.other@@")
        with pytest.raises(ParleyError, match="named like a secret, so not read"):
            await session.process_message("say: @@.env@@")
    assert asked == [".hidden", ".other"]
    async with Session(agent="Demo", references=tmp_path, environ=ENVIRON) as session:
        with pytest.raises(ParleyError, match="hidden, so not read"):
            await session.process_message("say: @@.hidden@@")


async def test_a_session_lists_and_reverts_what_its_calls_changed(tmp_path: Path) -> None:
    write(tmp_path, {"a": "one\n", "b": "two\n"})
    async with Session(agent="Demo", workspace=tmp_path, approve=lambda _: True) as session:
        assert (await session.changes(), await session.revert()) == ({}, [])
        for path in "abc":
            await session.process_message(
                f'call write_file {{"path": "{path}", "content": "new\\n"}}'
            )
        changes = await session.changes()
        assert [path.name for path in changes] == ["c", "b", "a"]
        assert changes[tmp_path / "a"].splitlines()[-2:] == ["-one", "+new"]
        assert await session.revert(tmp_path / "b") == [tmp_path / "b"]
        (tmp_path / "a").write_text("mine\n")
        with pytest.raises(ParleyError, match=r"^not reverted: .*a has changed since$"):
            await session.revert()
        assert list(await session.changes()) == [tmp_path / "a"]
    assert [(tmp_path / name).read_text() for name in "ab"] == ["mine\n", "two\n"]
    assert not (tmp_path / "c").exists()


def writes(**files: str) -> str:
    """A question after which the model writes these files at once."""
    calls = (json.dumps({"path": path, "content": text}) for path, text in files.items())
    return " ".join(f"call write_file {call}" for call in calls)


async def test_approve_sees_the_diff_of_each_call_and_no_choice_reaches_an_unseen_one(
    tmp_path: Path,
) -> None:
    write(tmp_path, {"a": "one\n", "b": "two\n"})
    diffs, searches = list[str](), list[str]()

    def approve(call: Proposal) -> Decision:
        (diffs if call.call.name == "write_file" else searches).append(call.diff)
        return "ya" if len(diffs) != 2 else "yn"

    async with Session(
        MOCK, agent="Demo", workspace=tmp_path, approve=approve, environ=ENVIRON
    ) as session:
        await session.process_message(STOCKS)
        await session.process_message(writes(a="new\n", b="new\n", c="c"))
        assert "-two" not in session.transcript
    assert searches == [""]
    assert [diff.splitlines()[:2] for diff in diffs] == [
        ["--- a/a", "+++ b/a"],
        ["--- a/b", "+++ b/b"],
        ["--- /dev/null", "+++ b/c"],
    ]
    assert diffs[0].splitlines()[2:] == ["@@ -1 +1 @@", "-one", "+new"]
    assert [(tmp_path / name).read_text() for name in "abc"] == ["new\n", "two\n", "c"]


@pytest.mark.parametrize("key", ["yo", "ya", "yA", "yO"])
async def test_an_approval_counts_only_for_the_diff_that_approve_saw(
    tmp_path: Path, key: Choice
) -> None:
    write(tmp_path, {"a": "one\n"})
    diffs = list[str]()

    async def approve(call: Proposal) -> Decision:
        diffs.append(call.diff)
        if len(diffs) == 1:
            (tmp_path / "a").write_text("mine\n")
        return key if len(diffs) == 1 else "yn"

    async with Session(agent="Demo", workspace=tmp_path, approve=approve, environ=ENVIRON) as s:
        await s.process_message(writes(a="new\n"))
    assert [diff.splitlines()[-2:] for diff in diffs] == [["-one", "+new"], ["-mine", "+new"]]
    assert (tmp_path / "a").read_text() == "mine\n"


async def test_an_edit_that_no_longer_fits_is_refused_after_its_approval(tmp_path: Path) -> None:
    write(tmp_path, {"a": "one\n"})
    asked = list[Proposal]()

    def approve(call: Proposal) -> Decision:
        asked.append(call)
        (tmp_path / "a").write_text("mine\n")
        return True

    edit = {"path": "a", "edits": [{"old": "one", "new": "two"}]}
    async with Session(agent="Demo", workspace=tmp_path, approve=approve, environ=ENVIRON) as s:
        await s.process_message(f"call edit_file {json.dumps(edit)}")
        assert "[refused]" in s.transcript
    assert len(asked) == 1
    assert (tmp_path / "a").read_text() == "mine\n"


@pytest.mark.parametrize("front", ["", "---\ninstructions: []\n---\n\n"])
async def test_a_session_sends_only_the_instructions_that_the_program_gives(
    front: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(work_tree(tmp_path, {}), {"AGENTS.md": "of the project", "parley/AGENTS.md": "own"})
    monkeypatch.chdir(tmp_path)
    environ = {**ENVIRON, "XDG_CONFIG_HOME": str(tmp_path)}
    settings = {"instructions": ["AGENTS.md"], "system_prompt": "Be kind."}
    async with Session(
        settings, agent="Demo", instructions="Be brief.", transcript=front, environ=environ
    ) as session:
        request = session._app.resolve(None)(parse(f"{front}💬: hi\n")).request
    given = "" if front else "\n\n# Instructions from the program\n\nBe brief."
    assert request.system == f"Be kind.{given}"


async def test_a_session_offers_the_workspace_only_if_the_program_says_so(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "a note"})
    question = 'call read_file {"path": "a.txt"}'
    for settings, folder in (
        ({}, None),
        ({}, tmp_path),
        ({"workspace": {"root": str(tmp_path)}}, None),
    ):
        async with Session(
            settings, agent="Demo", workspace=folder, approve=lambda _: True
        ) as session:
            await session.process_message(question)
            assert ("1\ta note" in session.transcript) == bool(settings or folder)
    with pytest.raises(SettingsError, match="workspace: the folder would be the whole file system"):
        Session(agent="Demo", workspace="/")


async def test_a_reference_that_cannot_be_included_stops_the_question_once() -> None:
    async with Session(references=".", environ=ENVIRON) as session:
        await session.process_message("say: first")
        before = session.transcript
        with pytest.raises(
            ParleyError, match=r"^not asked: @@/none\.txt@@: .*; ask again to continue"
        ):
            await session.process_message("say: hello @@/none.txt@@")
        assert session.transcript == before
        assert "hello" in await session.process_message("say: hello @@/none.txt@@")
    assert [exchange.answers != () for exchange in parse(session.transcript).exchanges] == [
        True,
        True,
        False,
    ]


async def test_all_sessions_of_a_process_share_its_rate_limit() -> None:
    settings = {"safety": {"rate_limit_per_minute": 1}}
    async with Session(settings, agent="Demo", environ=ENVIRON) as first:
        await first.process_message("say: hello")
    async with Session(settings, agent="Demo", environ=ENVIRON) as second:
        async for chunk in second.send_message_stream("say: hello"):
            if chunk["type"] == "status" and chunk["content"].startswith("Rate limit reached"):
                break
            assert chunk["type"] == "status"


class Shout:
    """A provider as an object in this program."""

    name = "shout"

    def __init__(self, ending: str = "!") -> None:
        self.ending = ending

    def supports_tools(self, model: str) -> bool:
        return False

    async def stream(self, request: ProviderRequest) -> AsyncIterator[ProviderEvent]:
        if self.ending == "raise":
            raise ModelError("no voice", reason="hoarse")
        yield TextDelta(f"{request.model}: {request.messages[-1]['content'].upper()}{self.ending}")
        yield Finished("complete")


def test_a_provider_may_be_an_object() -> None:
    provider: Provider = Shout()
    with Session(provider=provider, environ=ENVIRON) as session:
        assert session.ask("hello") == "shout: HELLO!"
        assert "🤖:[shout]" in session.transcript
        transcript = session.transcript
    agents = [{"name": "S", "provider": "shout", "model": "loud"}]
    with Session(
        {"agents": agents}, provider=Shout("?"), agent="S", transcript=transcript, environ=ENVIRON
    ) as session:
        assert session.ask("hello again") == "loud: HELLO AGAIN?"
    message = r"the provider shout from this program says: no voice"
    with (
        Session(provider=Shout("raise"), environ=ENVIRON) as session,
        pytest.raises(ParleyError, match=message),
    ):
        session.ask("hello")


@pytest.mark.parametrize(
    ("settings", "name", "message"),
    [
        ({}, "", "provider: expected a word as its name, got ''"),
        ({}, "a b", "provider: expected a word as its name, got 'a b'"),
        ({}, "openai", "provider: the name 'openai' is taken"),
        (
            {"agents": [{"name": "own", "provider": "anthropic", "model": "m"}]},
            "own",
            "provider: the name 'own' is taken",
        ),
    ],
)
def test_a_provider_has_its_own_name(settings: dict[str, Any], name: str, message: str) -> None:
    provider = Shout()
    provider.name = name
    with pytest.raises(SettingsError) as caught:
        Session(settings, provider=provider, environ=ENVIRON)
    assert str(caught.value) == message


# --- Decisions ------------------------------------------------------------------------------------


async def later(decision: Decision) -> Decision:
    await asyncio.sleep(0)
    return decision


@pytest.mark.parametrize(
    ("decision", "marks"),
    [
        (True, ["yo", "yo"]),
        (False, ["yn", "yn"]),
        ("yA", ["yA", "yA"]),
        ("yN", ["yN", "yN"]),
        ((False, "not now"), ["yn", "yn"]),
        (("yN", "not now"), ["yN", "yN"]),
    ],
)
@pytest.mark.parametrize("wait", [False, True], ids=["at once", "later"])
async def test_a_decision_is_a_bool_a_choice_or_a_reason(
    decision: Decision, marks: list[str], wait: bool
) -> None:
    def approve(_: Proposal) -> Decision | Awaitable[Decision]:
        return later(decision) if wait else decision

    async with Session(agent="Demo", approve=approve, environ=ENVIRON) as session:
        await session.process_message(TWO_STOCKS)
    (exchange, _) = parse(session.transcript).exchanges
    calls = exchange.answers[-1].proposals
    assert [call.choice for call in calls] == marks
    is_told_why = all(call.result and "not now" in call.result.body for call in calls)
    assert is_told_why == (isinstance(decision, tuple))


@pytest.mark.parametrize("decision", [None, 1, "yes", "", (True, "why"), (False,), ("yn", 3)])
async def test_an_invalid_decision_raises_and_leaves_a_valid_transcript(decision: Any) -> None:
    async with Session(agent="Demo", approve=lambda _: decision, environ=ENVIRON) as session:
        with pytest.raises(TypeError, match="approve must return True, False, a choice") as error:
            await session.process_message(STOCKS)
        assert repr(decision) in str(error.value)
        assert "🔒: [Interrupted: TypeError: approve must return" in session.transcript
        assert "hello" in await session.process_message("say: hello")
    assert parse(session.transcript).problems == ()


async def test_a_refused_call_is_an_error_and_a_result_with_the_same_id() -> None:
    settings = {"max_tool_calls": 1}
    async with Session(settings, agent="Demo", approve=lambda _: True, environ=ENVIRON) as session:
        assert session.calls_left == 1
        chunks = [chunk async for chunk in session.send_message_stream(TWO_STOCKS)]
        assert session.calls_left == 1
    (start,), (error,) = of_type(chunks, "tool_start"), of_type(chunks, "error")
    results = {result["id"]: result for result in of_type(chunks, "tool_result")}
    assert error["error"] == "Tool call limit exceeded for this message"
    assert (results[error["id"]]["refused"], results[error["id"]]["is_error"]) == (True, True)
    assert (results[start["id"]]["refused"], results[start["id"]]["is_error"]) == (False, False)
    assert chunks[-1] == {"type": "done"}


async def test_a_refused_call_does_not_fail_the_message() -> None:
    async with Session(
        agent="Demo", approve=lambda _: (False, "not now"), environ=ENVIRON
    ) as session:
        assert "did not look up google" in await session.process_message(STOCKS)


async def test_calls_left_respects_the_sessions_and_the_messages_limit() -> None:
    settings, left = {"max_tool_calls": {"per_session": 3, "per_message": 2}}, list[int | None]()

    def approve(_: Proposal) -> bool:
        left.append(session.calls_left)
        return True

    async with Session(settings, agent="Demo", approve=approve, environ=ENVIRON) as session:
        await session.process_message(TWO_STOCKS)
        assert session.calls_left == 1
        await session.process_message(STOCKS)
        assert session.calls_left == 0
    assert left == [2, 2, 1]


async def test_the_tokens_of_each_request_are_reported_and_summed() -> None:
    async with Session(agent="Demo", approve=lambda _: True, environ=ENVIRON) as session:
        assert (session.usage.input, session.calls_left) == (0, None)
        chunks = [chunk async for chunk in session.send_message_stream(STOCKS)]
        usages = [chunk["usage"] for chunk in of_type(chunks, "usage")]
        assert session.usage == Usage(**usages[0]) + Usage(**usages[1])
        assert min(usage["output"] for usage in usages) > 0


async def test_a_status_is_a_chunk_and_is_passed_to_a_function() -> None:
    texts = list[str]()
    async with Session(agent="Demo", on_status=texts.append, environ=ENVIRON) as session:
        chunks = [chunk async for chunk in session.send_message_stream("say: hello")]
    assert texts == [*(chunk["content"] for chunk in of_type(chunks, "status")), ""]
    assert texts[0] == "Analyzing request..."


async def test_a_failing_status_function_is_a_bug_and_leaves_a_notice() -> None:
    def fail(text: str) -> None:
        if text != "Analyzing request...":
            raise ZeroDivisionError

    async with Session(agent="Demo", on_status=fail, environ=ENVIRON) as session:
        with pytest.raises(ZeroDivisionError):
            await session.process_message(STOCKS)
        assert "🔒: [Interrupted: ZeroDivisionError]" in session.transcript


FIRST = ("Analyzing", "Writing a reply", "Selecting")
HELD_BACK = ("Analyzing", "Selecting", "Writing a reply", "Selecting")
ORDER = {"Demo": FIRST, "Demo-OpenAI": FIRST, "Demo-Text": HELD_BACK}
THEN = ("Using Web Search", "Processing tool results", "Formulating response")


@pytest.mark.parametrize("agent", ORDER)
async def test_the_statuses_come_in_order_and_mention_a_response_only_after_results(
    agent: str,
) -> None:
    async with Session(agent=agent, approve=lambda _: True, environ=ENVIRON) as session:
        chunks = [chunk async for chunk in session.send_message_stream(STOCKS)]
    texts = [chunk["content"] for chunk in of_type(chunks, "status")]
    begun = zip(texts, (*ORDER[agent], *THEN), strict=True)
    assert [text for text, begin in begun if not text.startswith(begin)] == []
    formulating = chunks.index({"type": "status", "content": "Formulating response..."})
    kinds = [chunk["type"] for chunk in chunks]
    assert "content" not in kinds[kinds.index("tool_result") : formulating]
    assert "tool_result" not in kinds[formulating:]


async def test_without_tools_every_reply_is_the_response() -> None:
    async with Session({"tool_mode": "off"}, agent="Demo", environ=ENVIRON) as session:
        chunks = [chunk async for chunk in session.send_message_stream("say: hello")]
    texts = [chunk["content"] for chunk in of_type(chunks, "status")]
    assert texts == ["Analyzing request...", "Formulating response..."]


# --- One message at a time, and its end -----------------------------------------------------------


async def test_a_second_message_at_the_same_time_is_refused() -> None:
    async with Session(agent="Demo", environ=SLOWLY) as session:
        first = await begun(session, "say: first")
        with pytest.raises(BusyError, match="is answering another message"):
            await session.process_message("say: second")
        assert await first == "first"
        assert await session.process_message("say: third") == "third"
    assert "second" not in session.transcript


async def test_leaving_the_stream_leaves_a_notice_and_the_next_message_is_answered() -> None:
    async with Session(agent="Demo", environ=SLOWLY) as session:
        async for chunk in session.send_message_stream(STOCKS):
            if chunk["type"] == "content":
                break
        assert await session.process_message("say: hello") == "hello"
    assert session.transcript.count(STOPPED) == 1
    assert parse(session.transcript).problems == ()


async def test_a_closed_stream_leaves_a_notice() -> None:
    async with Session(agent="Demo", environ=SLOWLY) as session:
        async with aclosing(session.send_message_stream(STOCKS)) as chunks:
            async for chunk in chunks:
                if chunk["type"] == "content":
                    break
        assert STOPPED in session.transcript


async def test_a_cancelled_message_leaves_a_notice() -> None:
    async with Session(agent="Demo", environ=SLOWLY) as session:
        task = await begun(session, STOCKS)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert STOPPED in session.transcript


async def test_a_stopped_message_raises_for_its_caller() -> None:
    async with Session(agent="Demo", environ=SLOWLY) as session:
        task = await begun(session, STOCKS)
        await session.stop()
        assert STOPPED in session.transcript
        with pytest.raises(UserCancelled, match=r"^Streaming cancelled by user$"):
            await task
        await session.stop()
        assert session.transcript.count(STOPPED) == 1


async def test_a_message_that_waits_for_a_decision_can_be_cancelled() -> None:
    decided = asyncio.Event()

    async def approve(_: Proposal) -> bool:
        decided.set()
        await asyncio.Event().wait()
        return True

    async with Session(agent="Demo", approve=approve, environ=ENVIRON) as session:
        task = asyncio.ensure_future(session.process_message(STOCKS))
        await decided.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert STOPPED in session.transcript


# --- Who answers ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: Session(agent="Nobody", environ=ENVIRON),
            "there is no agent 'Nobody': choose one of",
        ),
        (lambda: Session(Settings(agent="Nobody"), environ=ENVIRON), "there is no agent 'Nobody'"),
        (
            lambda: Session(transcript="---\nagent: Nobody\n---\n", environ=ENVIRON),
            "transcript: this chat asks for the agent Nobody, which is not set up here",
        ),
        (lambda: Session(transcript="---\nagent: [\n---\n", environ=ENVIRON), "transcript: "),
    ],
)
async def test_an_unknown_agent_is_refused_and_never_substituted(
    make: Callable[[], Session], words: str
) -> None:
    async with make() as session:
        before = session.transcript
        with pytest.raises(ParleyError) as error:
            await session.process_message("say: hello")
        assert str(error.value).startswith(words)
        assert session.transcript == before


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"agent": "Nobody"}, "agent: expected the name of an agent"),
        ({"nonsense": 1}, "nonsense: there is no such setting"),
    ],
)
def test_a_faulty_settings_table_is_an_error(table: dict[str, object], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        Session(table)


async def test_files_named_in_settings_are_read_and_their_flaws_are_errors(
    tmp_path: Path,
) -> None:
    file = tmp_path / "servers.json"
    file.write_text('{"mcpServers": {"gone": {"command": "/no/such/program"}}}', encoding="utf-8")
    for settings in ({"mcp": {"config_file": str(file)}}, Settings(mcp=Mcp(config_file=str(file)))):
        async with Session(settings, agent="Demo", environ=ENVIRON) as session:
            chunks = [chunk async for chunk in session.send_message_stream("say: hello")]
        (hint,) = of_type(chunks, "hint")
        assert hint["content"].startswith("no tools from MCP server 'gone': ")
    nowhere = str(tmp_path / "none")
    with pytest.raises(SettingsError, match=r"^parley: mcp\.config_file: .*none: No such file"):
        Session({"mcp": {"config_file": nowhere}})
    with pytest.raises(
        SettingsError, match=r"^parley: prompt_tools\.templates: .*none: No such file"
    ):
        Session({"prompt_tools": {"templates": nowhere}})


@pytest.mark.parametrize("limit", [-1, 1.5, "3", True, {"per_message": -1}])
def test_a_call_limit_is_a_number_or_a_table(limit: Any) -> None:
    with pytest.raises(
        SettingsError, match=r"max_tool_calls(\.per_message)?: expected an integer ≥ 0"
    ):
        Session({"max_tool_calls": limit})
    with pytest.raises(SettingsError, match="max_tool_calls: expected CallLimits"):
        Settings(max_tool_calls=limit)
    with pytest.raises(
        SettingsError, match=r"max_tool_calls\.per_session: expected an integer ≥ 0"
    ):
        CallLimits(per_session=limit)


# --- Your own tools -------------------------------------------------------------------------------


def price(symbol: str, currency: Literal["USD", "EUR"] = "USD") -> str:
    """The price of a share."""
    if symbol == "NONE":
        raise LookupError("no such share")
    return f"{symbol} is at 7 {currency}"


async def later_price(symbol: str) -> str:
    """The price of a share when the exchange opens."""
    await asyncio.sleep(0)
    return f"{symbol} will be at 8"


def answers_to(chunks: list[Chunk]) -> list[tuple[str, str, bool]]:
    return [
        (chunk["name"], chunk["content"], chunk["is_error"])
        for chunk in of_type(chunks, "tool_result")
    ]


async def test_a_function_is_a_tool_with_its_signatures_schema() -> None:
    async with Session(agent="Demo", tools=[price, later_price], environ=ENVIRON) as session:
        catalogue = await session._app.servers.catalogue()
    (tool,) = (tool for _, tool in catalogue.tools if tool.name == "price")
    assert (tool.server, tool.description) == ("python", "The price of a share.")
    assert tool.input_schema["required"] == ["symbol"]
    assert tool.input_schema["properties"]["currency"]["enum"] == ["USD", "EUR"]


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        ('call price {"symbol":"X"}', ("price", "X is at 7 USD", False)),
        ('call later_price {"symbol":"X"}', ("later_price", "X will be at 8", False)),
        ('call price {"symbol":"NONE"}', ("price", "Error executing tool price", True)),
        ('call price {"symbol":"X","currency":"DM"}', ("price", "Invalid arguments: ", True)),
    ],
)
async def test_a_function_runs_as_a_tool_when_it_is_approved(
    call: str, answer: tuple[str, str, bool]
) -> None:
    async with Session(
        agent="Demo", tools=[price, later_price], approve=lambda _: True, environ=ENVIRON
    ) as session:
        chunks = [chunk async for chunk in session.send_message_stream(call)]
    ((name, text, is_error),) = answers_to(chunks)
    assert (name, is_error) == (answer[0], answer[2])
    assert answer[1] in text
    assert chunks[-1] == {"type": "done"}


async def test_a_function_needs_approval_like_every_tool() -> None:
    async with Session(agent="Demo", tools=[price], environ=ENVIRON) as session:
        chunks = [chunk async for chunk in session.send_message_stream('call price {"symbol":"X"}')]
    assert [chunk["refused"] for chunk in of_type(chunks, "tool_result")] == [True]


async def test_an_in_process_server_has_the_given_name() -> None:
    server = MCPServer[Any]("shares")
    server.add_tool(price)
    async with Session(
        agent="Demo",
        servers={"shares": server},
        tools=[later_price],
        approve=lambda _: True,
        environ=ENVIRON,
    ) as session:
        chunks = [chunk async for chunk in session.send_message_stream('call price {"symbol":"X"}')]
        names = {(tool.server, tool.name) for _, tool in session._app.servers.offered().tools}
    assert answers_to(chunks) == [("price", "X is at 7 USD", False)]
    assert {("shares", "price"), ("python", "later_price")} <= names


async def test_a_resource_named_in_a_result_is_read_after_approval() -> None:
    names = list[str]()

    def approve(call: Proposal) -> bool:
        names.append(call.call.name)
        return True

    read = 'call docs__read_resource {"uri": "note://tea"}'
    async with Session(
        agent="Demo", servers={"docs": resource_server.create()}, approve=approve, environ=ENVIRON
    ) as session:
        assert "no tool" in await session.process_message(read)
        await session.process_message('call search {"query": "tea"}')
        assert "# Tea" in await session.process_message(read)
    assert names == ["search", "docs__read_resource"]


def test_functions_as_tools_do_not_change_the_programs_logging(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])  # like a program without logging setup, unlike pytest
    level = root.level
    Session(tools=[price]).close()
    assert (root.handlers, root.level) == ([], level)


def test_unsuitable_functions_and_taken_names_are_errors() -> None:
    server = MCPServer[Any]("shares")
    with pytest.raises(SettingsError, match="tools: <lambda> cannot become a tool: "):
        Session(tools=[lambda: ""])
    with pytest.raises(SettingsError, match="tools: two functions have the name price"):
        Session(tools=[price, price])
    for name in ("mock", "python", "here"):
        with pytest.raises(SettingsError, match=f"servers: the name '{name}' is taken"):
            Session(
                {"mcp": {"servers": {"here": {"command": "true"}}}},
                servers={name: server},
                tools=[price],
            )


# --- Without an event loop ------------------------------------------------------------------------


def test_a_program_without_an_event_loop_asks_and_waits() -> None:
    with Session(agent="Demo", approve=lambda _: True, environ=ENVIRON) as session:
        assert session.ask("say: hello") == "hello"
        assert "911" in session.ask(STOCKS)
        with pytest.raises(ParleyError, match="the message is empty"):
            session.ask("")


def test_a_closed_session_says_that_it_is_closed_and_keeps_its_transcript() -> None:
    with Session(agent="Demo", environ=ENVIRON) as session:
        session.ask("say: hello")
        before = session.transcript, session.usage, session.calls_left
    for _ in range(2):
        with pytest.raises(
            ParleyError, match=r"^this session is closed. Pass its transcript to a new Session"
        ):
            session.ask("say: hello")
        assert (session.transcript, session.usage, session.calls_left) == before
        session.close()


async def test_a_closed_session_says_so_in_an_event_loop_too() -> None:
    async with Session(agent="Demo", environ=ENVIRON) as session:
        await session.process_message("say: hello")
        with pytest.raises(ParleyError, match=r"Await aclose\(\) instead"):
            session.close()
    with pytest.raises(ParleyError, match=r"^this session is closed"):
        await session.process_message("say: hello")
    with pytest.raises(ParleyError, match=r"^this session is closed"):
        await anext(session.send_message_stream("say: hello"))
    await session.stop()
    await session.aclose()


async def test_an_error_names_a_remedy_for_a_python_program() -> None:
    agent = {"name": "A", "provider": "anthropic", "model": "m"}
    async with Session({"agents": [agent]}, agent="A", environ=ENVIRON) as session:
        chunks = [chunk async for chunk in session.send_message_stream("hi")]
        with pytest.raises(ParleyError) as caught:
            await session.process_message("hi")
    (error,) = of_type(chunks, "error")
    assert error["error"] == str(caught.value)
    assert "set ANTHROPIC_API_KEY in the environment" in error["error"]
    assert "Session(agent=NAME)" in error["error"]
    assert ":Parley" not in error["error"]


async def test_asking_within_an_event_loop_raises_with_a_remedy() -> None:
    async with Session(agent="Demo", environ=ENVIRON) as session:
        with pytest.raises(ParleyError, match=r"Await process_message\(\) instead"):
            session.ask("say: hello")
        assert session.transcript == ""


def test_a_session_stays_in_one_event_loop() -> None:
    with Session(agent="Demo", environ=ENVIRON) as session:
        session.ask("say: hello")
        with pytest.raises(ParleyError, match="event loop of its first message"):
            asyncio.run(session.process_message("say: hello"))


CARELESS = f"""
import asyncio
from parley import Session

async def ask():
    print(await Session(environ={ENVIRON}, approve=lambda _: "ya").process_message("{STOCKS}"))

asyncio.run(ask())
"""


def test_a_program_that_closes_no_session_ends() -> None:
    command = [forks().python, "-W", "ignore", "-c", CARELESS]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=45, check=True)
    assert "911" in ended.stdout


async def test_an_answer_is_regenerated_and_kept_until_the_new_one_begins() -> None:
    nobody = {"kind": "openai", "base_url": "http://127.0.0.1:9/v1", "api": "chat"}
    agents = [{"name": "Nobody", "provider": "nobody", "model": "nothing"}]
    settings = {"providers": {"nobody": nobody}, "agents": agents}
    async with Session(settings, agent="Demo", environ=ENVIRON) as session:
        with pytest.raises(ParleyError, match="no answer to regenerate"):
            await session.regenerate()
        await session.process_message("say: hello")
        before = session.transcript
        with pytest.raises(ParleyError, match="The old answer is unchanged"):
            await session.regenerate("Nobody")
        assert session.transcript == before
        chunks = [chunk async for chunk in session.regenerate_stream("Demo-OpenAI")]
        assert "".join(chunk["content"] for chunk in of_type(chunks, "content")) == "hello"
        assert session.transcript == before.replace("[Demo]", "[Demo-OpenAI]")
        await session.process_message("say: bye")
        assert session.transcript.count("🤖:[Demo]") == 1


async def test_a_session_offers_no_skills(tmp_path: Path) -> None:
    skill = tmp_path / ".claude/skills/pdf/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\ndescription: Forms\n---\n", encoding="utf-8")
    table = {"skills": {"enabled": True}}
    environ = {**ENVIRON, "HOME": str(tmp_path)}
    async with Session(table, agent="Demo", environ=environ) as session:
        text = await session.process_message('call read_skill {"name": "pdf"}')
    assert text.startswith("I have no tool named read_skill")
