"""The laws of edits: each changes only its own lines, whatever surrounds them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from parley.chat import edits, grammar
from parley.chat.call_lines import split_proposal
from parley.chat.edits import Edit, apply_edits
from parley.chat.reader import parse, split_lines
from parley.chat.reply_writer import ReplyWriter
from parley.chat.rounds import (
    UNFINISHED,
    Notice,
    is_resumption,
    last_notice,
    notice_note,
    read_notice,
    resumption,
    words_of,
)
from parley.chat.transcript import (
    CHOICES,
    Answer,
    Attachment,
    Broken,
    Choice,
    Exchange,
    Note,
    Orphan,
    Proposal,
    Question,
    Result,
    Segment,
    Span,
    Text,
    Thinking,
    ToolCall,
    Transcript,
    is_blank,
)
from parley.chat.writer import render
from tests.examples import examples
from tests.strategies import (
    DIGEST,
    any_text,
    calls,
    files,
    pictures,
    proposals,
    results,
    signatures,
    thinkings,
    transcripts,
)

moderate = examples(25)
PICTURE = Attachment("image/png 12 kB", f"stocks.assets/{DIGEST}.png")


@dataclass
class Chat:
    """A file as an edit sees it."""

    text: str

    def __post_init__(self) -> None:
        self.lines = split_lines(self.text)
        self.transcript = parse(self.text)

    def after(self, *edited: Edit) -> Transcript:
        """The file's content after edits; everything outside the edits must be unchanged."""
        lines = apply_edits(self.lines, edited)
        written = "".join(line + "\n" for line in lines)
        # otherwise the last line without CR is gone, and all CRs mean line ends
        assume(split_lines(written) == lines)
        return parse(written)


def _chat(text: str) -> Chat:
    chat = Chat(text)
    assume(split_lines("".join(line + "\n" for line in chat.lines)) == chat.lines)
    return chat


NOTICES = [Notice("Interrupted", "the network"), Notice("Unable to complete task", "a limit")]
unfinished = st.sampled_from([f"\n\n🔒: {notice.text}" for notice in NOTICES])
hostile_answers = st.tuples(
    files, st.sampled_from(["", "", "\n\n❓: x", "\n🔒:", "\n🔒: n\n🔒:\n", "\n```"])
).map("".join)
loose_files = st.tuples(
    st.sampled_from(["", "---\ntopic: x\n---\n", "preamble\n"]),
    st.sampled_from(["💬: q\n", "💬: q\n🔒: note\n\n", "💬:\n```\n", ""]),
    st.sampled_from(["🤖:[A]\n", "🤖:", "🤖:[A] text\n"]),
    hostile_answers,
    st.sampled_from(["", "\n", "\n\n\n", "\n💬: next\n🤖: done", "\n\n💬: ", "\n🤖:[B]\nsecond"]),
).map("".join)
chats = st.one_of(transcripts().map(render), loose_files, loose_files).map(_chat)


def _normal(transcript: Transcript) -> Transcript:
    """The transcript without an edit's allowed side effects:

    spacing inside a text that it extends, and blanks at the end of a result that it closes.
    """

    def segment(one: Segment) -> Segment:
        match one:
            case Text(text=text):
                return Text(re.sub(r"\n([ \t]*\n)+", "\n\n", text))
            case Proposal(result=Result() as result):
                return replace(one, result=trimmed(result))
            case Orphan(result=result):
                return replace(one, result=trimmed(result))
            case Broken(kind="result", text=text):
                return replace(one, text=text.rstrip("`\n \t"))
            case _:
                return one

    def trimmed(result: Result) -> Result:
        return replace(result, body=result.body.rstrip(" \t\n"))

    def answer(one: Answer) -> Answer:
        return replace(one, segments=tuple(map(segment, one.segments)))

    exchanges = tuple(
        replace(e, answers=tuple(map(answer, e.answers))) for e in transcript.exchanges
    )
    return replace(transcript, exchanges=exchanges)


