"""Summarizing a chat: the requests, the written lines, and the effect of a failure."""

from __future__ import annotations

import asyncio

import pytest

from parley.engine import End, sum_up
from parley.errors import ModelError
from parley.models.events import Finished, TextDelta, Usage
from tests.chats import TOOLS
from tests.fakes import LoggedTools, ScriptedModel, ScriptStep, Turns, says

pytestmark = pytest.mark.asyncio


def chat(count: int, *replies: list[ScriptStep]) -> Turns:
    """A chat with this many answered exchanges and an empty question."""
    text = "".join(f"💬: question {n}\n\n🤖:[Hand]\n\nanswer {n}\n\n" for n in range(count))
    return Turns(f"# Mine\n\n{text}💬: \n", ScriptedModel(*replies), LoggedTools(TOOLS))


async def test_each_older_answer_gets_its_line_and_nothing_else_changes() -> None:
    turns = chat(5, says("One."), says("📝: Two.\n"), says("Th\nree."))
    before = turns.text
    end = await sum_up(turns.ports, turns.resolve, 2)
    assert end == End("answered", "3 of 3 older exchanges are summarized")
    for number, words in enumerate(["One.", "Two.", "Th ree."]):
        before = before.replace(f"answer {number}\n", f"answer {number}\n\n📝: {words}\n")
    assert turns.text == before
    assert turns.observer.statuses == [*(f"Summing up {n} of 3..." for n in (1, 2, 3)), ""]


async def test_the_model_is_asked_for_one_exchange_at_a_time_without_tools_or_thinking() -> None:
    turns = chat(5, says("One."), says("Two."))
    await sum_up(turns.ports, turns.resolve, 3)
    (request, *more) = turns.model.asks
    (turn,) = request.turns()
    assert "User:\nquestion 0\n\nAssistant:\nanswer 0" in str(getattr(turn, "text", ""))
    assert (request.offers_tools, request.thinking.enabled, request.system) == (False, False, "")
    assert (request.provider, request.model) == ("anthropic", "claude-sonnet-5-5")
    assert len(more) == 1
    assert turns.tools.log == []


async def test_a_failure_keeps_the_lines_already_written() -> None:
    turns = chat(6, says("One."), says("Two."), [ModelError("lab answered 500", reason="x")])
    end = await sum_up(turns.ports, turns.resolve, 2)
    assert end == End("interrupted", "2 of 4 older exchanges are summarized: lab answered 500")
    assert turns.text.count("📝:") == 2
    assert "Interrupted" not in turns.text


async def test_a_stop_keeps_the_lines_already_written() -> None:
    turns = chat(6, says("One."), [asyncio.CancelledError()])
    with pytest.raises(asyncio.CancelledError):
        await sum_up(turns.ports, turns.resolve, 3)
    assert turns.text.count("📝:") == 1
    assert "Stopped" not in turns.text
    assert turns.observer.statuses[-1] == ""


async def test_text_typed_in_the_meantime_stays_and_a_changed_answer_is_untouched() -> None:
    def type_here() -> None:
        turns.edit(
            lambda text: text.replace("answer 1", "my answer").replace("💬: \n", "💬: next\n")
        )

    turns = chat(4, [type_here, *says("One.")], says("Two."), says("Three."))
    await sum_up(turns.ports, turns.resolve, 2)
    assert "answer 0\n\n📝: One.\n" in turns.text
    assert "my answer\n\n💬:" in turns.text
    assert turns.text.endswith("💬: next\n")


async def test_empty_and_refused_replies_add_no_summary() -> None:
    turns = chat(3, says(" \n"), [TextDelta("I cannot"), Finished("refusal")], says("Three."))
    end = await sum_up(turns.ports, turns.resolve, 0)
    assert end.message == "1 of 3 older exchanges is summarized"
    assert turns.text.count("📝:") == 1


async def test_if_no_summary_is_missing_no_model_is_asked() -> None:
    turns = chat(3)
    message = "nothing to summarize: all complete answers but the last 3 have a 📝: line"
    assert await sum_up(turns.ports, turns.resolve, 3) == End("answered", message)
    assert turns.model.asks == []


async def test_tokens_are_counted() -> None:
    turns = chat(4, [Usage(3, 4), *says("One.")])
    await sum_up(turns.ports, turns.resolve, 3)
    assert turns.observer.events == [Usage(3, 4)]
