"""A running tool's status: its progress, and a sentence for which nothing waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from parley import engine
from parley.chat.reader import parse
from parley.chat.transcript import Result
from parley.clock import PausableClock
from parley.errors import ModelError
from parley.mcp.server_session import Progress
from parley.models.events import Aside, Event, Finished, TextDelta, Usage
from parley.models.request import Request
from parley.policy.approval import CallKey
from parley.policy.rate import RateWindow
from parley.policy.status_texts import sentence_prompt
from parley.runtime.asyncio_ports import Callbacks
from parley.runtime.audit import AuditedObserver
from parley.runtime.tools_port import ToolsPort
from parley.runtime.turn_attachments import TurnAttachments
from parley.settings.values import PROVIDERS, ProviderSettings, Settings, Status
from parley.storage.attachment_files import ChatAttachments
from parley.storage.ledger import ChatLedger
from parley.tools.catalogue import Catalogue, Tool
from parley.tools.results import Outcome
from parley.tools.server_settings import WORKSPACE, ServerSettings
from parley.tools.tasks import TaskHandle
from tests.fake_time import run
from tests.ledgers import open_ledger
from tests.pictures import png

SEARCH = Tool("mock", "web_search")
ARGUMENTS = '{"query":"google"}'
KEY = CallKey("call_1", SEARCH.server, SEARCH.name, ARGUMENTS, SEARCH.digest)
ASK = Request(
    parse("💬: what?\n"), 0, "anthropic", "claude-sonnet-5-5", "Be brief.", max_tokens=4000
)
SENTENCE = "Searching the web for google"


class Talker:
    """A model that replies after some seconds, or fails; records its requests."""

    def __init__(self, *said: str | ModelError, after: float = 0.5) -> None:
        self.said = said
        self.after = after
        self.asked = list[Request]()

    async def once(self, _: ProviderSettings, request: Request) -> AsyncIterator[Event]:
        self.asked.append(request)
        await asyncio.sleep(self.after)
        for piece in self.said:
            if isinstance(piece, ModelError):
                raise piece
            yield TextDelta(piece)
        yield Usage(30, 6)
        yield Finished("complete")


class Server:
    """A server whose tool takes some seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    async def call(self, *_: object, **__: object) -> Outcome:
        await asyncio.sleep(self.seconds)
        return Outcome("ok", "found")


def ports(
    talker: Any,
    server: Any,
    tell: Callable[[str], None],
    audit: ChatLedger,
    settings: Settings,
    used: int,
    chat: str = "",
    on_event: Callable[[engine.TurnEvent], None] = lambda _: None,
) -> ToolsPort:
    clock, rate = PausableClock(), RateWindow(30)
    for _ in range(used):
        rate.take(0.0)
    observer = AuditedObserver(Callbacks(tell, on_event), audit)
    attachments = TurnAttachments(ChatAttachments(chat), observer)
    provider = PROVIDERS.__getitem__

    async def no_agent(_: object, progress: object) -> Outcome:
        return Outcome("error", "no agent")

    return ToolsPort(
        *(server, talker, provider, observer, clock, audit, rate, settings.status, attachments),
        no_agent,
    )


def statuses(
    talker: Talker,
    seconds: float = 5.0,
    *,
    request: Request = ASK,
    wanted: Status | None = None,
    used: int = 0,
    audit: ChatLedger | None = None,
) -> list[str]:
    """The statuses while a tool runs; the run's length does not depend on the model."""
    said = list[str]()
    settings = Settings(status=wanted or Status())

    async def work() -> None:
        kept = audit or open_ledger().chat("chat.md")
        turn = ports(talker, Server(seconds), said.append, kept, settings, used)
        assert await turn.call(SEARCH, KEY, request, TaskHandle()) == Result("ok", "found")
        assert asyncio.get_running_loop().time() == seconds

    run(work())
    return said


