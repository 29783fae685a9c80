"""An answer's bare text, for any split into pieces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.chat.answer_text import AnswerText, text_of_answer
from parley.chat.reader import parse


def read(*replies: list[str]) -> str:
    answer, out = AnswerText(), ""
    for pieces in replies:
        out += "".join(map(answer.feed, pieces))
        answer.end_reply()
    return out + answer.end()


@pytest.mark.parametrize(
    ("replies", "text"),
    [
        (["one\n\n📝: two"], "one\n"),
        (["one\n\n📝: two\n\n"], "one\n"),
        (["one\n📝: two\nthree"], "one\n📝: two\nthree\n"),
        (["one\n📝 two"], "one\n📝 two\n"),
        (["one 📝: two"], "one 📝: two\n"),
        (["\n\n  one\n\n\n"], "  one\n"),
        (["one", "two"], "one\n\ntwo\n"),
        (["one\n", "", "\n\ntwo\n📝: x", "three"], "one\n\ntwo\n\nthree\n"),
        (["📝: all there is"], "📝: all there is\n"),
        (["", "\n"], ""),
        ([], ""),
        (["one\n    \n```\n\nx"], "one\n    \n```\n\nx\n"),
    ],
)
def test_only_blanks_and_a_final_summary_are_left_out(replies: list[str], text: str) -> None:
    assert read(*([reply] for reply in replies)) == text
    assert read(*(list(reply) for reply in replies)) == text


@given(st.lists(st.lists(st.text("a \n📝:", max_size=6), max_size=6), max_size=4))
def test_the_text_is_the_same_for_every_cut(replies: list[list[str]]) -> None:
    assert read(*replies) == read(*(["".join(pieces)] for pieces in replies))


def test_a_written_answer_has_the_text_of_its_stream() -> None:
    call = '❓:[yn] `{"id":"c","function":{"name":"f","arguments":"{}"}}`'
    result = "🛠️: [f][c][refused]\n\n`no`"
    chat = (
        f"💬: q\n\n🤖:[A]\n\none\n\n{call}\n\n{result}\n\ntwo\n\n🔒: mine\n\n🔒:\n\nthree\n📝: x\n"
    )
    assert text_of_answer(parse(chat).exchanges[0].answers[0]) == "one\n\ntwo\n\nthree\n"


def test_a_call_that_others_ran_separates_texts_and_ends_no_reply() -> None:
    call = '❓:[provider] `{"id":"c","function":{"name":"f","arguments":"{}"}}`'
    chat = f"💬: q\n\n🤖:[A]\n\none\n📝: x\n\n{call}\n\ntwo\n\n{call}\n\nthree\n📝: y\n"
    answer = AnswerText()
    text = [
        answer.feed("one\n📝: x"),
        answer.end_text(),
        *map(answer.feed, ["\nt", "wo\n\n"]),
        answer.end_text(),
        *map(answer.feed, ["three\n", "📝: y"]),
        answer.end(),
    ]
    assert "".join(text) == "one\n📝: x\n\ntwo\n\nthree\n"
    assert text_of_answer(parse(chat).exchanges[0].answers[0]) == "".join(text)


def test_text_is_returned_immediately() -> None:
    answer = AnswerText()
    assert [answer.feed(piece) for piece in ("On", "e.\n", "\n", "Two 📝")] == [
        "On",
        "e.\n",
        "",
        "\nTwo 📝",
    ]
