"""The values in a chat file. Equal values mean the same, and constructors enforce a normal form.

Knows which parts may appear in which places in a transcript. Knows nothing about markers, files,
providers or the loop. `span` and `spelling` record where and how a value was written, and are
ignored in `==`.
"""

from __future__ import annotations

import re
from dataclasses import field, replace
from itertools import pairwise
from typing import Any, Literal, TypeAlias, get_args

from parley.frozen import frozen
from parley.late_patterns import late_pattern
from parley.media import TYPES

Severity: TypeAlias = Literal["error", "warning", "hint"]
Choice: TypeAlias = Literal["yA", "ya", "yo", "yO", "yn", "yN"]
Status: TypeAlias = Literal["ok", "error", "refused"]
Runner: TypeAlias = Literal["provider", "agent"]
"""Who ran a call without the user: the model's provider, or the agent by its own rules."""

CHOICES: tuple[Choice, ...] = get_args(Choice)
YES: frozenset[Choice] = frozenset({"yA", "ya", "yo", "yO"})
RUNNERS: tuple[Runner, ...] = get_args(Runner)
REMEMBERING: frozenset[Choice] = frozenset({"yA", "yO"})

CALL_ID = late_pattern(r"[A-Za-z0-9_.:-]{1,128}")
HEADER_NAME = late_pattern(r"[A-Za-z0-9_.-]+")
TASK_ID = late_pattern(r"[!-_a-~]{1,512}")
"""Task ids that can be written in a file: one word of visible ASCII characters, without
backticks.
"""
UNFIT = late_pattern("[\0\ud800-\udfff]")
"""NUL and lone surrogates, which a transcript's text never contains, because they cannot be sent to
providers as JSON."""

PICTURE_PATH = rf"[^/\n\r]+\.assets/[0-9a-f]{{64}}\.(?:{'|'.join(TYPES)})"
TEXT_PATH = r"[^/\n\r]+\.assets/[0-9a-f]{64}\.txt"
"""Patterns for the paths of attachments next to the chat; a file's name is its SHA-256."""
_PATH = late_pattern(rf"{PICTURE_PATH}|{TEXT_PATH}")
_LABEL = late_pattern(r"[^\[\]\n\r]*")
_SIZE = late_pattern(r"(?:.* )?(\d+(?:\.\d+)? (?:B|kB|MB))")
_UNITS = {"B": 1, "kB": 1_000, "MB": 1_000_000}
_MOST_BYTES = 32_000_000
"""No file next to a chat may be larger; a label may say anything."""
_MEDIA_TYPES = {**TYPES, "txt": "text/plain"}

BLANK = " \t"
SPACING = " \t\u00a0"
"""Characters that may appear between a marker and its content."""


@frozen
class Span:
    """A range of lines in the file, counted from 0; `end` is the line after the last line."""

    start: int
    end: int


NOWHERE = Span(-1, -1)


@frozen
class Problem:
    """A part of the file that could not be interpreted as written.

    `line` and `column` are counted from 0, and `column` is in bytes.
    """

    line: int
    column: int
    severity: Severity
    message: str


def _require(fits: bool, what: str) -> None:
    if not fits:
        raise ValueError(what)


def is_blank(line: str) -> bool:
    """Whether a line contains only spaces and tabs."""
    return not line.strip(BLANK)


def without_blank_edges(text: str) -> str:
    """A text without blank lines at its ends; "" if all lines are blank."""
    lines = text.split("\n")
    filled = [number for number, line in enumerate(lines) if not is_blank(line)]
    return "\n".join(lines[filled[0] : filled[-1] + 1]) if filled else ""


_FILLED = late_pattern(r"[ \t]*[^ \t\n]")


def _check_text(text: str) -> None:
    filled = _FILLED.match(text) and not is_blank(text[text.rfind("\n") + 1 :])
    _require(bool(filled), "text is empty, or starts or ends with a blank line")
    _require(not UNFIT.search(text), "text contains NUL or a lone surrogate")


@frozen
class Text:
    """Prose from the user or the model: not empty, without blank lines at either end."""

    text: str
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    def __post_init__(self) -> None:
        _check_text(self.text)


@frozen
class Note:
    """Text in the file that is never sent to a model; Parley's notices are notes."""

    text: str
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    def __post_init__(self) -> None:
        _check_text(self.text)
        _require(self.text[0] not in SPACING, "a note must not start with a space")


