"""Asks a model to rewrite lines of a file, and finds the new lines in its answer. Pure.

Knows the question's words and which answers are complete; does not know where the lines are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from parley.chat.code_blocks import code_blocks
from parley.chat.rounds import last_notice
from parley.chat.transcript import Exchange, Text
from parley.errors import ParleyError
from parley.policy.choice import open_calls
from parley.tools.indentation import indent_of
from parley.tools.nearest_places import elided_line

REQUEST = (
    "Rewrite these lines. Answer with exactly one code block, which replaces the lines as a whole: "
    "leave nothing out, and keep the indentation."
)

AnswerState: TypeAlias = Literal["complete", "waiting", "unfinished"]


def rewrite_question(instruction: str) -> str:
    """The question for an instruction; the lines follow below it."""
    return f"{instruction}\n\n{REQUEST}"


def answer_state(exchange: Exchange) -> AnswerState:
    """Whether an exchange has a complete answer, or its calls wait for the user."""
    if open_calls(exchange):
        return "waiting"
    is_complete = exchange.answers and not last_notice(exchange.answers[-1])
    return "complete" if is_complete else "unfinished"


def new_lines(exchange: Exchange, lines: Sequence[str], old: Sequence[str]) -> list[str]:
    """The lines that replace the `old` ones, from a complete answer in the lines of a chat file.

    Raises ParleyError if the answer does not have exactly one code block.
    """
    texts = (s.span for s in exchange.answers[-1].segments if isinstance(s, Text))
    blocks = [block for span in texts for block in code_blocks(lines[span.start : span.end])]
    if len(blocks) != 1:
        number = f"{len(blocks)} code blocks" if blocks else "no code block"
        raise ParleyError(
            f"the answer has {number}, but needs exactly one, so the lines stay as they are"
        )
    block = blocks[0].lines
    if placeholder := elided_line("\n".join(block), "\n".join(old)):
        raise ParleyError(
            f"the answer leaves out lines ({placeholder}), so the lines stay as they are"
        )
    return _indented(block, old)


def _indented(block: Sequence[str], old: Sequence[str]) -> list[str]:
    """The block, with the old lines' indentation if it has none at all."""
    indent = "" if _indent(block) else _indent(old)
    return [f"{indent}{line}" if line.strip() else line for line in block]


def _indent(lines: Sequence[str]) -> str:
    """The blanks with which all lines begin that are not blank."""
    return min((indent_of(line) for line in lines if line.strip()), key=len, default="")
