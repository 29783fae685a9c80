"""For models without tools, or that fail to call them, retries leave nothing in the file."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from parley.chat.transcript import Transcript
from parley.engine import ChatSettings, End
from parley.errors import ModelError
from parley.iterators import closing
from parley.models import openai_chat
from parley.models.attempts import PATIENCE
from parley.models.events import Aside, Event, Finished, TextDelta, Usage
from parley.models.request import Request
from parley.models.text_tools.adapter import text_decoder, text_request
from parley.models.text_tools.template import Template
from parley.runtime.text_tool_caller import TextToolCaller
from parley.session import Session
from tests.chats import TOOLS
from tests.defaults import attempts_with, text_tools
from tests.fakes import LoggedTools, ScriptedModel, Turns

PRICE_QUESTION = "💬: the price of google?\n"
CALL = '{"tool": "web_search", "params": {"query": "google"}}'
NO_JSON = 'I try {"tool": "web_search", "params": {"query": "google"'
NO_QUERY = 'Again: {"tool": "web_search", "params": {}} There.'
CLOSING = """

Please correct these issues in your response. Ensure:
1. Tool calls use valid JSON format
2. Parameter names match the schema exactly
3. Required parameters are not missing"""


class TextModel(ScriptedModel):
    """A model that only writes text; a reply that is an exception is a refusal."""

    def __init__(
        self,
        *texts: str | ModelError,
        caller: TextToolCaller | None = None,
        patience: int | None = None,
        **settings: Any,
    ) -> None:
        super().__init__()
        self.texts = list(texts)
        self.delays = list[float]()
        self.notices = list[str]()
        self.caller = caller or TextToolCaller(
            attempts_with(**settings), patience=patience, sleep=self._sleep, luck=lambda: 0.5
        )

    async def _sleep(self, seconds: float) -> None:
        self.delays.append(seconds)

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        async for event in self.caller.stream(self.send, request, self.notices.append):
            yield event

    async def send(self, request: Request) -> AsyncIterator[Event]:
        self.asks.append(request)
        text = self.texts.pop(0)
        if isinstance(text, ModelError):
            raise text
        decoder = text_decoder(openai_chat.Decoder("ollama", "tiny"), request)
        for letter in text:
            for event in decoder.feed({"choices": [{"delta": {"content": letter}}]}):
                yield event
        for event in decoder.feed({"choices": [{"finish_reason": "stop"}]}) + decoder.end():
            yield event

    def questions(self) -> list[str]:
        """The last message of each request."""
        return [
            openai_chat.request_body(text_request(request))["messages"][-1]["content"]
            for request in self.asks
        ]


def turns(model: TextModel, mode: Any = "json", **further: Any) -> Turns:
    chat = Turns(PRICE_QUESTION, model, LoggedTools(TOOLS), provider="ollama", model_name="tiny")
    plain = chat.resolve

    def resolve(transcript: Transcript) -> ChatSettings:
        settings = plain(transcript)
        return replace(
            settings, request=replace(settings.request, text_tools=text_tools(mode, **further))
        )

    chat.resolve = resolve
    return chat


PROPOSED = (
    PRICE_QUESTION + '\n🤖:[Demo]\n\n❓: `{"index":0,"id":"call_p1","type":"function","function":'
    '{"name":"web_search","arguments":"{\\"query\\": \\"google\\"}"}}`\n'
)


async def test_after_two_failures_the_file_has_only_the_third_try() -> None:
    model = TextModel(NO_JSON, NO_QUERY, CALL)
    chat = turns(model)
    assert await chat.run() == End("waiting")
    assert chat.text == PROPOSED
    errors = [
        'Attempt 1: Invalid JSON format - expected {"tool": "name", "params": {...}}',
        "Attempt 2: Missing required parameter 'query'",
    ]
    head = "the price of google?\n\nIMPORTANT: Previous attempts failed with these errors:\n"
    assert model.questions() == [
        "the price of google?",
        f"{head}{errors[0]}{CLOSING}",
        f"{head}{errors[0]}\n{errors[1]}{CLOSING}",
    ]
    assert model.delays == [1.0, 2.0]
    assert model.notices == [
        "The tool call failed, retry 1 of 3...",
        "The tool call failed, retry 2 of 3...",
    ]


async def test_each_try_has_a_lower_temperature() -> None:
    model = TextModel(NO_JSON, NO_QUERY, CALL)
    request = Request(
        Transcript(),
        0,
        "ollama",
        "tiny",
        temperature=0.5,
        catalogue=TOOLS,
        text_tools=text_tools("json"),
    )
    assert [event async for event in model.stream(request)]
    assert [each.temperature for each in model.asks] == [0.5, 0.4, 0.3]


async def test_four_failures_leave_a_notice_and_nothing_else() -> None:
    model = TextModel(*[NO_QUERY] * 4)
    chat = turns(model)
    end = await chat.run()
    assert end.kind == "interrupted"
    assert "Missing required parameter 'query'" in end.message
    assert chat.text == (
        f"{PRICE_QUESTION}\n🤖:[Demo]\n\n🔒: [Interrupted: no valid tool call in 4 "
        "attempts]\n\n💬: \n"
    )
    assert len(model.asks) == 4
    assert model.delays == [1.0, 2.0, 4.0]


async def test_without_retries_one_failure_is_the_end() -> None:
    chat = turns(TextModel(NO_JSON, max_retries=0))
    await chat.run()
    assert chat.text == (
        f"{PRICE_QUESTION}\n🤖:[Demo]\n\n🔒: [Interrupted: no valid tool call in 1 "
        "attempt]\n\n💬: \n"
    )


async def test_a_plain_answer_is_asked_for_once() -> None:
    model = TextModel("It is $911.")
    chat = turns(model)
    assert await chat.run() == End("complete")
    assert chat.text == f"{PRICE_QUESTION}\n🤖:[Demo]\n\nIt is $911.\n\n💬: \n"


LONG = "So. " * (PATIENCE // 4 + 1)


@pytest.mark.parametrize("patience", [PATIENCE, None])
async def test_no_part_of_a_long_failure_remains(patience: int | None) -> None:
    chat = turns(TextModel(f"{LONG}\n\n{NO_QUERY[7:]}", f"I look.\n\n{CALL}", patience=patience))
    assert await chat.run() == End("waiting")
    assert chat.text == PROPOSED.replace("❓:", "I look.\n\n❓:")
    shown = "".join(event.text for event in chat.observer.events if isinstance(event, TextDelta))
    assert ("So." in shown) == (patience is not None)


async def test_only_the_notice_remains_of_long_failures() -> None:
    chat = turns(TextModel(*[f"{LONG}\n\n{NO_QUERY}"] * 4, patience=PATIENCE))
    assert (await chat.run()).kind == "interrupted"
    assert chat.text == (
        f"{PRICE_QUESTION}\n🤖:[Demo]\n\n🔒: [Interrupted: no valid tool call in 4 "
        "attempts]\n\n💬: \n"
    )


async def test_the_tokens_of_failed_tries_count() -> None:
    class Counting(TextModel):
        async def send(self, request: Request) -> AsyncIterator[Event]:
            yield Usage(10, 1)
            async for event in super().send(request):
                yield event

    chat = turns(Counting(NO_JSON, NO_QUERY, CALL))
    await chat.run()
    assert [event for event in chat.observer.events if isinstance(event, Usage)] == [
        Usage(10, 1),
        Usage(20, 2),
        Usage(30, 3),
    ]


async def test_a_broken_replys_text_stays() -> None:
    class Breaking(TextModel):
        async def send(self, request: Request) -> AsyncIterator[Event]:
            async for event in super().send(request):
                if isinstance(event, Finished):
                    raise ModelError("The connection broke.", reason="the connection broke")
                yield event

    chat = turns(Breaking("It is"))
    await chat.run()
    assert (
        chat.text
        == f"{PRICE_QUESTION}\n🤖:[Demo]\n\nIt is\n\n🔒: [Interrupted: the connection broke]\n\n💬: \n"
    )


async def test_a_wait_between_tries_can_be_cancelled() -> None:
    waiting, forever = asyncio.Event(), asyncio.Event()

    async def sleep(_: float) -> None:
        waiting.set()
        await forever.wait()

    model = TextModel(NO_JSON, CALL, caller=TextToolCaller(attempts_with(), sleep=sleep))
    chat = turns(model)
    turn = asyncio.ensure_future(chat.run())
    await waiting.wait()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert len(model.asks) == 1
    assert "try" not in chat.text


@pytest.mark.parametrize(("mode", "refusals"), [("auto", 0), ("auto", 1), ("json", 0)])
async def test_a_request_ends_at_once_when_its_reader_stops(mode: Any, refusals: int) -> None:
    ends = list[str]()

    async def send(_: Request) -> AsyncIterator[Event]:
        try:
            if len(ends) < refusals:
                raise REFUSAL
            yield TextDelta("I would say ")
            yield TextDelta("that it is")
        finally:
            ends.append("over")

    request = Request(Transcript(), 0, "ollama", "tiny", text_tools=text_tools(mode))
    caller = TextToolCaller(attempts_with(), patience=1)
    async with closing(caller.stream(send, request, lambda _: None)) as events:
        async for event in events:
            if isinstance(event, TextDelta):
                break
        assert len(ends) == refusals
    assert ends == ["over"] * (refusals + 1)


# --- Which mode -----------------------------------------------------------------------------------

REFUSAL = ModelError('ollama answered 400: "tiny" does not support tools', reason="400", status=400)


async def test_a_model_without_tools_is_asked_in_words_and_remembered() -> None:
    model = TextModel(REFUSAL, CALL, "It is $911.")
    chat = turns(model, "auto")
    assert await chat.run() == End("waiting")
    assert chat.text == PROPOSED
    await chat.press("ya")
    assert await chat.run() == End("complete")
    assert [request.text_tools.mode for request in model.asks if request.text_tools] == [
        "auto",
        "json",
        "json",
    ]
    told = [event.text for event in chat.observer.events if isinstance(event, Aside)]
    assert told == ["tiny does not support tools, so Parley describes them in the prompt"]


async def test_other_refusals_are_reported() -> None:
    chat = turns(TextModel(ModelError("no such model", reason="no such model", status=404)), "auto")
    assert (await chat.run()).kind == "interrupted"


async def test_a_family_without_tools_is_asked_in_words_at_once() -> None:
    model = TextModel("Hello.")
    assert await turns(model, "auto", template=Template(native=False)).run() == End("complete")
    assert [request.text_tools.mode for request in model.asks if request.text_tools] == ["json"]


async def test_a_request_with_the_providers_own_tools_stays_unchanged() -> None:
    model = TextModel(NO_QUERY)
    chat = Turns(PRICE_QUESTION, model, LoggedTools(TOOLS))
    assert await chat.run() == End("complete")
    assert NO_QUERY in chat.text


async def test_corrected_failures_are_recorded_if_the_user_wants_that(tmp_path: Path) -> None:
    file = tmp_path / "state" / "records.jsonl"

    async def sleep(_: float) -> None:
        pass

    caller = TextToolCaller(attempts_with(), records=str(file), sleep=sleep)
    await turns(TextModel("Hello.", caller=caller)).run()
    assert not file.exists()
    await turns(TextModel(NO_QUERY, f"Now: {CALL}", caller=caller)).run()
    assert [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] == [
        {
            "provider": "ollama",
            "model": "tiny",
            "mode": "json",
            "failed": [
                {
                    "error": "Missing required parameter 'query'",
                    "said": NO_QUERY.partition(" There")[0],
                }
            ],
            "corrected": {
                "said": "Now: ",
                "calls": [{"name": "web_search", "arguments": '{"query": "google"}'}],
            },
        }
    ]


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("~nobody-at-all/records.jsonl", "home directory"),
        ("file/records.jsonl", ""),
        ("x\0", "null"),
    ],
)
async def test_unwritable_records_cause_a_notice_but_cost_no_answer(
    place: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    caller = TextToolCaller(attempts_with(retry_delay_ms=0), records=place)
    chat = turns(TextModel(NO_QUERY, CALL, caller=caller))
    assert await chat.run() == End("waiting")
    assert chat.text == PROPOSED
    (aside,) = [event.text for event in chat.observer.events if isinstance(event, Aside)]
    assert aside.startswith(f"prompt_tools.records: {place} cannot be written: ")
    assert why in aside


# --- With the demo server -------------------------------------------------------------------------

QUESTION = "can you find the latest stock price of google and microsoft?"
ANSWER = "Google (GOOGL) is at $911 and Microsoft (MSFT) is at $544 as of today."


@pytest.mark.parametrize(
    ("agent", "mode", "rounds"),
    [("Demo-Text", "auto", 1), ("Demo", "json", 1), ("Demo", "xml", 2), ("Demo-OpenAI", "xml", 2)],
)
async def test_the_stock_example_works_in_words(agent: str, mode: str, rounds: int) -> None:
    front_matter = f"---\ntool_mode: {mode}\n---\n\n"
    environ = {"PARLEY_DEMO_PACE": "0"}
    async with Session(
        agent=agent, approve=lambda _: "ya", transcript=front_matter, environ=environ
    ) as session:
        assert ANSWER in await session.process_message(QUESTION)
        assert session.transcript.count("❓:[ya]") == 2
        assert session.transcript.count('"index":0') == rounds
        assert '{"tool"' not in session.transcript
        assert "<tool" not in session.transcript


async def test_a_chat_may_change_its_mode_in_mid_file() -> None:
    transcript, environ = "", {"PARLEY_DEMO_PACE": "0"}
    for number, mode in enumerate(["native", "json", "xml", "off", "native"], 1):
        transcript = (
            f"---\ntool_mode: {mode}\n---\n\n{transcript.partition('---' + chr(10) + chr(10))[2]}"
        )
        async with Session(
            agent="Demo", approve=lambda _: "ya", transcript=transcript, environ=environ
        ) as session:
            answer = await session.process_message(QUESTION)
            assert (ANSWER in answer) == (mode != "off")
            transcript = session.transcript
        assert transcript.count("❓:[ya]") == 2 * number - 2 * (number > 3)