def test_progress_is_shown_as_often_as_it_can_be_read() -> None:
    class Working:
        async def call(self, *_: object, progress: Progress, **__: object) -> Outcome:
            for step in range(80):
                progress(step, 80, "reading" if step else None)
                await asyncio.sleep(1 / 16)
            progress(80, None, None)
            return Outcome("ok", "found")

    said = list[str]()

    async def work() -> None:
        audit = open_ledger().chat("chat.md")
        quiet = Settings(status=Status(llm=False))
        turn = ports(Talker(), Working(), said.append, audit, quiet, 0)
        await turn.call(SEARCH, KEY, ASK, TaskHandle())

    run(work())
    assert said == [
        "Progress: 0 of 80",
        *(f"reading ({step} of 80)" for step in range(8, 80, 8)),
        "Progress: 80",
    ]


def workspace_tool(name: str, folder: str) -> Tool:
    settings = ServerSettings(WORKSPACE, cwd=folder, builtin=True)
    return Tool(WORKSPACE, name, identity=settings.identity)


def test_a_turn_never_continues_in_a_folder_that_the_user_has_changed_to() -> None:
    class Moving:
        folder = "/one"

        def offered(self) -> Catalogue:
            return Catalogue.of([SEARCH, workspace_tool("read_file", self.folder)])

        async def begin(self, *, again: bool) -> None:
            pass

        def awaited(self) -> tuple[str, ...]:
            return ()

        def news(self, missing: Collection[str]) -> dict[str, str]:
            return {}

    servers, events = Moving(), list[engine.TurnEvent]()

    def turn() -> ToolsPort:
        audit = open_ledger().chat("chat.md")
        return ports(Talker(), servers, print, audit, Settings(), 0, on_event=events.append)

    async def names(port: ToolsPort) -> tuple[tuple[str, ...], tuple[str, ...]]:
        catalogue = await port.catalogue(lambda tools: tools, ())
        return catalogue.names(), catalogue.missing

    async def work() -> None:
        running = turn()
        assert await names(running) == (("read_file", "web_search"), ())
        servers.folder = "/two"
        for _ in range(2):
            assert await names(running) == (("web_search",), (WORKSPACE,))
        assert len(events) == 1
        assert await names(turn()) == (("read_file", "web_search"), ())
        servers.folder = "/one"
        assert await names(running) == (("read_file", "web_search"), ())

    run(work())


def test_a_commands_progress_is_its_last_line() -> None:
    class Working:
        async def call(self, *_: object, progress: Progress, **__: object) -> Outcome:
            for seconds, line in ((0.5, None), (1.0, "building"), (1.5, "50 %")):
                await asyncio.sleep(0.6)
                progress(seconds, None, line)
            return Outcome("ok", "found")

    command = workspace_tool("run_command", "/one")
    said = list[str]()

    async def work() -> None:
        audit = open_ledger().chat("chat.md")
        quiet = Settings(status=Status(llm=False))
        turn = ports(Talker(), Working(), said.append, audit, quiet, 0)
        await turn.call(command, KEY, ASK, TaskHandle())

    run(work())
    assert said == ["building", "50 %"]


