"""Texts and pictures put into a question, case by case; `tests/laws` has the laws."""

from __future__ import annotations

import pytest

from parley.chat import attachments
from parley.chat.edits import (
    add_question,
    append_notice,
    apply_edits,
    begin_question,
    first_words,
    put_question,
    replace_first_line,
)
from parley.chat.reader import parse, split_lines
from parley.chat.rounds import Notice
from parley.chat.transcript import Attachment

PICTURE = Attachment("image/png 12 kB", f"a.assets/{'0123456789abcdef' * 4}.png")
LINK = attachments.link(PICTURE)
PUT = {
    "an empty question": ("💬: \n", "new", "💬: new\n"),
    "an empty question, a picture": ("💬: \n", PICTURE, f"💬:\n\n{LINK}\n"),
    "a question": ("💬: old\n", "new", "💬: old\n\nnew\n"),
    "a question, a picture": ("💬: old\n", PICTURE, f"💬: old\n\n{LINK}\n"),
    "an answered question": ("💬: old\n\n🤖: yes\n", "new", "💬: old\n\n🤖: yes\n\n💬: new\n"),
    "lines that would be marks": ("💬: old\n", "🤖: no", "💬: old\n\n\\🤖: no\n"),
    "blank lines below": ("💬: old\n\n\n", "new", "💬: old\n\nnew\n\n\n"),
}


@pytest.mark.parametrize(("before", "content", "after"), PUT.values(), ids=PUT)
def test_added_content_goes_below_the_questions_text(
    before: str, content: str | Attachment, after: str
) -> None:
    lines = split_lines(before)
    transcript = parse(before)
    edited = "\n".join(apply_edits(lines, [put_question(lines, transcript, 0, content)]))
    assert edited.rstrip("\n") == after.rstrip("\n")
    assert len(parse(edited).exchanges) == len(parse(after).exchanges)


FIRST_LINES = {
    "on the marker's line": ("💬: /fix this\n", "new", "💬: new\n"),
    "below it": ("💬:\n\n/fix\n", "new", "💬: new\n"),
    "with more below": ("💬: /fix\nmore\n", "new", "💬: new\n\nmore\n"),
    "by a mark": ("💬: /fix\n", "🤖: no", "💬: 🤖: no\n"),
}


@pytest.mark.parametrize(("before", "text", "after"), FIRST_LINES.values(), ids=FIRST_LINES)
def test_the_first_line_of_a_question_is_replaced(before: str, text: str, after: str) -> None:
    lines = split_lines(before)
    question = parse(before).exchanges[0].question
    assert question
    edited = "\n".join(apply_edits(lines, [replace_first_line(lines, question, text)]))
    assert edited.rstrip("\n") == after.rstrip("\n")


@pytest.mark.parametrize("before", ["💬: \n", f"💬:\n\n{LINK}\n"])
def test_a_question_that_begins_without_text_has_no_first_words(before: str) -> None:
    question = parse(before).exchanges[0].question
    assert question
    assert first_words(split_lines(before), question) is None


ADDED = {
    "an empty file": ("", "new", "💬: new\n"),
    "blank lines": ("\n \n", "new", "💬: new\n"),
    "text above": ("notes\n\n\n", "new", "notes\n\n💬: new\n"),
    "front matter": ("---\na: 1\n---\n", PICTURE, f"---\na: 1\n---\n\n💬:\n\n{LINK}\n"),
    "several questions": ("💬: a\n\n🤖: b\n\n💬: c\n", "new", "💬: a\n\n🤖: b\n\n💬: c\n\nnew\n"),
    "an answer": ("💬: a\n\n🤖: b\n", "new", "💬: a\n\n🤖: b\n\n💬: new\n"),
}


@pytest.mark.parametrize(("before", "content", "after"), ADDED.values(), ids=ADDED)
def test_a_new_question_goes_below_everything(
    before: str, content: str | Attachment, after: str
) -> None:
    lines = split_lines(before)
    edited = "\n".join(apply_edits(lines, [add_question(lines, parse(before), content)]))
    assert edited.rstrip("\n") == after.rstrip("\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("💬: why?\nmore\n", "💬: quoted\n\nwhy?\nmore\n"),
        ("💬:why?\n", "💬: quoted\n\nwhy?\n"),
        ("💬: \n", "💬: quoted\n\n\n"),
    ],
)
def test_a_question_begins_with_its_quote(before: str, after: str) -> None:
    lines = split_lines(before)
    question = parse(before).exchanges[0].question
    assert question is not None
    edited = "\n".join(apply_edits(lines, [begin_question(lines, question, "quoted")]))
    assert edited.rstrip("\n") == after.rstrip("\n")


def test_a_notice_goes_to_the_end_of_its_answer() -> None:
    before = "💬: why?\n\n🤖: since\n\n💬: next\n"
    lines = split_lines(before)
    edited_by = append_notice(
        lines, parse(before).exchanges[0].answers[0], Notice("Stopped", "by the user")
    )
    edited = "\n".join(apply_edits(lines, edited_by))
    assert edited.index("since") < edited.index("[Stopped: by the user]") < edited.index("next")
    assert len(parse(edited).exchanges) == 2
