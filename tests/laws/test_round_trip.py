"""The laws of the chat file: written content is read back, and text never becomes structure."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from parley.chat import attachments, grammar
from parley.chat.reader import parse, split_lines
from parley.chat.transcript import (
    NOWHERE,
    Answer,
    Attachment,
    Broken,
    Exchange,
    Note,
    Orphan,
    Proposal,
    Question,
    Result,
    Segment,
    Text,
    ToolCall,
    Transcript,
)
from parley.chat.writer import render
from tests.examples import examples
from tests.strategies import (
    DIGEST,
    LONG_TEXT,
    PICTURE,
    answers_with_orphans,
    any_text,
    files,
    marked_files,
    transcripts,
)

loaded = examples(60)


@loaded
@given(transcripts())
def test_written_transcripts_are_read_back(transcript: Transcript) -> None:
    assert parse(render(transcript)) == transcript


@loaded
@given(answers_with_orphans())
def test_orphans_are_read_back(answer: Answer) -> None:
    transcript = Transcript((Exchange(Question(), (answer,)),))
    assert parse(render(transcript)) == transcript


@loaded
@given(files)
@example("\ufeff💬: a\r\n\r\n🤖:\r\n")
@example("❓: `{}`\n🤖:\n🛠️: [x][y]\n```\n💬:")
def test_the_reader_accepts_any_text_and_drops_none_of_it(text: str) -> None:
    transcript = parse(text)
    assert parse(render(transcript)) == transcript
    said = _letters(render(transcript))
    for line in split_lines(grammar.fit(text)):
        if not grammar.is_prompt(line) and not grammar.marker_of(line):
            assert _letters(line) in said


@loaded
@given(marked_files | files)
@example('🤖:\n❓: {broken\n🛠️: [a][call_1]\n`x`\n❓: {"\n🛠️: [b]\n')
def test_a_read_transcript_is_read_back_even_with_problems(text: str) -> None:
    transcript = parse(text)
    assert parse(render(transcript)) == transcript


starts = st.sampled_from(
    ["---", "--- ", "---\t ", "---\r", "----", "-- -", "\ufeff---", "\ufeff", " ---"]
)
preambles = st.builds(
    lambda start, rest, end: "\n".join([start, *rest, end]),
    starts,
    st.lists(
        st.sampled_from(["topic: x", "a\rb", "", "---", "\\💬: x", "💬: x", "text\r"]), max_size=3
    ),
    st.sampled_from(["---", "--- ", "end", "---\r", "end\r"]),
)


@loaded
@given(preambles, st.none() | st.sampled_from(["", "topic: x", "a: b\nc: d"]), st.booleans())
@example("---\ntopic: x\n---", None, False)
@example("---\r\ntopic: x\r\n---\r", None, False)
def test_a_preamble_that_begins_like_front_matter_survives(
    text: str, front_matter: str | None, has_exchange: bool
) -> None:
    exchanges = (Exchange(Question((Text("q"),))),) if has_exchange else ()
    transcript = Transcript(exchanges, (Text(text),), front_matter)
    assert parse(render(transcript)) == transcript


OPEN = Proposal(ToolCall("call_1", "web_search", "{}"))
ANSWERED = replace(OPEN, result=Result("ok", "x"))
LATER = Orphan("web_search", "call_1", Result("ok", "y"))


@pytest.mark.parametrize("between", [(), (Note("n"),), (Broken("proposal", "❓: {nope"),)])
def test_a_result_of_an_open_call_is_not_an_orphan(between: tuple[Segment, ...]) -> None:
    with pytest.raises(ValueError, match="open call in its round"):
        Answer(None, (OPEN, *between, LATER))
    assert Answer(None, (ANSWERED, *between, LATER))
    assert Answer(None, (OPEN, Text("a new round"), LATER))


def _letters(text: str) -> str:
    return "".join(c for c in text if c.isalnum())


def _spacing_apart(text: str) -> list[str]:
    """A file's content without the writer's free choices: spacing, starts of text, notes' ends."""
    return [
        "".join(
            text.replace("\ufe0f", "")
            .replace("\u00a0", " ")
            .replace("\\", "")
            .replace("🔒:", "")
            .split()
        )
    ]


@loaded
@given(files)
def test_a_file_without_problems_is_rewritten_unchanged_except_spacing(text: str) -> None:
    transcript = parse(text)
    if not transcript.problems and "\r" not in text:
        assert _spacing_apart(render(transcript)) == _spacing_apart(text.removeprefix("\ufeff"))


@loaded
@given(any_text)
def test_escaping_is_lossless_and_leaves_no_structure(text: str) -> None:
    escaped = grammar.escape(text)
    assert not any(grammar.marker_of(line) or grammar.is_prompt(line) for line in escaped)
    assert "\n".join(line[1:] if grammar.is_escaped(line) else line for line in escaped) == text


@loaded
@given(any_text)
def test_question_text_is_lossless_and_never_an_attachment(text: str) -> None:
    question = (
        Question((Note("n"), Text("q"), Note("n"))) if not text.strip() else Question(_texts(text))
    )
    (exchange,) = parse(render(Transcript((Exchange(question),)))).exchanges
    assert exchange.question == question
    assert not any(attachments.read_line(line, NOWHERE) for line in attachments.escape(text))


def _texts(text: str) -> tuple[Note | Text, ...]:
    """A text below a note, and so away from the question's marker."""
    try:
        return (Note("n"), Text(text))
    except ValueError:
        return (Note("n"), Text("q"))