def _with_answer(transcript: Transcript, at: int, change: Callable[[Answer], Answer]) -> Transcript:
    """The transcript with the last answer of an exchange changed."""
    old = transcript.exchanges[at]
    new = replace(old, answers=(*old.answers[:-1], change(old.answers[-1])))
    return replace(
        transcript, exchanges=(*transcript.exchanges[:at], new, *transcript.exchanges[at + 1 :])
    )


def _with_segments(transcript: Transcript, at: int, segments: Sequence[Segment]) -> Transcript:
    return _with_answer(transcript, at, lambda a: replace(a, segments=tuple(segments)))


def _joined(segments: Sequence[Segment], added: Sequence[Segment]) -> list[Segment]:
    """Segments added at an end: a text after a text extends it."""
    if (
        segments
        and added
        and isinstance(last := segments[-1], Text)
        and isinstance(first := added[0], Text)
    ):
        return [*segments[:-1], Text(f"{last.text}\n\n{first.text}"), *added[1:]]
    return [*segments, *added]


def _answered(chat: Chat, draw: st.DataObject) -> tuple[int, Answer]:
    """An exchange with an answer, and its last answer."""
    numbers = [n for n, e in enumerate(chat.transcript.exchanges) if e.answers]
    assume(numbers)
    at = draw.draw(st.sampled_from(numbers))
    return at, chat.transcript.exchanges[at].answers[-1]


def _any_exchange(chat: Chat, draw: st.DataObject) -> tuple[int, Exchange]:
    assume(chat.transcript.exchanges)
    at = draw.draw(st.integers(0, len(chat.transcript.exchanges) - 1))
    return at, chat.transcript.exchanges[at]


def _takes_only_blank_lines(chat: Chat, edit: Edit) -> bool:
    return all(map(is_blank, chat.lines[edit.start : edit.end]))


@moderate
@given(chats, st.data(), st.sampled_from(["Demo", None, "a b"]))
def test_starting_an_answer_adds_an_empty_one(
    chat: Chat, data: st.DataObject, agent: str | None
) -> None:
    at, exchange = _any_exchange(chat, data)
    edit = edits.start_answer(chat.lines, exchange, agent)
    assert _takes_only_blank_lines(chat, edit)
    new = replace(exchange, answers=(*exchange.answers, Answer(agent)))
    others = chat.transcript.exchanges
    expected = replace(chat.transcript, exchanges=(*others[:at], new, *others[at + 1 :]))
    assert chat.after(edit) == expected


@moderate
@given(chats, st.data())
def test_opening_a_question_adds_an_empty_one(chat: Chat, data: st.DataObject) -> None:
    at, exchange = _any_exchange(chat, data)
    edit = edits.open_question(chat.lines, exchange)
    assert _takes_only_blank_lines(chat, edit)
    others = chat.transcript.exchanges
    expected = (*others[: at + 1], Exchange(Question()), *others[at + 1 :])
    assert chat.after(edit) == replace(chat.transcript, exchanges=expected)


@moderate
@given(chats, st.data(), pictures)
@example(Chat("💬: "), None, PICTURE)
@example(Chat("💬: q\n\n🔒: mine"), None, PICTURE)
@example(Chat("🤖: first"), None, PICTURE)
@example(Chat("💬: q\n🤖: a\n\n💬: next\n"), None, PICTURE)
def test_a_picture_is_put_below_the_question(
    chat: Chat, data: st.DataObject | None, picture: Attachment
) -> None:
    at, exchange = _any_exchange(chat, data) if data else (0, chat.transcript.exchanges[0])
    edit = edits.put_question(chat.lines, chat.transcript, at, picture)
    others = chat.transcript.exchanges
    at = len(others) - 1 if exchange.answers else at
    last = others[at]
    if last.answers or last.question is None:
        expected = (*others, Exchange(Question((picture,))))
    else:
        longer = Exchange(Question((*last.question.parts, picture)), last.answers)
        expected = (*others[:at], longer, *others[at + 1 :])
    assert chat.after(edit) == replace(chat.transcript, exchanges=expected)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["💬: "], ["💬: one", "two", "", ""]),
        (["💬: typed", "more"], ["💬: one", "two", "", "typed", "more"]),
        (["💬:🤖: typed", ""], ["💬: one", "two", "", "\\🤖: typed", ""]),
    ],
)
def test_a_text_begins_a_question_and_the_text_after_the_marker_follows(
    lines: list[str], expected: list[str]
) -> None:
    question = parse("\n".join(lines)).exchanges[0].question
    assert question is not None
    assert apply_edits(lines, [edits.begin_question(lines, question, "one\ntwo")]) == expected


