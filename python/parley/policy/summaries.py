"""The `📝:` lines that are missing in older answers: which exchanges need a summary, and how to ask
a model for it.

Knows the texts, but not which model is asked, or when.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from parley.chat.edits import Edit, append_segments
from parley.chat.grammar import SUMMARY, fit
from parley.chat.history import Turn, UserTurn, shortened, whole
from parley.chat.omissions import cut
from parley.chat.rounds import last_notice, rounds
from parley.chat.transcript import Exchange, Text, Transcript
from parley.text import one_line

KEEP = 3
"""How many of the last exchanges need no summary."""
_LONGEST = 600
_LONGEST_TEXT = 16_000

_PROMPT = (
    "Here is one exchange of a longer conversation between a user and an "
    "assistant.\n\n{exchange}\n\n"
    "Sum it up in one line of at most 50 words, in the language of the question: what was "
    "asked, what was "
    "found out or decided, and the names and values that may matter later. Only return that line."
)


def unsummed(transcript: Transcript, keep: int) -> tuple[Exchange, ...]:
    """The exchanges before the last `keep` that have a complete answer and no summary.

    A last question without text does not count.
    """
    exchanges = [
        one for one in transcript.exchanges if one.answers or (one.question and one.question.text)
    ]
    older = exchanges[: max(len(exchanges) - keep, 0)]
    return tuple(
        exchange for exchange in older if not shortened(exchange) and _is_complete(exchange)
    )


def _is_complete(exchange: Exchange) -> bool:
    """Whether the answer ends in text; otherwise, a summary would make it look complete."""
    if not exchange.answers or last_notice(exchange.answers[-1]):
        return False
    replies = rounds(exchange.answers[-1])
    has_text = bool(replies) and any(isinstance(segment, Text) for segment in replies[-1].segments)
    return has_text and replies[-1].is_over and not replies[-1].proposals and not replies[-1].broken


def summary_prompt(exchange: Exchange) -> str:
    """The prompt that asks a model for a summary."""
    parts = (part for turn in whole(exchange, is_answered=False) for part in _parts(turn))
    return _PROMPT.format(exchange="\n\n".join(parts))


def _parts(turn: Turn) -> Iterator[str]:
    if isinstance(turn, UserTurn):
        yield f"User:\n{cut(turn.text, _LONGEST_TEXT)}"
        return
    if turn.text:
        yield f"Assistant:\n{cut(turn.text, _LONGEST_TEXT)}"
    for outcome in turn.calls:
        arguments = cut(outcome.call.arguments, _LONGEST_TEXT)
        yield (
            f"Tool {one_line(outcome.call.name)} "
            f"{arguments}:\n{cut(outcome.content, _LONGEST_TEXT)}"
        )


def summary_line(reply: str) -> str:
    """A model's reply as a one-line summary; "" if the reply is empty."""
    lines = [" ".join(one_line(line).split()) for line in fit(reply).split("\n")]
    marked = (line.removeprefix(SUMMARY).strip() for line in lines if line.startswith(SUMMARY))
    text = next(marked, "") or " ".join(filter(None, lines))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST].rstrip()}…"


def put_summary(
    lines: Sequence[str], transcript: Transcript, exchange: Exchange, summary: str
) -> list[Edit]:
    """The edit that adds a summary to an exchange's answer; none if the exchange has changed."""
    now = next((each for each in transcript.exchanges if each == exchange), None)
    return [append_segments(lines, now.answers[-1], [Text(f"{SUMMARY} {summary}")])] if now else []
