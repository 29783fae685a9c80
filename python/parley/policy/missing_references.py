"""References that a question cannot include. The first attempt to ask the question reports them;
the next attempt proceeds. Pure.

Only an attempt with the same question text proceeds. The ledger keeps each report as a warning with
the reference, the question's digest and the reason.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from parley.chat.references import ReferenceText, name_of, rows
from parley.chat.transcript import Problem, Question, Transcript
from parley.text import one_line, visible

Lack: TypeAlias = tuple[str, str, str]
"""The reference, its question's digest, and why it cannot be included: a warning in the ledger."""

_KIND = "reference: "
_NEXT = "ask again to continue without it"


def lacks(question: Question, contents: Iterable[ReferenceText]) -> list[Lack]:
    """A question's references that cannot be included."""
    digest = _digest(question)
    return [
        (each.title, digest, f"{_KIND}{each.text}") for each in contents if each.kind == "missing"
    ]


def message(lacking: Sequence[Lack]) -> str:
    """The message about why Parley has not asked a question yet."""
    name, _, why = lacking[0]
    others = f" ({len(lacking) - 1} more)" if lacking[1:] else ""
    return f"not asked: {_words(name, why)}{others}; {_NEXT}"


def problems(transcript: Transcript, warnings: Iterable[tuple[str, str, str]]) -> Iterator[Problem]:
    """The problems for missing references in unanswered questions, each on its reference's line."""
    said = [warning for warning in warnings if warning[2].startswith(_KIND)]
    if not said:
        return
    for exchange in transcript.exchanges:
        if exchange.question is None or exchange.answers:
            continue
        digest = _digest(exchange.question)
        places = {visible(name_of(reference)): row for row, reference in rows(exchange.question)}
        for name, _, why in (lack for lack in said if lack[1] == digest):
            row = places.get(name, exchange.question.span.start)
            yield Problem(row, 0, "error", f"{_words(name, why)}; {_NEXT}")


def _words(name: str, why: str) -> str:
    return f"@@{one_line(name)}@@: {one_line(why.removeprefix(_KIND))}"


def _digest(question: Question) -> str:
    return hashlib.sha256(question.text.encode("utf-8", "surrogatepass")).hexdigest()
