"""Forks: copies of a chat up to the end of an exchange, which start a new chat. Pure.

Knows which part of the text a fork contains, but not the new file's name or folder.
"""

from __future__ import annotations

from parley.chat.edits import LineDecoder, apply_edits, content_end, open_question
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
