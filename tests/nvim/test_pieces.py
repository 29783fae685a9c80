"""Long texts enter a buffer in pieces. Most tests use a list as the editor."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import pairwise
from typing import Any, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from parley.nvim import stream
from parley.nvim.editor import Editor
from parley.nvim.mirror import Mirror
from parley.nvim.stream import MOST_AT_ONCE, BufferStream, pieces
from tests.nvim.harness import Child
from tests.nvim.test_edit import append, streaming

LINES = "some words of a line, as long as such lines are\n" * 100_000


class ListEditor(list[str]):
    """An editor that records written text, at no cost."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self.loop = loop

    async def ask(self, *question: Any, heed: Callable[[Any], None]) -> list[float]:
        self.append(question[2])
        return [0, 0]


def bounded(text: str, at_once: int, of_a_line: int) -> list[str]:
    """A text's pieces with other bounds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream, "MOST_AT_ONCE", at_once)
        patch.setattr(stream, "MOST_OF_A_LINE", of_a_line)
        return pieces(text)


async def test_a_long_text_is_written_in_pieces_of_whole_lines() -> None:
    asked = ListEditor(asyncio.get_running_loop())
    written = BufferStream(cast(Editor, asked), 1, Mirror(asked.loop.time))
    written.append(LINES)
    await written.settle()
    assert "".join(asked) == LINES
    assert len(LINES) / MOST_AT_ONCE <= len(asked) < len(LINES) / MOST_AT_ONCE + 3
    assert all(len(piece) <= MOST_AT_ONCE and piece.endswith("\n") for piece in asked)


async def test_short_texts_are_joined() -> None:
    asked = ListEditor(asyncio.get_running_loop())
    written = BufferStream(cast(Editor, asked), 1, Mirror(asked.loop.time))
    for _ in range(1000):
        written.append("word ")
    await written.settle()
    assert asked == ["word " * 1000]


@given(st.text("ab\n\\", max_size=200))
@example("x" * 100)
@example("\\" * 100)
@example("a\n" + "x" * 100 + "\nb\n")
def test_the_pieces_make_up_the_text_and_begin_a_line_or_far_inside_one(
    text: str,
) -> None:
    cut = bounded(text, 8, 16)
    assert "".join(cut) == text
    for before, after in pairwise(cut):
        assert after
        assert before.endswith("\n") or (len(before) == 16 and before.strip("\\"))
        assert len(before) <= 16


def test_a_text_in_pieces_is_the_text_in_the_buffer(plain: Child) -> None:
    text = "\\💬: no\n" * 400 + "x" * 9_000 + "\n💬\nend"
    handle, fresh = streaming(plain), True
    for piece in bounded(text, 500, 2000):
        assert "gone" not in append(plain, handle, piece, fresh=fresh)
        fresh = piece.endswith("\n")
    assert "\n".join(plain.lines()).endswith(text)