def _prose(text: str) -> list[Segment]:
    """A model's prose as written in the file."""
    lines = grammar.fit(text).replace("\r\n", "\n").split("\n")
    while lines and not lines[0].strip(" \t\r"):
        lines.pop(0)
    prose = "\n".join(lines).rstrip(" \t\r\n")
    return [Text(prose)] if prose else []


MORE_TO_COME = Note(UNFINISHED.text)
RESULT = (
    "💬: q\n🤖:[A]\n❓: `" + '{"id":"c","function":{"name":"f","arguments":""}}' + "`\n🛠️: [f][c]"
)


@examples(50)
@given(chats, st.data(), any_text)
@example(Chat("💬: q\n🤖:[A]\n🔒: mine\n\n🔒:\n"), None, "the reply")
@example(Chat("💬: q\n🤖:[A]\n🔒: mine\n🔒:\n🔒:\n"), None, "the reply")
@example(Chat("💬: q\n🤖:[A]\n🔒:"), None, "the reply")
@example(Chat(RESULT), None, "the reply")
@example(Chat(RESULT + "\n\n````\n```\nbody\n\n"), None, "the reply")
@example(Chat(RESULT + "\n\n```\nbody\n>> Please choose (yA"), None, "the reply")
@example(Chat("💬: q\n🤖:[A]\n🛠️: what\n```\nbody"), None, "the reply")
def test_text_written_at_the_tip_belongs_to_the_answer(
    chat: Chat, data: st.DataObject | None, text: str
) -> None:
    at, answer = _answered(chat, data) if data else (0, chat.transcript.exchanges[0].answers[-1])
    edit, tip = edits.open_tip(chat.lines, answer)
    assert _takes_only_blank_lines(chat, edit)
    lines = apply_edits(chat.lines, [edit])
    assert lines[tip] == ""
    writer = ReplyWriter()
    lines[tip : tip + 1] = (writer.text(text) + writer.end()).split("\n")
    written = "".join(line + "\n" for line in lines)
    assume(split_lines(written) == lines)
    said = _joined(answer.segments, _prose(text))
    assert _normal(parse(written)) == _normal(
        _with_segments(chat.transcript, at, [*said, MORE_TO_COME])
    )
    ended = Chat(written)
    reply = edits.end_reply(lines, ended.transcript.exchanges[at].answers[-1])
    assert _normal(ended.after(*reply)) == _normal(_with_segments(chat.transcript, at, said))


@moderate
@given(
    chats, st.data(), st.sampled_from(["", " mine", "mine", "\nmine", "\n\nmine\n", "\n\n🔒: mine"])
)
@example(Chat("💬: q\n🤖:[A]\n"), None, " mine")
@example(Chat("💬: q\n🤖:[A]\n"), None, "\n\n🔒: mine")
def test_text_typed_after_a_replys_notice_stays_and_it_stays_a_notice(
    chat: Chat, data: st.DataObject | None, typed: str
) -> None:
    at, answer = _answered(chat, data) if data else (0, chat.transcript.exchanges[0].answers[-1])
    edit, tip = edits.open_tip(chat.lines, answer)
    lines = apply_edits(chat.lines, [edit])
    lines[tip + 1 : tip + 2] = (lines[tip + 1] + typed).split("\n")
    streaming = _chat("".join(line + "\n" for line in lines))
    assume(streaming.lines == lines)
    now = streaming.transcript.exchanges[at].answers[-1]
    assert last_notice(now) == UNFINISHED
    words = [Note("mine")] if typed else []
    ended = streaming.after(*edits.end_reply(lines, now))
    expected = _with_segments(chat.transcript, at, [*answer.segments, *words])
    assert _normal(ended) == _normal(expected)
    calls_ = any(isinstance(s, Proposal | Orphan | Broken) for s in answer.segments)
    resumed = streaming.after(*edits.drop_unfinished(lines, now)).exchanges[at].answers[-1].segments
    assert [s for s in resumed if isinstance(s, Note)][-len(words) :] == words or not words
    assert calls_ == (Note(resumption(UNFINISHED)) in resumed)