@pytest.mark.parametrize("line", [PICTURE, f"\\{PICTURE}", LONG_TEXT])
def test_a_picture_line_is_a_picture_only_in_a_question(line: str) -> None:
    text = f"{line}\n\n💬: {line}\n{line}\n\n🔒: note\n{line}\n\n🤖:\n\n{line}\n"
    transcript = parse(text)
    (exchange,) = transcript.exchanges
    assert transcript.preamble == (Text(line),)
    assert exchange.answers[0].segments == (Text(line),)
    assert exchange.question
    if line == PICTURE:
        picture = Attachment("image/png 12 kB", f"stocks.assets/{DIGEST}.png")
        assert exchange.question.parts == (Text(line), picture, Note(f"note\n{line}"))
        assert exchange.question.text == f"{PICTURE}\n\n[image image/png, 12 kB]"
    else:
        plain = line.removeprefix("\\")
        assert exchange.question.parts == (Text(f"{line}\n{plain}"), Note(f"note\n{line}"))
    assert parse(render(transcript)) == transcript


@pytest.mark.parametrize(
    "target",
    [
        f"/etc/stocks.assets/{DIGEST}.png",
        f"../stocks.assets/{DIGEST}.png",
        f"stocks.assets/../{DIGEST}.png",
        f"stocks.assets/{DIGEST.upper()}.png",
        f"stocks.assets/{DIGEST}.PNG",
        f"stocks.assets/{DIGEST}.svg",
        f"stocks.assets/{DIGEST}.txt",
        f"stocks.assets/{DIGEST[1:]}.png",
        f"stocks.assets//{DIGEST}.png",
        f"stocks/{DIGEST}.png",
        f".assets/{DIGEST}.png",
        f"file:///stocks.assets/{DIGEST}.png",
        f"https://example.com/stocks.assets/{DIGEST}.png",
        f"stocks.assets/{DIGEST}.png 'title'",
        f"<stocks.assets/{DIGEST}.png>",
    ],
)
def test_any_other_link_is_text(target: str) -> None:
    (exchange,) = parse(f"💬:\n![image/png 12 kB]({target})\n").exchanges
    assert exchange.question == Question((Text(f"![image/png 12 kB]({target})"),))


signs = st.sampled_from([grammar.PROMPT, *grammar.MARKERS.values()])
marked_lines = st.builds(
    lambda slashes, sign, is_bare, rest: (
        "\\" * slashes + (sign.replace("\ufe0f", "") if is_bare else sign) + rest
    ),
    st.integers(0, 3),
    signs,
    st.sampled_from(["", "\ufe0f"]),
    any_text.map(lambda text: text.replace("\n", "")),
)


@given(marked_lines)
def test_text_that_may_become_structure_is_held_back(line: str) -> None:
    escaped = grammar.escape_line(line)
    mark = next(n for n in range(1, len(line) + 1) if grammar.escape_line(line[:n]) != line[:n])
    assert all(grammar.may_need_escape(line[:n]) for n in range(1, mark))
    assert escaped == "\\" + line


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@given(transcript=transcripts())
@examples(50)
def test_bom_line_ends_and_the_last_newline_change_nothing(
    ending: str, transcript: Transcript
) -> None:
    text = render(transcript)
    if "\r" not in text:
        assert parse("\ufeff" + text.replace("\n", ending)) == transcript
        if not text.endswith("\n\n"):
            assert parse(text.removesuffix("\n").replace("\n", ending)) == transcript


@given(st.text(max_size=30))
def test_a_question_is_the_typed_text(text: str) -> None:
    try:
        typed = Text(text)
    except ValueError:
        return
    assert parse(render(Transcript((Exchange(Question((typed,))),)))).exchanges[
        0
    ].question == Question((typed,))


ANSWER = "💬: q\n\n🤖:[A]\n\n"


@pytest.mark.parametrize("body", ["y", "`x`", "```\ny\n```"])
def test_an_old_prompt_line_is_not_part_of_an_unreadable_result(body: str) -> None:
    transcript = parse(f"{ANSWER}🛠️: bad header\n>> Please choose (\n\n{body}\n\nText.\n")
    said, text = transcript.exchanges[0].answers[0].segments
    assert said == Broken("result", f"🛠️: bad header\n\n{body}")
    assert text == Text("Text.")
    assert parse(render(transcript)) == transcript


@pytest.mark.timeout(30)
def test_results_without_a_call_are_recognized_quickly() -> None:
    transcript = parse(ANSWER + "🛠️: [x][y]\n\n`1`\n\n" * 20_000)
    assert len(transcript.exchanges[0].answers[0].segments) == 20_000


def test_a_result_of_endless_backticks_is_read_quickly() -> None:
    text = f"{ANSWER}🛠️: [x][y]\n\n{'`' * 100_000}x`\n"
    assert parse(render(parse(text))) == parse(text)


def test_json_at_the_limit_of_decoding_is_a_broken_call() -> None:
    for depth in (90, 110, *range(500, 1000, 10), 5000, 100_000):
        for deep in ("[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth):
            call = f'{{"id":"c","x":{deep},"function":{{"name":"w","arguments":"{{}}"}}}}'
            transcript = parse(f"{ANSWER}❓: `{call}`\n")
            assert bool(transcript.problems) is (depth > 100)
            assert parse(render(transcript)) == transcript
