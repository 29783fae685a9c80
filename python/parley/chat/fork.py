"""Forks: copies of a chat up to the end of an exchange, which start a new chat. Pure.

Knows which part of the text a fork contains, but not the new file's name or folder.
"""

from __future__ import annotations

from parley.chat.edits import (
    Edit,
    LineDecoder,
    apply_edits,
    content_end,
    empty_answer,
    open_question,
)
from parley.chat.front_matter import read_front_matter
from parley.chat.head import put_value
from parley.chat.reader import parse_lines
from parley.chat.rounds import is_unfinished
from parley.chat.transcript import Exchange


def fork_lines(lines: LineDecoder, exchange: Exchange, source: str) -> list[str]:
    """Copy the lines up to the end of an exchange, and record the source file in the front matter.

    Adds an empty question below a complete answer. Raises ValueError if the name cannot be set in
    the front matter.
    """
    above = list(lines[: content_end(lines, exchange.span)])
    transcript = parse_lines(above)
    *_, last = transcript.exchanges
    is_complete = bool(last.answers and last.answers[-1].segments) and not is_unfinished(
        last.answers[-1]
    )
    below = [open_question(above, last)] if is_complete else []
    return apply_edits(above, [*put_value(above, transcript, "forked_from", source), *below])


def fork_for(lines: LineDecoder, exchange: Exchange, source: str, agent: str) -> list[str]:
    """Copy the lines up to an exchange's question, for an answer by this agent.

    The front matter names the source file and the agent. It does not name the agent if it also
    names a provider or a model, because these would then apply to that agent. If the question has
    an answer, an empty answer stays in its place, because the question already contains its
    references' text. Raises ValueError if the front matter cannot be set.
    """
    above = list(lines[: content_end(lines, exchange.span)])
    answers = parse_lines(above).exchanges[-1].answers
    fork = apply_edits(above, [empty_answer(above, answers[-1], agent)] if answers else [])
    keys = read_front_matter(parse_lines(fork).front_matter).keys
    fork = _with(fork, "forked_from", source)
    return fork if {"provider", "model"} & keys.keys() else _with(fork, "agent", agent)


def _with(lines: list[str], key: str, value: str) -> list[str]:
    """The lines with a key in the front matter."""
    edits: list[Edit] = put_value(lines, parse_lines(lines), key, value)
    return apply_edits(lines, edits)