appended = st.one_of(
    st.lists(proposals.map(lambda p: replace(p, result=None, choice=None)), min_size=1, max_size=3),
    st.lists(thinkings, min_size=1, max_size=2),
    st.just([Text("prose")]),
    st.just([Note("a note"), Text("and prose")]),
)


@moderate
@given(chats, st.data(), appended)
@example(Chat(RESULT + "\n```\nbody"), None, [Text("prose")])
@example(Chat("💬: q\n🤖:[A]\n🔒: mine"), None, [Text("prose")])
def test_segments_are_appended_unchanged(
    chat: Chat, data: st.DataObject | None, segments: list[Segment]
) -> None:
    at, answer = _answered(chat, data) if data else (0, chat.transcript.exchanges[0].answers[-1])
    edit = edits.append_segments(chat.lines, answer, segments)
    assert _takes_only_blank_lines(chat, edit)
    expected = _with_segments(chat.transcript, at, _joined(answer.segments, segments))
    assert _normal(chat.after(edit)) == _normal(expected)


@moderate
@given(chats, st.data(), st.sampled_from(NOTICES), any_text)
def test_a_notice_ends_the_answer(
    chat: Chat, data: st.DataObject, notice: Notice, reason: str
) -> None:
    at, answer = _answered(chat, data)
    notice = replace(notice, reason=reason)
    (edit,) = edits.append_notice(chat.lines, answer, notice)
    assert _takes_only_blank_lines(chat, edit)
    after = chat.after(edit)
    assert after == _with_segments(chat.transcript, at, [*answer.segments, Note(notice.text)])
    said = last_notice(after.exchanges[at].answers[-1])
    assert said is not None
    assert said.kind == notice.kind


spelled_calls = st.tuples(
    st.sampled_from(["❓:", "❓\ufe0f:"]),
    st.sampled_from(["", " ", "\t", "\u00a0"]),
    st.sampled_from(["", "[ya]", "[yn]", "[zz]", "[]"]),
    st.sampled_from(["", " ", "\t "]),
    st.sampled_from(["", "`", "``"]),
    st.sampled_from(
        [
            '{"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}}',
            (
                '{ "function" : {"arguments":"{\\u0022a\\":1.0}","name":"f"}, "id":"call_2", '
                '"index":0,"x":[1] }'
            ),
            '{"index":1,"id":"call_1","function":{"name":"f","arguments":""}}',
            "{nope",
        ]
    ),
    st.sampled_from(["", "`", "``", "` ", "\r"]),
).map("".join)
pieces = st.one_of(
    spelled_calls,
    spelled_calls,
    st.sampled_from(
        [
            *[
                "text",
                "🔒: note",
                "🔒:",
                "",
                "🧠:[a:b s]\n> hm",
                "```",
                ">> Please choose (yA",
                "\\❓: x",
            ],
            *[
                "🛠️: [f][call_1]\n\n`r`",
                "🛠️: [g][call_2][error]\nbare",
                "🛠️: [f][call_1]\n```\nopen",
                "🛠️: [f][x]",
            ],
        ]
    ),
)
calling = st.tuples(
    st.sampled_from(["💬: q\n🤖:[A]\n", "🤖:[A]\n\n", "💬: p\n🤖:\n💬: q\n\n🤖:\n"]),
    spelled_calls,
    st.lists(pieces, max_size=6).map(lambda parts: "".join("\n" + piece for piece in parts)),
    st.sampled_from(["", "\n", "\n\n", "\n\n💬: next\n\n🤖:\n\ndone", "\n💬:"]),
).map(lambda parts: _chat("".join(parts)))


