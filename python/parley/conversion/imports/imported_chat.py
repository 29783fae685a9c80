"""Builds a chat file's text from another program's chat, which is read in order.

Knows the transcript, and which parts may appear in which places in it. Knows no other program's
format.
"""

from __future__ import annotations

import hashlib
import re
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TypeVar

from parley.chat.attachments import attachment_of
from parley.chat.edits import apply_edits
from parley.chat.grammar import fit
from parley.chat.head import put_value
from parley.chat.history import DECLINED, NOT_APPROVED
from parley.chat.reader import parse_lines
from parley.chat.result_bodies import header_name
from parley.chat.rounds import is_unfinished
from parley.chat.transcript import (
    CALL_ID,
    SPACING,
    Answer,
    Attachment,
    Exchange,
    Note,
    Orphan,
    Proposal,
    Question,
    QuestionPart,
    Result,
    Segment,
    Status,
    Text,
    Thinking,
    ToolCall,
    Transcript,
    without_blank_edges,
)
from parley.chat.writer import render
from parley.frozen import frozen
from parley.late_patterns import late_pattern
from parley.media import PICTURE_BYTES, kind_of
from parley.text import one_line

UNNAMED = "unknown"
"""The provider and the model of thinking from an unknown source, which is never sent."""
_MOST_LOSSES, _MOST_SHOWN = 20, 200
_SIGNATURE = late_pattern(r"(?!redacted( |$))\S([^\n]*\S)?")
_Part = TypeVar("_Part", bound=Segment | Attachment)
_NEVER_RAN = (NOT_APPROVED, DECLINED)


@frozen
class ImportedChat:
    """A chat file's text, the losses (a clause each), and the pictures to store next to it."""

    text: str
    losses: tuple[str, ...] = ()
    pictures: tuple[bytes, ...] = ()


@dataclass(slots=True)
class _Answer:
    """An answer that is being read, with the calls that have no result yet, by id and by name."""

    agent: str | None
    segments: list[Segment] = field(default_factory=list)
    open: dict[str, deque[int]] = field(default_factory=dict)

    def add_call(self, call: ToolCall, name: str) -> None:
        for key in (f"id {call.id}", f"name {name}"):
            self.open.setdefault(key, deque()).append(len(self.segments))
        self.segments.append(Proposal(call))

    def settle(self, key: str, result: Result) -> bool:
        """Attach a result to an open call; False if there is no such call."""
        places = self.open.get(key, deque())
        while places:
            place = places.popleft()
            call = self.segments[place]
            if isinstance(call, Proposal) and call.result is None:
                self.segments[place] = replace(call, result=result)
                return True
        return False


@dataclass(slots=True)
class _Exchange:
    """An exchange that is being read; `question` is None for an answer without a question."""

    question: list[QuestionPart] | None
    answers: list[_Answer] = field(default_factory=list)


