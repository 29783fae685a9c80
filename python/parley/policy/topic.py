"""The topic of a chat whose front matter contains an empty topic: from its first summary, or from a
model.

Knows the texts, but not where a topic is written or which model is asked.
"""

from __future__ import annotations

from collections.abc import Sequence

from parley.chat.edits import Edit
from parley.chat.head import put_topic
from parley.chat.references import own_words
from parley.chat.rounds import summary
from parley.chat.transcript import Answer, Exchange, Text, Transcript
from parley.text import one_line

TITLE_TOKENS = 40
TITLE_SECONDS = 10.0
_LONGEST = 60
_LONGEST_TEXT = 1000
_ENDS = " ,;:.-–—("
_QUOTES = "\"'`*_#“”„«» "

_PROMPT = (
    "Here is the beginning of a conversation.\n\nQuestion:\n{question}\n\nAnswer:\n{answer}\n\n"
    "Generate a title for it of at most 6 words, in the language of the question. "
    "Only return the title, nothing else."
)


def shortened(text: str) -> str:
    """A text as a title: one line without hidden characters, cut near 60 characters."""
    line = one_line(text)
    line = line[:1].upper() + line[1:]
    if len(line) <= _LONGEST:
        return line.removesuffix(".")
    head = line[:_LONGEST]
    words = head if line[_LONGEST] == " " else head.rpartition(" ")[0] or head
    return f"{words.rstrip(_ENDS)}…"


def fill_topic(lines: Sequence[str], transcript: Transcript) -> list[Edit]:
    """The edits that set an empty topic from the first answer's summary, if it has one."""
    _, answer = _beginning(transcript)
    text = shortened(summary(answer) or "") if answer else ""
    return put_topic(lines, transcript, text) if text else []


def title_prompt(transcript: Transcript) -> str:
    """The prompt that asks a model for a title; "" before the first answer."""
    exchange, answer = _beginning(transcript)
    if not exchange or not exchange.question or not answer:
        return ""
    text = "\n\n".join(segment.text for segment in answer.segments if isinstance(segment, Text))
    question = own_words(exchange.question) or exchange.question.text
    return _PROMPT.format(question=question[:_LONGEST_TEXT], answer=text[:_LONGEST_TEXT])


def title(reply: str) -> str:
    """A model's reply as a title: its first line, without quotes or marks around it."""
    first = next((line for line in reply.split("\n") if line.strip(_QUOTES)), "")
    return shortened(first.strip(_QUOTES).removeprefix("Title:").strip(_QUOTES))


def _beginning(transcript: Transcript) -> tuple[Exchange | None, Answer | None]:
    """The first exchange that has an answer, and that exchange's last answer."""
    exchange = next((exchange for exchange in transcript.exchanges if exchange.answers), None)
    return exchange, exchange.answers[-1] if exchange else None
