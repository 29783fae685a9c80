"""The text of a new chat, as `:ParleyChatNew` writes it in the editor; does not access files."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from parley.chat.edits import apply_edits
from parley.chat.head import put_value
from parley.chat.reader import parse
from parley.chat.transcript import Question
from parley.chat.writer import join_blocks, question_blocks

_NOTHING: Mapping[str, str] = MappingProxyType({})


def new_text(question: Question | None = None, keys: Mapping[str, str] = _NOTHING) -> str:
    """A chat with one question (empty by default) and with these keys in its front matter."""
    lines = ["---", 'topic: ""', "---", "", *join_blocks(question_blocks(question or Question()))]
    for key, value in keys.items():
        lines = apply_edits(lines, put_value(lines, parse("\n".join([*lines, ""])), key, value))
    return "\n".join([*lines, ""])
