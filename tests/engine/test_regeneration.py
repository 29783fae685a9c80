"""Regenerating an answer: what is sent, written and recorded before and after its first text."""

from __future__ import annotations

import asyncio

import pytest

from parley.chat.call_lines import proposal_line
from parley.chat.reader import parse
from parley.chat.transcript import Text
from parley.engine import End, regenerating, remark_on_old_answer, run_turn, stopped
from parley.errors import ModelError
from parley.models.events import Aside, Finished, TextDelta, Withdrawn
from tests.chats import TOOLS, call
from tests.fakes import LoggedTools, ScriptedModel, ScriptStep, Turns, calls, says

CALL = proposal_line(call(1), "ya")
OLD = f"💬: one\n\n🤖:[Other]\n\nold\n\n{CALL}\n\n💬: two\n\n🤖:[Other]\n\ntwo\n"
UNCHANGED = ". The old answer is unchanged"


def turns_of(*reply: ScriptStep, anchor: int = 0) -> Turns:
    return Turns(OLD, ScriptedModel(list(reply)), LoggedTools(TOOLS), anchor=anchor)


async def test_the_request_does_not_contain_the_old_answer() -> None:
    turns = turns_of(*says("new"))
    assert await turns.regenerate() == End("complete")
    (request,) = turns.model.asks
    assert request.transcript.exchanges[request.at].answers[-1].segments == ()
    assert request.at == 0
    first, second = parse(turns.text).exchanges
    assert first.answers[0].segments == (Text("new"),)
    assert second == parse(OLD).exchanges[1]


@pytest.mark.parametrize(
    ("reply", "end"),
    [
        ([ModelError("no line", reason="no line")], "no line"),
        ([TextDelta("  \n"), ModelError("cut", reason="cut")], "cut"),
        ([Withdrawn(), ModelError("cut", reason="cut")], "cut"),
        (
            [Aside("a note"), Finished("complete")],
            (
                "The reply is not complete: the model's reply was empty. "
                "What to do: :ParleyRespond! asks again"
            ),
        ),
        (
            [Finished("refusal")],
            (
                "The reply is not complete: the model refused to answer. "
                "What to do: rephrase the question; :ParleyRespond! asks again"
            ),
        ),
    ],
)
async def test_a_failure_before_the_first_text_changes_nothing(
    reply: list[ScriptStep], end: str
) -> None:
    turns = turns_of(*reply)
    before = turns.ledger.view()
    assert await turns.regenerate() == End("interrupted", f"{end}{UNCHANGED}")
    assert turns.text == OLD
    assert turns.ledger.view() == before


async def test_a_failure_after_the_first_text_leaves_the_new_text_with_a_notice() -> None:
    turns = turns_of(TextDelta("half a line\nof"), ModelError("cut", reason="cut"))
    assert await turns.regenerate() == End("interrupted", "cut")
    assert "half a line\nof\n\n🔒: [Interrupted: cut]\n\n💬: two" in turns.text
    assert "old" not in turns.text


async def test_a_stop_before_the_first_text_changes_nothing_and_says_so() -> None:
    turns = turns_of()
    ports = regenerating(turns.ports, "Demo")
    assert not await stopped(ports)
    assert turns.text == OLD
    end = End("stopped", "stopped by the user")
    assert remark_on_old_answer(ports, end) == End("stopped", f"stopped by the user{UNCHANGED}")
    assert remark_on_old_answer(turns.ports, end) == end


async def test_a_reply_of_calls_alone_replaces_the_answer_when_it_is_complete() -> None:
    texts = list[str]()
    turns = turns_of()
    turns.model.replies = [[lambda: texts.append(turns.text), *calls(call(1))]]
    assert await turns.regenerate() == End("waiting")
    assert texts == [OLD]
    (proposal,) = parse(turns.text).exchanges[0].answers[0].proposals
    assert proposal.choice is None
    assert "old" not in turns.text


async def approved(reply: list[ScriptStep]) -> Turns:
    """A chat whose answer has an approved call that has not run, and the next reply."""
    model = ScriptedModel(calls(call(1)), reply)
    turns = Turns("💬: one\n", model, LoggedTools(TOOLS))
    await turns.run()
    await turns.press("ya")
    return turns


async def test_approvals_of_the_old_answer_hold_until_the_new_one_begins() -> None:
    turns = await approved([ModelError("no line", reason="no line")])
    before = turns.ledger.view().entries
    assert (await turns.regenerate()).kind == "interrupted"
    assert turns.ledger.view().entries == before
    assert [entry.state for entry in before] == ["live"]
    turns = await approved(says("new"))
    assert await turns.regenerate() == End("complete")
    assert [entry.state for entry in turns.ledger.view().entries] == ["revoked"]
    assert turns.tools.log == []


async def test_an_answer_that_the_user_edits_meanwhile_is_replaced_as_a_whole() -> None:
    turns = turns_of()
    edit = lambda: turns.edit(lambda text: text.replace("old", "old and\n\nlonger"))  # noqa: E731
    turns.model.replies = [[edit, *says("new")]]
    assert await turns.regenerate() == End("complete")
    assert "longer" not in turns.text
    assert parse(turns.text).exchanges[0].answers[0].segments == (Text("new"),)


async def test_without_an_old_answer_the_turn_runs_as_usual() -> None:
    turns = Turns("💬: one\n", ScriptedModel([ModelError("no", reason="no")]), LoggedTools(TOOLS))
    end = await run_turn(regenerating(turns.ports, "Demo"), turns.resolve)
    assert end == End("interrupted", "no")
    assert "🔒: [Interrupted: no]" in turns.text


def unfinished(*reply: ScriptStep) -> Turns:
    """A chat with the text of an unfinished answer, and the next reply."""
    text = "💬: one\n\n🤖:[Other]\n\nhalf\n\n🔒: [Interrupted: the line was cut]\n\n💬: \n"
    return Turns(text, ScriptedModel(list(reply)), LoggedTools(TOOLS), anchor=0)


@pytest.mark.parametrize("before", [[], [TextDelta(" \n")], [Withdrawn()]])
async def test_unfinished_text_stays_if_its_continuation_fails_before_the_first_text(
    before: list[ScriptStep],
) -> None:
    turns = unfinished(*before, ModelError("no line", reason="no line"))
    old = turns.text
    assert await turns.run() == End("interrupted", "no line")
    assert turns.text == old.replace("the line was cut", "no line")
    (request,) = turns.model.asks
    assert request.transcript.exchanges[0].answers[-1].segments == ()


async def test_unfinished_text_stays_if_the_user_stops_before_the_first_text() -> None:
    turns = unfinished(asyncio.CancelledError())
    old = turns.text
    with pytest.raises(asyncio.CancelledError):
        await turns.run()
    assert await stopped(turns.ports)
    assert turns.text == old.replace("Interrupted: the line was cut", "Stopped: by the user")


async def test_the_first_text_replaces_unfinished_text() -> None:
    texts = list[str]()
    turns = unfinished()
    turns.model.replies = [[lambda: texts.append(turns.text), *says("whole")]]
    old = turns.text
    assert await turns.run() == End("complete")
    assert texts == [old]
    assert turns.text == "💬: one\n\n🤖:[Demo]\n\nwhole\n\n💬: \n"
