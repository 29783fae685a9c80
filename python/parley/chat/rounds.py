"""Values derived from an answer: its rounds, notices and summary.

A round is one of the model's replies, with the results of its calls. All values are derived from
the segments each time and never stored, so they always match an edited file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Literal, TypeAlias

from parley.chat.grammar import SUMMARY
from parley.chat.transcript import (
    Answer,
    Broken,
    Exchange,
    Note,
    Proposal,
    RoundStarts,
    Segment,
    Text,
    Thinking,
    Transcript,
)
from parley.frozen import frozen
from parley.late_patterns import late_pattern
from parley.text import one_line

NoticeKind: TypeAlias = Literal["Unable to complete task", "Stopped", "Interrupted"]

_NOTICE = late_pattern(
    r"\[(?P<kind>Unable to complete task|Stopped|Interrupted): (?P<reason>[^\n\]]*)\]"
)


@frozen
class Notice:
    """Why a turn ended without a complete answer."""

    kind: NoticeKind
    reason: str

    @property
    def text(self) -> str:
        """The notice as the text of a note in the file."""
        return f"[{self.kind}: {_as_reason(self.reason)}]"


UNFINISHED = Notice("Interrupted", "the answer was still being written")
"""Ends an answer while a reply is being written. If the process dies, the file still shows that the
answer is incomplete.
"""


def _as_reason(reason: str) -> str:
    """A reason for a notice: one line, without brackets or control characters."""
    return one_line(re.sub(r"[\[\]]", " ", reason))


def read_notice(note: Note) -> Notice | None:
    """The notice at the start of a note; None for any other note."""
    parts = _NOTICE.match(note.text)
    match parts and parts["kind"]:
        case "Unable to complete task" | "Stopped" | "Interrupted" as kind:
            assert parts is not None
            return Notice(kind, parts["reason"])
        case _:
            return None


def words_of(note: Note) -> str:
    """The text that the user typed after the notice in a note."""
    parts = _NOTICE.match(note.text)
    return note.text[parts.end() if parts else 0 :].strip()


def resumption(notice: Notice) -> str:
    """The text of the note that replaces a notice when the turn resumes. Limits restart there."""
    reason = f"stopped {notice.reason}" if notice.kind == "Stopped" else notice.reason
    return f"[Resumed after: {_as_reason(reason)}]"


def is_resumption(segment: Segment) -> bool:
    """Whether a segment is the note that marks a resumed turn."""
    return isinstance(segment, Note) and segment.text.startswith("[Resumed after: ")


_ANSWERED_BY = "[Answered by "


def answered_by(model: str, requested: str) -> str:
    """The text of the note that a model other than the requested model wrote a reply."""
    return f"{_ANSWERED_BY}{_as_reason(model)}, for {_as_reason(requested)}]"


def is_answered_by(note: Note) -> bool:
    """Whether a note says which model wrote a reply."""
    return note.text.startswith(_ANSWERED_BY)


def plan_note(tasks: str) -> str:
    """The text of the note with an agent's plan, a list of tasks."""
    return f"[Plan]\n{tasks}"


def notes_of(transcript: Transcript) -> Iterator[Note]:
    """The notes in all answers, in file order."""
    answers = (answer for exchange in transcript.exchanges for answer in exchange.answers)
    return (s for answer in answers for s in answer.segments if isinstance(s, Note))


@frozen
class Round:
    """One of the model's replies: its segments in file order, with results inside proposals."""

    segments: tuple[Segment, ...]

    @property
    def proposals(self) -> tuple[Proposal, ...]:
        """The calls in this reply on which the user decides, or decided."""
        return tuple(s for s in self.segments if isinstance(s, Proposal) and s.ran_by is None)

    @property
    def broken(self) -> tuple[Broken, ...]:
        """The unreadable proposals in this reply."""
        return tuple(s for s in self.segments if isinstance(s, Broken) and s.kind == "proposal")

    @property
    def has_content(self) -> bool:
        """Whether the model wrote anything here: text, thinking or calls."""
        return any(isinstance(segment, Text | Thinking | Proposal) for segment in self.segments)

    @property
    def is_over(self) -> bool:
        """Whether a reply without proposals is complete.

        If it broke off after a call that others ran, only a resumption follows that call.
        """
        ran = [n for n, s in enumerate(self.segments) if isinstance(s, Proposal) and s.ran_by]
        rest = self.segments[ran[-1] + 1 if ran else 0 :]
        has_words = any(isinstance(segment, Text | Thinking) for segment in rest)
        return has_words or bool(ran and not any(map(is_resumption, rest)))


def rounds(answer: Answer) -> tuple[Round, ...]:
    """An answer's rounds, in order; empty if it has no segments."""
    return tuple(Round(tuple(part)) for part in _parts(answer.segments))


def replies(answer: Answer) -> tuple[Round, ...]:
    """An answer's replies: its rounds, and the parts of a round that was resumed after a call that
    others ran.
    """
    return tuple(Round(part) for reply in rounds(answer) for part in _resumed(reply.segments))


def _resumed(segments: tuple[Segment, ...]) -> Iterator[tuple[Segment, ...]]:
    """The segments, split after each resumption."""
    ends = [n + 1 for n, segment in enumerate(segments) if is_resumption(segment)]
    bounds = [0, *ends, len(segments)]
    yield from (segments[i:j] for i, j in pairwise(bounds) if i < j)


def rounds_since_resumption(answer: Answer) -> tuple[Round, ...]:
    """The rounds after the last resumption, to which limits apply."""
    starts = [number for number, segment in enumerate(answer.segments) if is_resumption(segment)]
    return tuple(
        Round(tuple(part)) for part in _parts(answer.segments[starts[-1] + 1 if starts else 0 :])
    )


def _parts(segments: Iterable[Segment]) -> Iterator[list[Segment]]:
    starts, part = RoundStarts(), list[Segment]()
    for segment in segments:
        if starts.feed(segment) and part:
            yield part
            part = []
        part.append(segment)
    if part:
        yield part


def has_begun(exchange: Exchange) -> bool:
    """Whether an answer to a question has begun."""
    return any(answer.segments for answer in exchange.answers)


def last_notice(answer: Answer) -> Notice | None:
    """The notice at an answer's end; None if there is none."""
    note = notice_note(answer)
    return read_notice(note) if note else None


def notice_note(answer: Answer) -> Note | None:
    """The note with the notice at an answer's end; only the user's notes may follow it."""
    for segment in reversed(answer.segments):
        if not isinstance(segment, Note) or is_resumption(segment):
            return None
        if read_notice(segment):
            return segment
    return None


def is_unfinished(answer: Answer) -> bool:
    """Whether the answer is unfinished, that is, ends with a notice, waiting calls or results.

    Unreadable calls that the user declined do not count.
    """
    replies = rounds(answer)
    calls = (*replies[-1].proposals, *replies[-1].broken) if replies else ()
    is_declined = all(isinstance(call, Broken) and call.choice in ("yn", "yN") for call in calls)
    return last_notice(answer) is not None or not is_declined


def summary(answer: Answer) -> str | None:
    """The text after `📝:` in the answer's last summary line; None if there is none."""
    lines = [line for s in answer.segments if isinstance(s, Text) for line in s.text.split("\n")]
    return next(
        (
            line.removeprefix(SUMMARY).strip()
            for line in reversed(lines)
            if line.startswith(SUMMARY)
        ),
        None,
    )