class Returning:
    """A server whose tool returns an outcome."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome

    async def call(self, *_: object, **__: object) -> Outcome:
        return self.outcome


async def returned(outcome: Outcome, chat: str) -> tuple[Result, list[str]]:
    """The result of a call in a chat, and the messages for the user."""
    told, quiet = list[str](), Settings(status=Status(llm=False))
    turn = ports(
        Talker(), Returning(outcome), told.append, open_ledger().chat("chat.md"), quiet, 0, chat
    )

    def note(what: object) -> None:
        if isinstance(what, Aside):
            told.append(what.text)

    turn._observer.on_event = note  # type: ignore[method-assign]
    return await turn.call(SEARCH, KEY, ASK, TaskHandle()), told


async def test_pictures_and_cut_text_are_next_to_the_chat_before_anything_names_them(
    tmp_path: Path,
) -> None:
    outcome = Outcome("ok", "head…", (png(1), png(2)), "head and tail é")
    result, told = await returned(outcome, str(tmp_path / "chat.md"))
    assert told == []
    assert (result.status, result.body) == ("ok", "head…")
    contents = [(tmp_path / attachment.path).read_bytes() for attachment in result.attachments]
    assert contents == [png(1), png(2), "head and tail é".encode()]
    assert [attachment.label for attachment in result.attachments] == ["image/png 69 B"] * 2 + [
        "16 B"
    ]


async def test_if_nothing_can_be_kept_pictures_are_described_and_the_user_is_told() -> None:
    result, told = await returned(Outcome("error", "", (png(),), ""), "")
    assert result == Result("error", "[image image/png, 69 B]")
    assert told == ["A picture was not kept: it needs a file next to the chat. Save the chat first"]
    result, told = await returned(Outcome("ok", "head…", (), "head and tail"), "")
    assert result == Result("ok", "head…")
    assert told == [
        (
            "The full text of a long result was not kept: it needs a file next to the chat. Save "
            "the "
            "chat first"
        )
    ]


def test_a_sentence_that_arrives_in_time_is_shown() -> None:
    talker = Talker('"Searching the ', 'web for google"')
    assert statuses(talker) == [SENTENCE]


def test_the_request_has_tool_and_arguments_and_little_else() -> None:
    talker = Talker(SENTENCE)
    statuses(talker)
    (asked,) = talker.asked
    assert [e.question and e.question.text for e in asked.transcript.exchanges] == [
        sentence_prompt("web_search", ARGUMENTS)
    ]
    assert (asked.system, asked.max_tokens, asked.tools_on) == ("", 20, False)
    assert not asked.thinking.enabled
    assert asked.model == ASK.model
    other = Talker(SENTENCE)
    statuses(other, wanted=Status(model="claude-haiku-5"))
    assert other.asked[0].model == "claude-haiku-5"


@pytest.mark.parametrize("seconds", [0.0, 1.0, 60.0])
def test_a_model_that_hangs_delays_nothing(seconds: float) -> None:
    assert statuses(Talker("too late", after=10**6), seconds) == []


def test_no_sentence_is_requested_for_a_short_call() -> None:
    talker = Talker(SENTENCE)
    assert statuses(talker, 0.29) == []
    assert talker.asked == []


def test_a_sentence_that_takes_longer_than_two_seconds_is_not_shown() -> None:
    assert statuses(Talker(SENTENCE, after=1.9)) == [SENTENCE]
    assert statuses(Talker(SENTENCE, after=2.1)) == []


@pytest.mark.parametrize(
    "said", ["", "  ", "x" * 100, "two\nlines", "a \x1b[31mcommand", ModelError("no", reason="no")]
)
def test_a_reply_that_is_not_a_sentence_is_not_shown(said: str | ModelError) -> None:
    assert statuses(Talker(said)) == []


def test_no_sentence_is_requested_if_it_is_off_or_the_host_is_not_the_providers_own() -> None:
    for talker, more in (
        (Talker(SENTENCE), {"wanted": Status(llm=False)}),
        (Talker(SENTENCE), {"request": replace(ASK, provider="ollama")}),
    ):
        assert statuses(talker, **more) == []
        assert talker.asked == []


def test_no_sentence_is_requested_with_less_than_a_fifth_of_the_requests_left() -> None:
    assert statuses(Talker(SENTENCE), used=24) == [SENTENCE]
    assert statuses(Talker(SENTENCE), used=25) == []


def test_the_request_is_recorded_as_a_status_request() -> None:
    audit = open_ledger().chat("chat.md")
    statuses(Talker(SENTENCE), audit=audit)
    statuses(Talker(SENTENCE, after=9), 1.0, audit=audit)
    done, given_up = [facts for _, kind, facts in audit.history() if kind == "request"]
    assert (done["for"], done["outcome"], done["tokens"]["output"]) == ("status", "complete", 6)
    assert (given_up["for"], given_up["outcome"]) == ("status", "cut")
