"""A fork: a chat up to the end of one of its exchanges, as the beginning of another. Pure.

Knows which part of the text it contains, but not its file's place or name.
"""

from __future__ import annotations

from parley.chat.edits import LineDecoder, apply_edits, content_end, open_question
from parley.chat.head import put_value
from parley.chat.reader import parse_lines
from parley.chat.rounds import is_unfinished
from parley.chat.transcript import Exchange


def fork_lines(lines: LineDecoder, exchange: Exchange, source: str) -> list[str]:
    """The lines up to the end of an exchange; the front matter names the source file.

    Below a complete answer there is room for the next question. Raises ValueError if the front
    matter cannot hold the name.
    """
    above = list(lines[: content_end(lines, exchange.span)])
    transcript = parse_lines(above)
    *_, last = transcript.exchanges
    is_complete = bool(last.answers and last.answers[-1].segments) and not is_unfinished(
        last.answers[-1]
    )
    below = [open_question(above, last)] if is_complete else []
    return apply_edits(above, [*put_value(above, transcript, "forked_from", source), *below])
