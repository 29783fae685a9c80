"""Any text as a chat can be read, written, sent and edited without an error."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from parley.chat import edits
from parley.chat.edits import apply_edits
from parley.chat.front_matter import read_front_matter
from parley.chat.history import ModelTurn, UserTurn, history
from parley.chat.reader import parse, split_lines
from parley.chat.references import references
from parley.chat.rounds import Notice
from parley.chat.transcript import Proposal, Result
from parley.chat.writer import render
from tests.strategies import CALL, MARKED, files, marked_files


@given(marked_files | files)
def test_any_text_is_read_and_read_back(text: str) -> None:
    transcript = parse(text)
    read_front_matter(transcript.front_matter)
    assert parse(render(transcript)) == transcript
    assert all(0 <= problem.line <= len(split_lines(text)) for problem in transcript.problems)


@given(marked_files | files)
def test_any_text_makes_turns_that_begin_with_the_user(text: str) -> None:
    transcript = parse(text)
    for at, exchange in enumerate(transcript.exchanges):
        turns = history(transcript, at, max_full_exchanges=None)
        assert not turns or isinstance(turns[0], UserTurn)
        if exchange.answers and not exchange.answers[-1].segments:
            assert isinstance(turns[-1], UserTurn) or (
                isinstance(turns[-1], ModelTurn) and turns[-1].calls
            )
        if exchange.question:
            references(exchange.question)


@given(marked_files | files)
def test_any_text_can_be_edited_at_its_calls_and_answers(text: str) -> None:
    lines, transcript = split_lines(text), parse(text)
    for exchange in transcript.exchanges:
        for answer in exchange.answers:
            after = apply_edits(
                lines, edits.append_notice(lines, answer, Notice("Stopped", "by you"))
            )
            assert len(parse("\n".join(after)).exchanges) == len(transcript.exchanges)
            for segment in answer.segments:
                if isinstance(segment, Proposal) and segment.result is None:
                    edited = apply_edits(
                        lines, [edits.put_result(lines, segment, Result("ok", "x"))]
                    )
                    assert len(parse("\n".join(edited)).exchanges) == len(transcript.exchanges)


BELOW = [line for line in MARKED if not line.startswith(("🛠", "🤖", "💬"))]
waiting_files = st.builds(
    "{}\n🤖:\n\n❓:{} `{}`\n{}\n{}".format,
    marked_files,
    st.sampled_from(["", "[ya]", "[yn]", "[?]"]),
    st.just(CALL.replace("call_1", "call_last")),
    st.lists(st.sampled_from(BELOW), max_size=4).map("\n".join),
    st.just("💬: next\n") | marked_files,
)
"""Files of any kind with a call that has no result."""


@given(waiting_files)
def test_a_result_can_be_put_below_any_call_without_one(text: str) -> None:
    lines, transcript = split_lines(text), parse(text)
    answers = [answer for exchange in transcript.exchanges for answer in exchange.answers]
    calls = [call for answer in answers for call in answer.proposals if call.call.id == "call_last"]
    (call,) = calls
    assert call.result is None
    edited = parse(
        "\n".join(apply_edits(lines, [edits.put_result(lines, call, Result("ok", "x"))]))
    )
    assert len(edited.exchanges) == len(transcript.exchanges)
    again = [answer for exchange in edited.exchanges for answer in exchange.answers]
    (made,) = [each for answer in again for each in answer.proposals if each.call == call.call]
    assert made.result
    assert made.result.body == "x"