def _calls(chat: Chat) -> list[tuple[int, int, Proposal | Broken]]:
    """Every proposal in the last answers: exchange, place, value."""
    return [
        (at, number, segment)
        for at, exchange in enumerate(chat.transcript.exchanges)
        for number, segment in enumerate(exchange.answers[-1].segments if exchange.answers else ())
        if isinstance(segment, Proposal)
        or (isinstance(segment, Broken) and segment.kind == "proposal")
    ]


def _markable(chat: Chat) -> list[tuple[int, int, Proposal | Broken]]:
    """The proposals on which the user may decide."""
    return [call for call in _calls(chat) if isinstance(call[2], Broken) or not call[2].ran_by]


def _open_calls(chat: Chat) -> list[tuple[int, int, Proposal]]:
    """A result's possible places: exchange, number of the segment, and the call."""
    return [(a, n, p) for a, n, p in _calls(chat) if isinstance(p, Proposal) and p.result is None]


@moderate
@given(
    st.one_of(calling, calling, chats).filter(_markable),
    st.data(),
    st.sampled_from([*CHOICES, None]),
)
def test_a_mark_changes_the_bracket_and_keeps_the_json(
    chat: Chat, data: st.DataObject, choice: Choice | None
) -> None:
    at, number, call = data.draw(st.sampled_from(_markable(chat)))
    edit = edits.mark(chat.lines, call, choice)
    before, (written,) = chat.lines[call.span.start], edit.lines
    assert (edit.start, edit.end) == (call.span.start, call.span.start + 1)
    assert _json(written) == _json(before)
    after = chat.after(edit)
    assert replace(after, exchanges=()) == replace(chat.transcript, exchanges=())
    assert after.exchanges[:at] + after.exchanges[at + 1 :] == (
        chat.transcript.exchanges[:at] + chat.transcript.exchanges[at + 1 :]
    )
    segments = chat.transcript.exchanges[at].answers[-1].segments
    if isinstance(call, Proposal):
        marked = (*segments[:number], replace(call, choice=choice), *segments[number + 1 :])
        assert after == _with_segments(chat.transcript, at, marked)
    else:
        now = after.exchanges[at].answers[-1].segments[number]
        assert isinstance(now, Broken)
        assert now.choice == choice


def _json(line: str) -> str:
    found = grammar.marker_of(line)
    assert found
    _, json_text, _ = split_proposal(line[found[1] :])
    return json_text


def test_a_mark_keeps_unusual_json_spellings() -> None:
    line = (
        '❓️:\t[zz]  ``{ "id" : "c",  '
        '"function":{"arguments":"{\\u0022a\\u0022:1.0}","name":"f"} }``  '
    )
    chat = Chat(f"💬: q\n🤖:\n{line}\n")
    (proposal,) = chat.transcript.exchanges[0].answers[0].proposals
    (marked,) = edits.mark(chat.lines, proposal, "ya").lines
    assert marked == "❓️:[ya] " + line.split("  ", 1)[1]
    (unmarked,) = edits.mark(chat.lines, proposal, None).lines
    assert unmarked == "❓️: " + line.split("  ", 1)[1]


@moderate
@given(st.one_of(calling, calling, chats).filter(_open_calls), st.data(), results)
def test_a_result_goes_to_its_own_call(chat: Chat, data: st.DataObject, result: Result) -> None:
    at, number, proposal = data.draw(st.sampled_from(_open_calls(chat)))
    edit = edits.put_result(chat.lines, proposal, result)
    place = proposal.task.span if proposal.task else Span(proposal.span.end, proposal.span.end)
    assert (edit.start, edit.end) == (place.start, place.end)
    segments = chat.transcript.exchanges[at].answers[-1].segments
    given_ = (
        *segments[:number],
        replace(proposal, result=result, task=None),
        *segments[number + 1 :],
    )
    assert chat.after(edit) == _with_segments(chat.transcript, at, given_)


