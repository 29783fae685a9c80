"""A turn's clock: it stops while Parley waits for the user or a rate limit, and limits move along."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from parley.chat import references
from parley.chat.reader import parse
from parley.clock import PausableClock
from parley.errors import PendingError
from parley.mcp.server_session import Progress, Signals
from parley.mcp.supervisor import Supervisor
from parley.models.events import Aside, Event, Finished, TextDelta
from parley.models.request import Request
from parley.policy.rate import RateWindow
from parley.processes.stderr import StderrTail
from parley.runtime.app import App, FrontEnd
from parley.runtime.asyncio_ports import Callbacks, together
from parley.runtime.audit import AuditedObserver
from parley.runtime.model_port import ModelPort
from parley.runtime.reply_retries import ReplyRetries
from parley.runtime.text_tool_caller import TextToolCaller
from parley.settings.values import ProviderSettings, Settings
from parley.storage.chat_file import TextDocument
from parley.tools.catalogue import Tool
from parley.tools.prompts import Prompt
from parley.tools.resources import ResourceList
from parley.tools.results import Outcome
from parley.tools.server_settings import ServerSettings
from parley.tools.tasks import TaskHandle
from parley.tools.templates import Blank
from tests.defaults import attempts_with
from tests.fake_time import run
from tests.ledgers import open_ledger

DAY = 86_400.0


def test_the_clock_stops_during_a_wait() -> None:
    async def work() -> list[float]:
        clock, seen = PausableClock(), list[float]()
        for seconds in (3, 4):
            await asyncio.sleep(seconds)
            with clock.paused(), clock.paused():
                seen.append(clock.now())
                await asyncio.sleep(DAY)
            seen.append(clock.now())
        return seen

    assert run(work()) == [3, 3, 7, 7]


@pytest.mark.parametrize("begun", ["before", "while it stands still"])
def test_a_limit_keeps_its_remaining_time_during_a_wait(begun: str) -> None:
    async def work() -> float:
        clock, loop = PausableClock(), asyncio.get_running_loop()

        async def user() -> None:
            await asyncio.sleep(6 if begun == "before" else 0)
            with clock.paused():
                await asyncio.sleep(DAY)

        asking = asyncio.ensure_future(user())
        await asyncio.sleep(0 if begun == "before" else 1)
        with pytest.raises(TimeoutError):
            async with clock.limit(10):
                await asyncio.Event().wait()
        await asking
        return loop.time() - DAY

    assert run(work()) == 10


def test_concurrent_calls_get_only_the_users_time_in_addition() -> None:
    async def work() -> tuple[list[str], list[str]]:
        clock, done, cut = PausableClock(), list[str](), list[str]()

        async def asks() -> str:
            with clock.paused():
                await asyncio.sleep(DAY)
            await asyncio.sleep(8)
            return "asked"

        async def hangs() -> str:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cut.append(f"cut at {clock.now():g}")
                raise
            return "never"

        async for outcome in together([asks, hangs], 10, clock):
            done.append(outcome)
        return done, cut

    assert run(work()) == (["asked"], ["cut at 10"])


class Questioner:
    """A session with a server that asks the user a question during a call."""

    protocol = "fake"
    instructions = left_out = ""

    def __init__(self, signals: Signals) -> None:
        self._signals = signals

    async def tools(self) -> tuple[Tool, ...]:
        return (ASKS,)

    async def call(
        self, name: str, arguments: dict[str, Any], tell: Progress, task: TaskHandle
    ) -> Outcome:
        await asyncio.sleep(4)
        with self._signals.clock.paused():
            await asyncio.sleep(DAY)
        await asyncio.sleep(arguments["then"])
        return Outcome("ok", "blue")

    async def cancel(self, task_id: str) -> None:
        raise NotImplementedError

    async def resource(self, uri: str) -> str:
        raise NotImplementedError

    async def read(self, uri: str) -> Outcome:
        raise NotImplementedError

    async def resources(self) -> ResourceList:
        return ResourceList()

    async def values(self, blank: Blank) -> tuple[str, ...]:
        return ()

    async def prompts(self) -> tuple[Prompt, ...]:
        return ()

    async def prompt(self, name: str, arguments: Mapping[str, str]) -> str:
        raise NotImplementedError


ASKS = Tool("fake", "asks")


@asynccontextmanager
async def questioner(
    _: ServerSettings, __: StderrTail, signals: Signals
) -> AsyncIterator[Questioner]:
    yield Questioner(signals)


@pytest.mark.parametrize(
    ("then", "outcome"),
    [
        (5.0, Outcome("ok", "blue")),
        (7.0, Outcome("error", "Tool 'asks' of MCP server 'fake' did not answer within 10 s")),
    ],
)
def test_a_forms_time_counts_neither_for_the_call_nor_for_its_turn(
    then: float, outcome: Outcome
) -> None:
    async def work() -> tuple[list[Outcome], float]:
        turn = PausableClock()
        supervisor = Supervisor(ServerSettings("fake", timeout_s=10), nothing, questioner)

        async def call() -> Outcome:
            return await supervisor.call(ASKS, {"then": then}, None, turn, TaskHandle())

        found = [outcome async for outcome in together([call], 12, turn)]
        elapsed = turn.now()
        if ending := supervisor.stop():
            await ending
        return found, elapsed

    assert run(work()) == ([outcome], min(4 + then, 10))


class Reporter(Questioner):
    """A session with a server that reports its progress every few seconds. Then it either answers
    or hangs.
    """

    async def call(
        self, name: str, arguments: dict[str, Any], tell: Progress, task: TaskHandle
    ) -> Outcome:
        for step in range(arguments["reports"]):
            await asyncio.sleep(arguments["every"])
            tell(step, None, None)
        await asyncio.sleep(arguments["then"])
        return Outcome("ok", "built")


@asynccontextmanager
async def reporter(_: ServerSettings, __: StderrTail, signals: Signals) -> AsyncIterator[Reporter]:
    yield Reporter(signals)


NO_ANSWER = "Tool 'asks' of MCP server 'fake' did not answer within {} s"


@pytest.mark.parametrize(
    ("arguments", "outcome", "turn_s"),
    [
        ({"reports": 30, "every": 8.0, "then": 9.0}, Outcome("ok", "built"), 8),
        ({"reports": 30, "every": 8.0, "then": 11.0}, Outcome("error", NO_ANSWER.format(10)), 8),
        ({"reports": 1, "every": 11.0, "then": 0.0}, Outcome("error", NO_ANSWER.format(10)), 10),
        ({"reports": 1000, "every": 8.0, "then": 0.0}, Outcome("error", NO_ANSWER.format(600)), 8),
        ({"reports": 0, "every": 0.0, "then": 11.0}, Outcome("error", NO_ANSWER.format(10)), 10),
    ],
)
def test_a_call_continues_while_its_server_reports_progress_within_bounds(
    arguments: dict[str, Any], outcome: Outcome, turn_s: float
) -> None:
    async def work() -> tuple[list[Outcome], float]:
        turn = PausableClock()
        supervisor = Supervisor(ServerSettings("fake", timeout_s=10), nothing, reporter)

        async def call() -> Outcome:
            return await supervisor.call(ASKS, arguments, None, turn, TaskHandle())

        found = [outcome async for outcome in together([call], 12, turn)]
        elapsed = turn.now()
        if ending := supervisor.stop():
            await ending
        return found, elapsed

    assert run(work()) == ([outcome], turn_s)


class Digger(Questioner):
    """A session with a server that runs the call as an endless task."""

    async def call(
        self, name: str, arguments: dict[str, Any], tell: Progress, task: TaskHandle
    ) -> Outcome:
        await task.begin("task-1")
        while True:
            tell(None, None, "digging")
            await asyncio.sleep(8)


@asynccontextmanager
async def digger(_: ServerSettings, __: StderrTail, signals: Signals) -> AsyncIterator[Digger]:
    yield Digger(signals)


def test_an_endless_task_can_be_collected_later_if_its_server_outlives_the_turn() -> None:
    async def work(settings: ServerSettings) -> Outcome:
        supervisor = Supervisor(settings, nothing, digger)
        try:
            return await supervisor.call(ASKS, {}, None, PausableClock(), TaskHandle())
        finally:
            if ending := supervisor.stop():
                await ending

    near = ServerSettings("fake", timeout_s=10)
    assert run(work(near)) == Outcome("error", NO_ANSWER.format(600))
    with pytest.raises(
        PendingError, match=r"within 600 s\. Its result will be collected when the turn continues"
    ):
        run(work(replace(near, url="http://127.0.0.1:9/mcp")))


def test_a_limit_restarted_while_the_clock_is_stopped_counts_from_the_restart() -> None:
    async def work() -> float:
        clock, loop = PausableClock(), asyncio.get_running_loop()

        async def waits() -> None:
            async with clock.limit(10, 100) as renew:
                await asyncio.sleep(7)
                with clock.paused():
                    await asyncio.sleep(DAY)
                    renew()
                await asyncio.Event().wait()

        with pytest.raises(TimeoutError):
            await waits()
        return loop.time() - DAY

    assert run(work()) == 17


async def nothing() -> None:
    """Do nothing: no preparation is needed."""


def test_the_users_time_to_approve_a_file_does_not_count_for_the_turn(tmp_path: Path) -> None:
    async def think(_: Path) -> bool:
        await asyncio.sleep(DAY)
        return True

    async def work() -> tuple[list[str], float]:
        app = App(Settings(), {}, open_ledger(), front_end=FrontEnd(may_read=think))
        inside = tmp_path / "inside"
        ports = app.ports(TextDocument("", 0), "chat.md", Callbacks(), lambda: inside)
        brought = await ports.references.bring([references.Path(str(tmp_path / "note.txt"))])
        await app.close()
        return [each.text for each in brought], ports.clock.now()

    (tmp_path / "note.txt").write_text("outside", encoding="utf-8")
    (tmp_path / "inside").mkdir()
    assert run(work()) == (["outside"], 0)


class Talker:
    """A provider that answers at once."""

    def settled(self, request: Request) -> Request:
        return request

    async def stream(self, *_: object) -> AsyncIterator[Event]:
        yield TextDelta("yes")
        yield Finished("complete")


def test_the_31st_request_in_a_minute_waits_with_a_status_and_uses_no_time() -> None:
    said = list[str]()

    async def work() -> tuple[list[float], float]:
        clock, loop, sent = PausableClock(), asyncio.get_running_loop(), list[float]()
        rate = RateWindow(Settings().safety.rate_limit_per_minute)
        chats = [model_port(clock, rate, said.append) for _ in range(2)]
        for number in range(31):
            async for _ in chats[number % 2].stream(Request(parse("💬: q\n"), 0, "p", "m")):
                pass
            sent.append(loop.time())
            await asyncio.sleep(1)
        return sent, clock.now()

    sent, elapsed = run(work())
    assert sent == [*range(30), 60]
    assert elapsed == 31
    assert said == [f"Rate limit reached, waiting {left}s..." for left in range(30, 0, -1)] + [""]


def test_the_first_text_does_not_wait_until_a_long_chat_is_measured() -> None:
    async def work() -> list[Event]:
        port = model_port(PausableClock(), RateWindow(9), lambda _: None)
        request = Request(parse(f"💬: {'word ' * 9_000}\n"), 0, "p", "m", window=10_000)
        return [event async for event in port.stream(request)]

    first, notice, *_ = run(work())
    assert first == TextDelta("yes")
    assert isinstance(notice, Aside)
    assert "this chat is too long" in notice.text


def model_port(clock: PausableClock, rate: RateWindow, status: Callable[[str], None]) -> ModelPort:
    audit = open_ledger().chat("chat.md")
    observer = AuditedObserver(Callbacks(status), audit)
    talker: Any = Talker()
    return ModelPort(
        talker,
        ProviderSettings,
        observer,
        clock,
        audit,
        rate,
        TextToolCaller(attempts_with()),
        set(),
        ReplyRetries(0),
        lambda *_: talker.stream(),
    )
