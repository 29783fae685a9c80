"""Parley asks once more for a reply that breaks off, and loses nothing if that fails."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from parley import engine
from parley.chat.reader import parse
from parley.engine import End
from parley.errors import ModelError
from parley.iterators import closing
from parley.models.events import (
    Aside,
    Call,
    Event,
    Finished,
    Ran,
    RanResult,
    TextDelta,
    Usage,
    Withdrawn,
)
from parley.models.request import Request
from parley.models.sse import SSE
from parley.runtime.app import App
from parley.runtime.asyncio_ports import Callbacks
from parley.runtime.reply_retries import ReplyRetries
from parley.settings.read import read_settings
from parley.settings.values import Settings
from parley.storage.chat_file import TextDocument
from parley.verification import RequestRecord, verify_chat
from tests.chats import TOOLS, call
from tests.fakes import LoggedTools, ScriptedModel, ScriptStep, Turns
from tests.faulty_server import BEGUN, SAYS, FaultyServer, Part, Response
from tests.faulty_server import event as sent
from tests.ledgers import open_ledger
from tests.streams_corpus import DECODERS, STREAMS, events_of

CHAT = "💬: q\n"
BROKEN = ModelError("it broke. What to do: wait", reason="it broke", is_broken=True)


@dataclass
class RetriedModel(ScriptedModel):
    """Asks a scripted model again if its reply breaks off."""

    retries: ReplyRetries
    statuses: list[str] = field(default_factory=list)

    def __init__(self, retries: ReplyRetries, *replies: Sequence[ScriptStep]) -> None:
        super().__init__(*replies)
        self.retries, self.statuses = retries, []

    def stream(self, request: Request) -> AsyncIterator[Event]:
        ask = super().stream
        return self.retries.stream(lambda: ask(request), self.statuses.append)


def turn(most: int, *replies: Sequence[ScriptStep]) -> tuple[End, str, RetriedModel]:
    """A turn's end, its text, and the model, which answers after calls, too."""
    done: list[ScriptStep] = [TextDelta("done"), Finished("complete")]
    model = RetriedModel(ReplyRetries(most), *replies, *[done] * 2)
    turns = Turns(CHAT, model, LoggedTools(TOOLS))
    return asyncio.run(turns.run()), turns.text, model


WHOLE = [
    path
    for kind in DECODERS
    for path in sorted((STREAMS / kind).glob("*.sse"))
    if events_of(path, [path.read_bytes()])[1] is None and path.stat().st_size < 3_000
]


def outcomes(path: Path) -> list[list[ScriptStep]]:
    """Every outcome of a stream that is cut after any of its bytes, except complete ones. It depends
    only on the payloads, and most bytes complete none.
    """
    content, known = path.read_bytes(), dict[str, list[ScriptStep]]()
    cuts = dict[tuple[tuple[str, ...], tuple[str, ...]], bytes]()
    for cut in range(len(content)):
        sse = SSE()
        cuts[tuple(sse.feed(content[:cut])), tuple(sse.end())] = content[:cut]
    for received in cuts.values():
        events, error = events_of(path, [received])
        if error:
            known.setdefault(f"{events}{error}", [*events, error])
    return list(known.values())


