"""The laws of streaming: all cuts give the same file, and no reply becomes structure."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from parley.chat.reader import parse
from parley.chat.reply_writer import ReplyWriter
from parley.chat.transcript import Answer, Text, Thinking
from tests.examples import examples
from tests.strategies import any_text

Parts = list[tuple[str, str]]
replies = st.lists(st.tuples(st.sampled_from(["text", "thinking"]), any_text), max_size=4)


def write(parts: Parts, size: int) -> list[str]:
    """The texts written for a reply in pieces of `size` characters."""
    writer, written = ReplyWriter(), list[str]()
    for kind, text in parts:
        pieces = [text[i : i + size] for i in range(0, len(text), size)]
        for piece in pieces:
            written.append(
                writer.text(piece) if kind == "text" else writer.thinking("anthropic", "m", piece)
            )
        if kind == "thinking" and pieces:
            written.append(writer.end_thinking())
    return [*written, writer.end()]


def answer_of(parts: Parts, size: int) -> Answer:
    text = "💬: hi\n\n🤖:[A]\n\n" + "".join(write(parts, size))
    (exchange,) = parse(text).exchanges
    (answer,) = exchange.answers
    return answer


@examples(80)
@given(replies, st.integers(1, 7))
def test_every_cut_writes_the_same_text(parts: Parts, size: int) -> None:
    assert "".join(write(parts, size)) == "".join(write(parts, 10_000))


def _expected(parts: Parts) -> list[Text | Thinking]:
    segments, prose = list[Text | Thinking](), ""
    for kind, text in [*parts, ("thinking", "")]:
        if kind == "text":
            prose += text
            continue
        if kept := _normal(prose):
            segments.append(kept)
        prose = ""
        if text:
            segments.append(Thinking("anthropic", "m", text))
    return segments


def _normal(prose: str) -> Text | None:
    lines = prose.replace("\r\n", "\n").split("\n")
    while lines and not lines[0].strip(" \t\r"):
        lines.pop(0)
    text = "\n".join(lines).rstrip(" \t\r\n")
    return Text(text) if text.strip(" \t\r") else None


@examples(80)
@given(replies, st.integers(1, 7))
@example([("text", "💬:\r\r\n💬:")], 1)
def test_a_models_text_is_read_back_unchanged(parts: Parts, size: int) -> None:
    apart: Parts = []
    for part in parts:
        if part[1] or part[0] == "text":
            apart.append(part)
    assert list(answer_of(apart, size).segments) == _expected(apart)


@given(replies, st.integers(1, 5))
def test_a_reply_cut_anywhere_leaves_one_answer(parts: Parts, size: int) -> None:
    written = write(parts, size)[:-1]
    for end in range(len(written) + 1):
        transcript = parse("💬: hi\n\n🤖:[A]\n\n" + "".join(written[:end]))
        assert len(transcript.exchanges) == 1
        assert not transcript.exchanges[0].answers[0].proposals