@moderate
@given(st.one_of(calling, calling, chats).filter(_open_calls), st.data(), results)
def test_a_note_on_a_result_is_below_it_and_absorbs_nothing_else(
    chat: Chat, data: st.DataObject, result: Result
) -> None:
    at, number, proposal = data.draw(st.sampled_from(_open_calls(chat)))
    _put_noted(chat, at, number, proposal, result)


def _put_noted(chat: Chat, at: int, number: int, proposal: Proposal, result: Result) -> None:
    """Add a result with a note, and check that everything else stays."""
    note = "for you:\n\n💬: x\n\\🔒:\n```\ny\n```"
    edit = edits.put_result(chat.lines, proposal, replace(result, note=note))
    segments = chat.transcript.exchanges[at].answers[-1].segments
    given_ = (
        *segments[:number],
        replace(proposal, result=result, task=None),
        Note(note),
        *segments[number + 1 :],
    )
    assert chat.after(edit) == _with_segments(chat.transcript, at, given_)


@given(
    st.sampled_from(
        [
            "",
            "text",
            "🔒:\ntext",
            "🔒: \t\n🔒:\ntext",
            "🔒️:\ntext",
            "🔒: own\n🔒:\ntext",
            "\n\n🔒:\ntext",
        ]
    )
)
def test_content_below_a_note_on_a_result_keeps_its_meaning(below: str) -> None:
    chat = Chat(
        f'💬: q\n🤖:\n❓: `{{"id":"c","function":{{"name":"f","arguments":"{{}}"}}}}`\n{below}\n'
    )
    ((at, number, proposal),) = _markable(chat)
    assert isinstance(proposal, Proposal)
    _put_noted(chat, at, number, proposal, Result("ok", "done"))


@moderate
@given(
    st.lists(calls, min_size=2, max_size=4), st.lists(results, min_size=4, max_size=4), st.data()
)
def test_a_replys_results_may_come_together_and_in_any_order(
    reply_calls: list[ToolCall], outcomes: list[Result], data: st.DataObject
) -> None:
    written = edits.written_calls(reply_calls)
    answer = Answer("A", tuple(map(Proposal, written)))
    tail = Exchange(Question((Text("next"),)))
    chat = _chat(render(Transcript((Exchange(Question((Text("q"),)), (answer,)), tail))))
    (read,) = chat.transcript.exchanges[0].answers
    pairs = list(zip(read.proposals, outcomes, strict=False))
    order = data.draw(st.permutations(pairs))
    edited = [edits.put_result(chat.lines, p, r) for p, r in order]
    marks = [edits.mark(chat.lines, p, "ya") for p, _ in order]
    expected = tuple(replace(p, choice="ya", result=r) for p, r in pairs)
    assert chat.after(*marks, *edited) == _with_segments(chat.transcript, 0, expected)


@moderate
@given(chats, st.data(), signatures.filter(lambda s: s and not s.startswith("redacted")))
def test_a_signature_goes_to_the_last_thinking_if_it_is_unsigned(
    chat: Chat, data: st.DataObject, signature: str
) -> None:
    at, answer = _answered(chat, data)
    edited = edits.sign_thinking(answer, signature)
    thoughts = [n for n, s in enumerate(answer.segments) if isinstance(s, Thinking)]
    last = answer.segments[thoughts[-1]] if thoughts else None
    if not isinstance(last, Thinking) or last.signature:
        assert edited == []
        return
    signed = (
        *answer.segments[: thoughts[-1]],
        replace(last, signature=signature),
        *answer.segments[thoughts[-1] + 1 :],
    )
    assert chat.after(*edited) == _with_segments(chat.transcript, at, signed)


def _resumed(answer: Answer) -> list[Segment]:
    """An answer without the unfinished part of its last turn."""
    note = notice_note(answer)
    assert note
    notice, words = read_notice(note), words_of(note)
    assert notice
    at = [n for n, s in enumerate(answer.segments) if isinstance(s, Proposal | Orphan | Broken)]
    start = at[-1] + 1 if at else 0
    place = next(n for n, s in enumerate(answer.segments) if s is note)
    resumed = [*([Note(resumption(notice))] if at else []), *([Note(words)] if words else [])]
    kept = [s for s in answer.segments[start:place] if not isinstance(s, Text | Thinking)]
    return [*answer.segments[:start], *kept, *resumed, *answer.segments[place + 1 :]]