@frozen
class Attachment:
    """A file next to the chat, linked with `label`; `path` is relative to the chat's folder."""

    label: str
    path: str
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    def __post_init__(self) -> None:
        _require(bool(_LABEL.fullmatch(self.label)), "a label must be one line without brackets")
        _require(bool(_PATH.fullmatch(self.path)), "invalid attachment path")
        _require(not UNFIT.search(self.label + self.path), "invalid character in an attachment")

    @property
    def digest(self) -> str:
        """The SHA-256 of the content, in hexadecimal."""
        return self.path.rpartition("/")[2].partition(".")[0]

    @property
    def media_type(self) -> str:
        """The content's media type, according to the file name."""
        return _MEDIA_TYPES[self.path.rpartition(".")[2]]

    @property
    def is_text(self) -> bool:
        """Whether this is a text that was too long for the chat file, not a picture or a PDF."""
        return self.path.endswith(".txt")

    @property
    def size(self) -> str:
        """The content's size, if the label gives it; otherwise ""."""
        match = _SIZE.fullmatch(self.label)
        return match[1] if match else ""

    @property
    def byte_count(self) -> int:
        """About how many bytes the content has, according to the label; 0 if it does not say."""
        number, _, unit = self.size.partition(" ")
        return int(min(float(number) * _UNITS[unit], _MOST_BYTES)) if number else 0

    @property
    def text(self) -> str:
        """The text that replaces the attachment if its content is not sent."""
        kind = self.media_type
        first = f"{'image' if kind.startswith('image/') else 'document'} {kind}"
        return f"[{first}, {self.size}]" if self.size else f"[{first}]"


@frozen
class Thinking:
    """A thinking block from a model; `text` may be None, and `signature` is "" if unsigned.

    A redacted block contains no text, and its `signature` is the provider's encrypted content.
    """

    provider: str
    model: str
    text: str | None
    signature: str = ""
    redacted: bool = False
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    def __post_init__(self) -> None:
        _require(bool(re.fullmatch(r"[^\s:\[\]]+", self.provider)), "invalid provider in thinking")
        _require(bool(re.fullmatch(r"[^\s\[\]]+", self.model)), "invalid model in thinking")
        _require(
            not UNFIT.search(self.model + self.provider + (self.text or "")),
            "invalid character in thinking",
        )
        _require(
            bool(re.fullmatch(r"(\S([^\n]*\S)?)?", self.signature)),
            "a signature must be one line without spaces at its ends",
        )
        _require(not UNFIT.search(self.signature), "invalid character in a signature")
        if self.redacted:
            _require(
                self.text is None and bool(self.signature),
                "redacted thinking must have data and no text",
            )
        else:
            _require(
                self.signature.split(" ")[0] != "redacted",
                "a signature cannot start with 'redacted'",
            )


@frozen
class ToolCall:
    """A call as the model made it; `arguments` is the exact streamed text."""

    id: str
    name: str
    arguments: str
    index: int | None = None
    extra: str = ""
    """The keys that OpenAI does not define, as a compact JSON object; "" if there are none."""

    def __post_init__(self) -> None:
        _require(CALL_ID.fullmatch(self.id) is not None, "invalid call id")
        _require(bool(self.name), "a call without a name")
        _require(self.index is None or self.index >= 0, "a negative index")


@frozen
class Result:
    """The outcome of a call; `refused` means that the call never ran.

    If a text was too long for the file, `body` is its beginning, and the whole text is attached.
    """

    status: Status
    body: str
    attachments: tuple[Attachment, ...] = ()
    spelling: tuple[str, ...] = field(default=(), compare=False, repr=False)
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    note: str = field(default="", compare=False, repr=False)
    """The text of a note to write below the result. Read from a file, the note is a separate
    segment."""

    def __post_init__(self) -> None:
        _require(
            not UNFIT.search(self.body + self.note), "a result contains NUL or a lone surrogate"
        )

    @property
    def text(self) -> str:
        """The body, with text in place of the pictures."""
        pictures = (attachment.text for attachment in self.attachments if not attachment.is_text)
        return "\n".join(filter(None, [self.body, *pictures]))


@frozen
class ServerTask:
    """The id of a task that runs a call on a server; its result will follow."""

    id: str
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    def __post_init__(self) -> None:
        _require(TASK_ID.fullmatch(self.id) is not None, "invalid task id")


@frozen
class Proposal:
    """A model's tool call, with its choice and its result; `span` covers only the call's line.

    Others ran a call with `ran_by`, as part of the reply: it is a record, which has no choice, never
    waits and never runs.
    """

    call: ToolCall
    choice: Choice | None = None
    result: Result | None = None
    task: ServerTask | None = None
    """The task that runs the call on its server, or ran it."""
    ran_by: Runner | None = None
    spelling: str = field(default="", compare=False, repr=False)
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    diff: str = field(default="", compare=False, repr=False)
    """The unified diff of the files that the call would change, for a program that decides; it is
    never written. "" if there is none."""

    def __post_init__(self) -> None:
        _require(not (self.ran_by and self.choice), "a call that others ran has no choice")

    @property
    def mark(self) -> str | None:
        """The word in the brackets of the call's line; None if there are none."""
        return self.choice or self.ran_by

    @property
    def readable_result(self) -> Result | None:
        """The result without the parts that only the provider that ran the call understands."""
        if self.result is None or self.ran_by != "provider":
            return self.result
        pictures = tuple(a for a in self.result.attachments if not a.is_text)
        return replace(self.result, attachments=pictures)

    @property
    def undecided(self) -> bool:
        """Whether the file records neither a choice nor a result, and others did not run the call."""
        return self.mark is None and self.result is None

    @property
    def has_run(self) -> bool:
        """Whether the call has a result that is not a refusal."""
        return self.result is not None and self.result.status != "refused"


