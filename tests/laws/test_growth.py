"""Twice as much text takes twice as much work, for any cuts and any repetition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from parley.chat.edits import written_calls
from parley.chat.reader import parse
from parley.chat.reply_writer import ReplyWriter
from parley.chat.transcript import Exchange, Question, Result, Text, Transcript
from parley.chat.writer import render
from parley.conversion import message_problems
from parley.display.view import ChatView, drawing
from parley.models.accumulate import CallAccumulator, PartialCall, finished_calls
from parley.models.memory import memory
from parley.models.text_tools.json import JsonExtractor
from parley.models.text_tools.xml import XmlParser
from parley.models.think_tags import ThinkTags
from parley.nvim.sightings import SeenCalls
from parley.policy.approval import Approvals
from parley.policy.plan import AwaitChoices
from parley.tools.catalogue import Catalogue
from tests.chats import SEARCH, TOOLS, answer, asked, call, step, view, yes
from tests.defaults import limits_with
from tests.work import ALLOWED, growth

SIZE = 80
RUNS = [" ", "\n", "\\", "\r", "`", "<", "[", " \n", "``` ", '{"a": 1}']
Feed = Callable[[str], object]


def _reply(start: str) -> Feed:
    writer = ReplyWriter()
    writer.text(start)
    return writer.text


def _thinking(start: str) -> Feed:
    writer = ReplyWriter()
    return lambda piece: writer.thinking("demo", "m", start + piece)


def _json(start: str) -> Feed:
    reader = JsonExtractor(["web_search"])
    reader.feed(start)
    return reader.feed


def _xml(start: str) -> Feed:
    reader = XmlParser(Catalogue(), single=False)
    reader.feed(start)
    return reader.feed


def _tags(start: str) -> Feed:
    reader = ThinkTags()
    reader.feed(start)
    return reader.feed


READERS = {
    "a reply": (_reply, ["", "x"]),
    "thinking": (_thinking, [""]),
    "calls in JSON": (_json, ["", '{"tool": "', "```json\n"]),
    "calls in XML": (_xml, ["", "<tool:a>", "<tool:a><param:b>"]),
    "tags of thinking": (_tags, ["", "<think>x", "<think>x</think>"]),
}


@pytest.mark.parametrize(
    ("reader", "start"),
    [(name, start) for name, (_, starts) in READERS.items() for start in starts],
)
@pytest.mark.parametrize("size", [1, 10**9], ids=["in characters", "in one piece"])
def test_a_repetitive_stream_is_read_in_linear_time(reader: str, start: str, size: int) -> None:
    for unit in RUNS:

        def read(count: int, unit: str = unit) -> None:
            feed, text = READERS[reader][0](start), unit * count
            for at in range(0, len(text), size):
                feed(text[at : at + size])

        assert growth(read, SIZE if size == 1 else 4 * SIZE) < ALLOWED, unit


def test_call_arguments_in_pieces_are_joined_in_linear_time() -> None:
    def finish(count: int) -> None:
        finished_calls([PartialCall("call_1", "web_search", "{}") for _ in range(count)], cut=False)

    def number(count: int) -> None:
        written_calls([call(1)] * count)

    def gather(count: int) -> None:
        calls = CallAccumulator()
        for _ in range(count):
            calls.feed(
                {"index": 0, "id": "", "function": {"name": "web_search", "arguments": '{"a":'}}
            )

    for put_together in finish, number, gather:
        assert growth(put_together, SIZE) < ALLOWED, put_together


def test_the_next_step_after_many_calls_is_found_in_linear_time() -> None:
    def follow(count: int) -> None:
        calls = tuple(replace(asked(), call=call(1, index=number)) for number in range(count))
        transcript = Transcript((Exchange(Question((Text("q"),)), (answer(*calls),)),))
        assert isinstance(
            step(parse(render(transcript)), limits=limits_with(max_tools_per_request=10**6)),
            AwaitChoices,
        )

    assert growth(follow, 4 * SIZE) < 2.1


def test_the_memory_of_many_calls_is_found_in_linear_time() -> None:
    def remember(count: int) -> None:
        calls = tuple(replace(asked(choice="yA"), call=call(number + 1)) for number in range(count))
        transcript = Transcript((Exchange(Question((Text("q"),)), (answer(*calls),)),))
        approvals = Approvals(
            transcript, TOOLS, view(*(yes(each, choice="yA", state="used") for each in calls))
        )
        for each in calls:
            assert list(approvals.remembered(asked(1), SEARCH)) == [SEARCH.digest]
            approvals.lapsed(each)

    assert growth(remember, 2 * SIZE) < 2.1


@pytest.mark.parametrize("room", [10**9, 20_000, 300], ids=["whole", "crowded", "tiny"])
def test_the_sent_part_of_a_long_chat_is_found_in_linear_time(room: int) -> None:
    def fit_exchanges(count: int) -> None:
        text = "".join(f"💬: {'q' * 500}\n\n🤖:\n\n{'a' * 500}\n\n" for _ in range(count))
        memory(parse(f"{text}💬: now?\n").exchanges, None, room, lambda *_: True)

    def fit_rounds(count: int) -> None:
        result = Result("ok", "r" * 500)
        calls = tuple(replace(asked(), call=call(1, index=0), result=result) for _ in range(count))
        memory((Exchange(Question((Text("q"),)), (answer(*calls),)),), None, room, lambda *_: True)

    for fit in fit_exchanges, fit_rounds:
        assert growth(fit, SIZE) < ALLOWED, fit


def test_the_display_of_many_calls_is_found_in_linear_time() -> None:
    def draw(count: int) -> None:
        calls = tuple(replace(asked(), call=call(1, index=number)) for number in range(count))
        text = render(Transcript((Exchange(Question((Text("q"),)), (answer(*calls),)),)))
        chat_view = ChatView(parse(text), TOOLS, view())
        assert len(drawing(chat_view)["proposals"]) == len(SeenCalls().draw(chat_view)) == count

    assert growth(draw, SIZE) < ALLOWED


def test_the_unfinished_end_of_a_chat_is_found_in_linear_time() -> None:
    def leave_out(count: int) -> None:
        replies = tuple(
            part
            for n in range(count)
            for part in (Text("and"), replace(asked(), call=call(n, index=0)))
        )
        begun = Exchange(Question((Text("q"),)), (answer(*replies),))
        list(message_problems(Transcript((begun, *(Exchange(Question()),) * count))))

    assert growth(leave_out, SIZE) < ALLOWED