@pytest.mark.parametrize("path", WHOLE, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_stream_cut_at_any_byte_becomes_the_whole_reply_or_todays_notice(path: Path) -> None:
    events: list[ScriptStep] = list(events_of(path, [path.read_bytes()])[0])
    end, text, once = turn(0, events)
    for cut in outcomes(path):
        again, shown, model = turn(1, cut, events)
        if any(isinstance(each, Ran | RanResult) for each in cut):  # as after a call
            assert len(model.asks) == 1
            continue
        assert (again, shown) == (end, text)
        assert len(model.asks) == len(once.asks) + 1
        assert model.statuses == ["the stream ended early: asking again..."]
        failed = turn(1, cut, cut)
        assert failed[:2] == turn(0, cut)[:2]
        assert failed[0].kind == "interrupted"


@pytest.mark.parametrize(
    ("steps", "error"),
    [
        ([TextDelta("half")], ModelError("x", reason="overloaded", retryable=True)),
        ([TextDelta("half")], ModelError("x", reason="refused", status=400)),
        ([], ModelError("x", reason="no connection", retryable=True, is_broken=True)),
        ([TextDelta("I look."), Call(call(1))], BROKEN),
    ],
)
def test_other_failures_are_not_asked_again(steps: list[ScriptStep], error: ModelError) -> None:
    end, _, model = turn(1, [*steps, error], [TextDelta("no"), Finished("complete")])
    assert end.kind == "interrupted"
    assert len(model.asks) == 1


def test_a_reply_is_asked_for_as_often_as_the_setting_says() -> None:
    whole: list[ScriptStep] = [TextDelta("whole"), Finished("complete")]
    halves: list[list[ScriptStep]] = [[TextDelta(text), BROKEN] for text in ("a", "longer", "b")]
    assert turn(3, *halves, whole)[0] == End("complete")
    end, text, model = turn(2, *halves)
    assert (end.kind, len(model.asks)) == ("interrupted", 3)
    assert text == f"{CHAT}\n🤖:[Demo]\n\nlonger\n\n🔒: [Interrupted: it broke]\n\n💬: \n"


def test_an_empty_second_reply_keeps_the_text_and_its_notice() -> None:
    _, text, _ = turn(1, [TextDelta("half"), BROKEN], [Finished("complete")])
    assert "half\n\n🔒: [Interrupted: it broke]" in text


def test_text_that_cannot_be_taken_back_is_not_replaced() -> None:
    for steps, asks in (([TextDelta("half")], 1), ([Usage(3, 0)], 2)):
        model = RetriedModel(
            ReplyRetries(1, can_take_back=False),
            [*steps, BROKEN],
            [TextDelta("whole"), Finished("complete")],
        )
        turns = Turns(CHAT, model, LoggedTools(TOOLS))
        asyncio.run(turns.run())
        assert len(model.asks) == asks


async def test_a_reader_that_stops_closes_the_second_request() -> None:
    model = ScriptedModel([TextDelta("half"), BROKEN], [TextDelta("who"), TextDelta("le")])
    retries, request = ReplyRetries(1), Request(parse(CHAT), 0, "p", "m")
    events = retries.stream(lambda: model.stream(request), lambda _: None)
    async with closing(events) as reader:
        shown = [event async for event in _until(reader, TextDelta("who"))]
    assert shown == [TextDelta("half"), Withdrawn(), TextDelta("who")]
    assert model.closed == 2


async def _until(events: AsyncIterator[Event], last: Event) -> AsyncIterator[Event]:
    async for event in events:
        yield event
        if event == last:
            return


# --- Over the wire --------------------------------------------------------------------------------


@dataclass
class Outcome:
    """What a turn leaves behind."""

    end: End
    document: TextDocument
    app: App
    statuses: list[str]
    events: list[object]


def lab_settings(address: str, kind: str, **more: Any) -> Settings:
    """Settings with one agent, whose provider has this format and address."""
    family = "anthropic" if kind == "anthropic" else "openai"
    url = address + ("" if kind == "anthropic" else "/v1")
    price = {"input": 1_000_000, "output": 1_000_000}
    table = {
        "agents": [{"name": "A", "provider": "lab", "model": "some-model", "price": price}],
        "providers": {
            "lab": {"kind": family, "base_url": url, "api": "auto" if family == kind else kind}
        },
        "agent": "A",
        **more,
    }
    settings, problems = read_settings(table)
    assert problems == ()
    return settings


async def outcome(
    server: FaultyServer,
    kind: str,
    *script: Response,
    on_event: Callable[[TextDocument, object], None] = lambda *_: None,
    **settings: Any,
) -> Outcome:
    """A question's outcome, if the server responds like this."""
    server.plan(*script)
    app = App(lab_settings(server.url, kind, **settings), {}, open_ledger())
    document = TextDocument(CHAT, 0)
    statuses, seen = list[str](), list[object]()

    def heed(what: object) -> None:
        seen.append(what)
        on_event(document, what)

    ports = app.ports(document, "", Callbacks(statuses.append, heed))
    end = await engine.run_turn(ports, app.resolve(None))
    return Outcome(end, document, app, statuses, seen)


ENDS: dict[str, list[Part]] = {
    "cut": ["cut"],
    "reset": ["reset"],
    "early end": [],
    "unreadable": [b"data: {nonsense\n\n"],
    # A gateway's event for a lost connection to its provider.
    "server's error": [sent({"type": "error", "error": {"type": "api_error", "message": "lost"}})],
}


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("kind", SAYS)
async def test_a_connection_that_breaks_costs_one_more_request(kind: str, how: str) -> None:
    half: list[Part] = [*SAYS[kind]("Half", " of it")[: BEGUN[kind]], *ENDS[how]]
    async with FaultyServer() as server:
        done = await outcome(server, kind, Response(half), Response(SAYS[kind]("Whole")))
        assert done.end == End("complete")
        assert done.document.text == f"{CHAT}\n🤖:[A]\n\nWhole\n\n💬: \n"
        assert len(server.requests) == 2
        assert server.requests[0] == server.requests[1]
        assert sum(text.endswith(": asking again...") for text in done.statuses) == 1
        log = done.app.ledger("").history()
        requests = [facts for _, name, facts in log if name == "request"]
        assert [facts["outcome"] == "complete" for facts in requests] == [False, True]
        shown = [each for each in done.events if isinstance(each, Usage)][-1:]
        total = sum((Usage(**facts["tokens"]) for facts in requests), Usage())
        assert shown in ([], [total])
        assert [each for each in done.events if isinstance(each, Aside)] == []
        rows = done.app.ledger("").requests()
        records = [RequestRecord(r.at, json.loads(r.header), r.units, r.reply) for r in rows]
        checked = verify_chat(parse(done.document.text), records)
        assert (checked.requests, checked.same, list(checked.unknown)) == (1, 1, [])
        await done.app.close()


@pytest.mark.parametrize("kind", SAYS)
async def test_two_broken_replies_leave_the_longer_text_and_the_notice(kind: str) -> None:
    parts: list[list[Part]] = [
        [*SAYS[kind](text, "?")[: BEGUN[kind]], "cut"] for text in ("The longer half", "Short")
    ]
    async with FaultyServer() as server:
        done = await outcome(server, kind, *(Response(each) for each in parts))
        assert done.end.kind == "interrupted"
        assert done.document.text == (
            f"{CHAT}\n🤖:[A]\n\nThe longer half\n\n"
            "🔒: [Interrupted: lab broke off the connection]\n\n💬: \n"
        )
        assert len(server.requests) == 2
        await done.app.close()
        switched_off = await outcome(
            server, kind, *(Response(each) for each in parts), retry={"broken_replies": 0}
        )
        assert len(server.requests) == 1
        await switched_off.app.close()


async def test_the_text_may_be_edited_between_both_requests() -> None:
    """The user adds a note below the answer, and edits the question; both stay."""
    half: list[Part] = [*SAYS["chat"]("Half", "")[: BEGUN["chat"]], "cut"]

    def edit(document: TextDocument, what: object) -> None:
        if what == TextDelta("Half"):
            document.lines[0] = "💬: q, edited"
            document.lines += ["", "💬: next"]

    async with FaultyServer() as server:
        script = Response(half), Response(SAYS["chat"]("Whole"))
        done = await outcome(server, "chat", *script, on_event=edit)
        assert done.document.text == "💬: q, edited\n\n🤖:[A]\n\nWhole\n\n💬: next\n"
        await done.app.close()


async def test_a_user_who_stops_the_second_request_keeps_the_text() -> None:
    half: list[Part] = [*SAYS["chat"]("Half", "")[: BEGUN["chat"]], "cut"]
    document = TextDocument(CHAT, 0)
    async with FaultyServer() as server:
        server.plan(Response(half), Response(["silence"]))
        app = App(lab_settings(server.url, "chat"), {}, open_ledger())
        ports = app.ports(document, "", Callbacks())
        turn = asyncio.ensure_future(engine.run_turn(ports, app.resolve(None)))
        while len(server.requests) < 2:  # noqa: ASYNC110 - the server has no event for it
            await asyncio.sleep(0.01)
        turn.cancel()
        await asyncio.gather(turn, return_exceptions=True)
        await engine.stopped(ports)
        assert document.text == (f"{CHAT}\n🤖:[A]\n\nHalf\n\n🔒: [Stopped: by the user]\n\n💬: \n")
        await app.close()


async def test_each_request_counts_for_the_rate_limit() -> None:
    half: list[Part] = [*SAYS["chat"]("Half", "")[: BEGUN["chat"]], "cut"]
    async with FaultyServer() as server:
        script = Response(half), Response(SAYS["chat"]("Whole"))
        done = await outcome(server, "chat", *script, safety={"rate_limit_per_minute": 9})
        assert done.app._rate.left(asyncio.get_running_loop().time()) == pytest.approx(7 / 9)
        await done.app.close()