@frozen
class Orphan:
    """A result whose proposal is missing or already has a result; kept, but never sent."""

    name: str
    id: str
    result: Result

    def __post_init__(self) -> None:
        _require(HEADER_NAME.fullmatch(self.name) is not None, "invalid name in a result header")
        _require(CALL_ID.fullmatch(self.id) is not None, "invalid call id")


@frozen
class Broken:
    """A block with an unreadable marker line, as written; kept, but never sent or run."""

    kind: Literal["proposal", "result", "thinking"]
    text: str
    choice: Choice | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)


QuestionPart: TypeAlias = Text | Note | Attachment
Segment: TypeAlias = Text | Thinking | Proposal | Orphan | Broken | Note


def _no_two_texts(parts: tuple[Segment | Attachment, ...]) -> None:
    for one, other in pairwise(parts):
        _require(not (isinstance(one, Text) and isinstance(other, Text)), "two adjacent texts")


class RoundStarts:
    """Finds the segments that begin a new round; takes an answer's segments in order."""

    def __init__(self) -> None:
        self._after_call = False
        self._index = -1

    def feed(self, segment: Segment | Attachment) -> bool:
        """Whether this segment begins a round after an earlier round."""
        begins = False
        match segment:
            case Text() | Thinking() | Proposal(ran_by=str()):
                begins, self._after_call = self._after_call, False
                self._index = -1 if begins else self._index
            case Proposal(call=ToolCall(index=int(index))):
                begins, self._after_call, self._index = index <= self._index, True, index
            case Proposal() | Broken(kind="proposal"):
                self._after_call = True
            case _:
                pass
        return begins


def _no_orphan_of_an_open_call(parts: tuple[Segment, ...]) -> None:
    """Reject an orphan that the reader would attach to an open call with the same id."""
    starts, waiting = RoundStarts(), set[str]()
    for part in parts:
        if starts.feed(part):
            waiting.clear()
        if isinstance(part, Proposal) and part.result is None:
            waiting.add(part.call.id)
        is_open = isinstance(part, Orphan) and part.id in waiting
        _require(not is_open, "an orphan result has the id of an open call in its round")


@frozen
class Question:
    """The user's question; if it has no parts, the user has not written it yet."""

    parts: tuple[QuestionPart, ...] = ()
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    def __post_init__(self) -> None:
        _no_two_texts(self.parts)
        is_long = any(isinstance(part, Attachment) and part.is_text for part in self.parts)
        _require(not is_long, "a text can be attached only to a result")

    @property
    def text(self) -> str:
        """The text for the model, without notes and with text for attachments; may be ""."""
        return "\n\n".join(part.text for part in self.parts if not isinstance(part, Note))


@frozen
class Answer:
    """A model's answer: everything from its marker to the next question or answer."""

    agent: str | None
    segments: tuple[Segment, ...] = ()
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    def __post_init__(self) -> None:
        _no_two_texts(self.segments)
        _no_orphan_of_an_open_call(self.segments)
        _require(
            self.agent is None or bool(re.fullmatch(r"[^\]\n]+", self.agent)), "invalid agent name"
        )
        _require(
            self.agent is None or not UNFIT.search(self.agent), "invalid character in an agent name"
        )

    @property
    def calls(self) -> tuple[Proposal, ...]:
        """The readable calls, in order, including the calls that others ran."""
        return tuple(segment for segment in self.segments if isinstance(segment, Proposal))

    @property
    def proposals(self) -> tuple[Proposal, ...]:
        """The readable calls on which the user decides, or decided, in order."""
        return tuple(call for call in self.calls if call.ran_by is None)


@frozen
class Exchange:
    """A question with its answers; the question is None only if the file starts with an answer."""

    question: Question | None
    answers: tuple[Answer, ...] = ()
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    derived: dict[str, Any] = field(default_factory=dict, init=False, compare=False, repr=False)
    """Values derived from this exchange, cached for as long as it exists; most never change."""

    def __post_init__(self) -> None:
        _require(
            self.question is not None or bool(self.answers),
            "an exchange needs a question or an answer",
        )


@frozen
class Transcript:
    """A whole chat file; `front_matter` is the raw YAML between its `---` lines."""

    exchanges: tuple[Exchange, ...] = ()
    preamble: tuple[Text | Note, ...] = ()
    front_matter: str | None = None
    problems: tuple[Problem, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        _no_two_texts(self.preamble)
        _require(
            all(e.question is not None for e in self.exchanges[1:]),
            "only the first exchange may lack a question",
        )
        _require(not UNFIT.search(self.front_matter or ""), "invalid character in the front matter")