class Conversation:
    """Collects messages, in order. Texts may contain anything, and always remain texts.

    `folder` is the folder next to the chat for pictures; "" if there is none.
    """

    def __init__(self, folder: str = "") -> None:
        self._folder = folder
        self._pictures = dict[str, bytes]()
        self._exchanges = list[_Exchange]()
        self._preamble = list[Text | Note]()
        self._system = list[str]()
        self._topic = ""
        self._tags = dict[str, None]()
        self._losses = dict[str, None]()
        self._answer: _Answer | None = None
        """The last answer, even if the user has written something after it."""
        self._is_replying = False
        self._calls = 0
        """The number of calls in this reply so far; a call after a result starts another reply."""

    def lose(self, what: str) -> None:
        """Record content that cannot be imported; each clause is reported once."""
        if len(self._losses) < _MOST_LOSSES:
            self._losses[one_line(what, _MOST_SHOWN)] = None

    def title(self, text: str) -> None:
        """Set the chat's topic."""
        self._topic = " ".join(fit(text).split())

    def tags(self, tags: Iterable[str]) -> None:
        """Add tags to the chat, without duplicates."""
        self._tags |= dict.fromkeys(filter(None, (" ".join(fit(tag).split()) for tag in tags)))

    def system(self, text: str) -> None:
        """Add a part of the system prompt."""
        if text.strip():
            self._system.append(fit(text))
            if self._exchanges:
                self.lose(
                    "the position of later system messages, which are now in the system prompt"
                )

    def preamble(self, text: str) -> None:
        """Add text for people above the conversation."""
        _add(self._preamble, text)

    def question(self, text: str) -> None:
        """Add the user's text; if the previous question has no answer, the text extends that
        question.
        """
        _add(self._question(), text)

    def picture(self, content: bytes) -> Attachment | None:
        """Store a picture, and return its attachment; None if it cannot be stored."""
        kind = kind_of(content)
        if not self._folder or kind is None or len(content) > PICTURE_BYTES:
            return None
        try:
            attachment = attachment_of(content, self._folder, kind)
        except ValueError:  # no link can name the folder
            return None
        self._pictures[attachment.path] = content
        return attachment

    def attach(self, attachment: Attachment) -> None:
        """Add a picture to a question."""
        self._question().append(attachment)

    def reply(self, agent: str = "") -> None:
        """Begin a reply; another agent's reply starts another answer."""
        if not self._exchanges:
            self._exchanges.append(_Exchange(None))
        name = re.sub(r"[\]\n]", " ", fit(agent)).strip() or None
        answers = self._exchanges[-1].answers
        if not answers or answers[-1].agent != name:
            answers.append(_Answer(name))
        self._answer, self._is_replying, self._calls = answers[-1], True, 0

    def text(self, text: str) -> None:
        """Add the model's text."""
        _add(self._segments(), text)

    def thinking(
        self,
        text: str | None,
        provider: str = "",
        model: str = "",
        signature: str = "",
        *,
        redacted: bool = False,
    ) -> None:
        """Add the model's thinking, or the data that replaces its text."""
        if not _SIGNATURE.fullmatch(signature) or fit(signature) != signature:
            signature = ""
        provider, model = (
            re.sub(r"[\s:\[\]]", "_", fit(provider)),
            re.sub(r"[\s\[\]]", "_", fit(model)),
        )
        words = None if redacted or text is None else fit(text)
        if words or signature:
            thought = Thinking(provider or UNNAMED, model or UNNAMED, words, signature, redacted)
            self._segments().append(thought)

    def call(self, call_id: str, name: str, arguments: str, extra: str = "") -> None:
        """Add a call that the model makes in this reply."""
        number = len(self._segments())
        call = ToolCall(
            _own_id(call_id or f"call_{number}"),
            fit(name) or "_",
            fit(arguments),
            self._calls,
            extra,
        )
        self._calls += 1
        assert self._answer, "the model is speaking"
        self._answer.add_call(call, name)

    def result(
        self,
        call_id: str,
        text: str,
        status: Status = "ok",
        name: str = "",
        pictures: Sequence[Attachment] = (),
    ) -> None:
        """Add a result to the first open call with this id, or with this name if the id is ""."""
        if self._answer is None:
            self.reply()
        assert self._answer, "there is an answer now"
        self._calls = 0
        own_id, body = _own_id(call_id), fit(text)
        is_refused = status == "error" and body in _NEVER_RAN
        result = Result("refused" if is_refused else status, body, tuple(pictures))
        if not self._answer.settle(f"id {own_id}" if call_id else f"name {name}", result):
            self.lose(f"the call for a result, which is therefore never sent: {call_id or name}")
            self._answer.segments.append(Orphan(header_name(name), own_id, result))

    def note(self, text: str) -> None:
        """Add text that is for people, and is never sent to a model."""
        if not (note := without_blank_edges(fit(text)).lstrip(SPACING + "\n")):
            return
        if self._is_replying:
            self._segments().append(Note(note))
        elif self._exchanges:
            self._question().append(Note(note))
        else:
            self._preamble.append(Note(note))

    def chat(self) -> ImportedChat:
        """The whole conversation as a chat file. Raises ValueError if the conversation is empty."""
        exchanges = tuple(map(_exchange, self._exchanges))
        if not exchanges:
            raise ValueError("it contains no messages")
        last = exchanges[-1]
        if last.answers and not is_unfinished(last.answers[-1]):
            exchanges = (*exchanges, Exchange(Question()))
        text = render(Transcript(exchanges, _merged(self._preamble), self._front_matter()))
        return ImportedChat(text, tuple(self._losses), tuple(self._pictures.values()))

    def _front_matter(self) -> str | None:
        lines = list[str]()
        keys: dict[str, str | list[str]] = {
            "topic": self._topic,
            "tags": list(self._tags),
            "system_prompt": "\n\n".join(self._system),
        }
        for key, value in keys.items():
            try:
                edits = put_value(lines, parse_lines(lines), key, value) if value else []
            except ValueError:
                self.lose(f"its {key}, which front matter cannot contain")
            else:
                lines = apply_edits(lines, edits)
        return parse_lines(lines).front_matter

    def _question(self) -> list[QuestionPart]:
        """The parts of the user's current question."""
        if not self._exchanges or self._exchanges[-1].answers:
            self._exchanges.append(_Exchange([]))
        self._is_replying = False
        question = self._exchanges[-1].question
        assert question is not None, "only an exchange with answers lacks its question"
        return question

    def _segments(self) -> list[Segment]:
        """The segments of the model's current answer."""
        if not self._is_replying:
            self.reply()
        assert self._answer, "the model is speaking"
        return self._answer.segments


def _exchange(exchange: _Exchange) -> Exchange:
    answers = tuple(Answer(answer.agent, _merged(answer.segments)) for answer in exchange.answers)
    return Exchange(
        None if exchange.question is None else Question(_merged(exchange.question)), answers
    )


def _merged(parts: Iterable[_Part]) -> tuple[_Part | Text, ...]:
    """The parts, with adjacent texts joined."""
    merged = list[_Part | Text]()
    for _, run in groupby(parts, lambda part: isinstance(part, Text)):
        side_by_side = list(run)
        texts = [part.text for part in side_by_side if isinstance(part, Text)]
        merged += [Text("\n\n".join(texts))] if texts else side_by_side
    return tuple(merged)


def _add(parts: list[Text | Note] | list[QuestionPart] | list[Segment], text: str) -> None:
    if stripped := without_blank_edges(fit(text)):
        parts.append(Text(stripped))


def _own_id(call_id: str) -> str:
    """An id that is valid in a chat; equal ids stay equal."""
    if CALL_ID.fullmatch(call_id):
        return call_id
    return f"call_{hashlib.sha256(call_id.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