def _interrupted(text: str, notice: str, tail: str) -> Chat:
    return _chat(text.rstrip("\n") + notice + tail)


tails = st.sampled_from(["", "\n", "\n\n💬: next\n\n🤖:\n\ndone\n", "\n🔒:\n"])
loose_turns = st.tuples(st.sampled_from(["💬: q\n🤖:[A]\n", "🤖: "]), hostile_answers).map("".join)
kept_turns = (
    transcripts().filter(lambda t: bool(t.exchanges and t.exchanges[-1].answers)).map(render)
)
interrupted = st.builds(_interrupted, st.one_of(kept_turns, loose_turns), unfinished, tails)


@examples(40)
@given(interrupted, st.data())
def test_only_the_unfinished_part_of_a_turn_is_removed(chat: Chat, data: st.DataObject) -> None:
    found = [
        (n, e.answers[-1])
        for n, e in enumerate(chat.transcript.exchanges)
        if e.answers and last_notice(e.answers[-1])
    ]
    assume(found)
    at, answer = data.draw(st.sampled_from(found))
    edited = edits.drop_unfinished(chat.lines, answer)
    assert all(answer.span.start <= e.start and e.end <= answer.span.end for e in edited)
    after = chat.after(*edited)
    assert _normal(after) == _normal(_with_segments(chat.transcript, at, _resumed(answer)))
    now = after.exchanges[at].answers[-1]
    assert last_notice(now) is None or last_notice(now) == last_notice(
        replace(answer, segments=answer.segments[:-1])
    )


@pytest.mark.parametrize("before", ["", "mine\n\n🔒: my note\n\n"])
def test_a_resumed_reply_after_a_note_is_not_part_of_the_note(before: str) -> None:
    chat = Chat(f"💬: q\n\n🤖:[A]\n\n{before}🔒: [Interrupted: the network]\n")
    for _ in range(3):
        answer = chat.transcript.exchanges[0].answers[0]
        chat = Chat("\n".join(apply_edits(chat.lines, edits.drop_unfinished(chat.lines, answer))))
        edit, _tip = edits.open_tip(chat.lines, chat.transcript.exchanges[0].answers[0])
        chat = Chat("\n".join(apply_edits(chat.lines, [edit])))
        answer = chat.transcript.exchanges[0].answers[0]
        chat = Chat(
            "\n".join(apply_edits(chat.lines, edits.append_notice(chat.lines, answer, NOTICES[0])))
        )
    answer = chat.transcript.exchanges[0].answers[0]
    assert not any(map(is_resumption, answer.segments))
    notes = [s for s in answer.segments if isinstance(s, Note)]
    assert notes[-1] == Note(NOTICES[0].text)
    assert len(notes) == (2 if before else 1)


@moderate
@given(chats, st.data(), st.sampled_from(["Demo", None]))
def test_emptying_an_answer_changes_no_other(
    chat: Chat, data: st.DataObject, agent: str | None
) -> None:
    at, answer = _answered(chat, data)
    edit = edits.empty_answer(chat.lines, answer, agent)
    assert (edit.start, edit.end) == (answer.span.start, answer.span.end)
    assert chat.after(edit) == _with_answer(chat.transcript, at, lambda _: Answer(agent))


@given(st.lists(calls, max_size=6))
def test_a_replys_calls_are_numbered_and_distinct(reply_calls: list[ToolCall]) -> None:
    written = edits.written_calls(reply_calls)
    assert [call.index for call in written] == list(range(len(reply_calls)))
    assert len({call.id for call in written}) == len(reply_calls)
    assert [_without_id(c) for c in written] == [
        _without_id(replace(c, index=n)) for n, c in enumerate(reply_calls)
    ]
    assert not reply_calls or written[0].id == reply_calls[0].id


def _without_id(call: ToolCall) -> Any:
    return call.name, call.arguments, call.index, call.extra
