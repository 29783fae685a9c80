"""A fork: a chat down to the end of one of its exchanges, as the beginning of another chat. Pure.

Knows what of the text it holds; where its file is and what that is called, others know.
"""

from __future__ import annotations

from parley.chat.edits import LineDecoder, apply_edits, content_end, open_question
from parley.chat.head import put_value
from parley.chat.reader import parse_lines
from parley.chat.rounds import is_unfinished
from parley.chat.transcript import Exchange


def fork_lines(lines: LineDecoder, exchange: Exchange, source: str) -> list[str]:
    """The lines down to the end of an exchange; front matter names the file that they are from.

    Below a complete answer there is room for the next question. Raises ValueError where front matter cannot
    take the name.
    """
    above = list(lines[: content_end(lines, exchange.span)])
    transcript = parse_lines(above)
    *_, last = transcript.exchanges
    is_complete = bool(last.answers and last.answers[-1].segments) and not is_unfinished(last.answers[-1])
    below = [open_question(above, last)] if is_complete else []
    return apply_edits(above, [*put_value(above, transcript, "forked_from", source), *below])
