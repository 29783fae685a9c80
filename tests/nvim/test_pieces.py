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
from parley.nvim.stream import (
    DUTY,
    FRAME_S,
    GATHER_S,
    MOST_AT_ONCE,
    UNANSWERED,
    BufferStream,
    pieces,
)
from tests.fake_time import run
from tests.nvim.harness import Child
from tests.nvim.test_edit import append, streaming

LINES = "some words of a line, as long as such lines are\n" * 100_000


class ListEditor(list[str]):
    """An editor that records written text, with its time, at a cost that it only reports."""

    def __init__(self, loop: asyncio.AbstractEventLoop, cost_ms: float = 0) -> None:
        super().__init__()
        self.loop = loop
        self.times = list[float]()
        self.requests = list[str]()
        """The names of the requests, of which only "append" is answered."""
        self._cost_ms = cost_ms

    async def ask(self, *question: Any, on_reply: Callable[[Any], None]) -> float:
        self.send(*question)
        return self._cost_ms

    def send(self, *question: Any) -> None:
        self.requests.append(question[0])
        if question[2]:
            self.append(question[2])
            self.times.append(self.loop.time())


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


async def test_a_timer_that_outlives_its_text_sends_nothing() -> None:
    asked = ListEditor(asyncio.get_running_loop())
    written = BufferStream(cast(Editor, asked), 1, Mirror(asked.loop.time))
    for text in ("one", " two", " three"):
        written.append(text)
        await asyncio.sleep(0)
    await written.settle()
    before = [*asked.requests]
    await asyncio.sleep(FRAME_S + 2 * GATHER_S)
    assert (asked.requests, "".join(asked)) == (before, "one two three")


async def test_short_texts_are_joined() -> None:
    asked = ListEditor(asyncio.get_running_loop())
    written = BufferStream(cast(Editor, asked), 1, Mirror(asked.loop.time))
    for _ in range(1000):
        written.append("word ")
    await written.settle()
    assert asked == ["word ", "word " * 999]


async def written_at(gaps_s: list[float], cost_ms: float = 0) -> tuple[ListEditor, list[float]]:
    """Write a letter after each gap; returns the editor, and how long each letter waited."""
    loop = asyncio.get_running_loop()
    asked = ListEditor(loop, cost_ms)
    written, arrivals = BufferStream(cast(Editor, asked), 1, Mirror(loop.time)), list[float]()
    for gap in gaps_s:
        await asyncio.sleep(gap)
        arrivals.append(loop.time())
        written.append("x")
    await asyncio.sleep(1)
    times = [at for at, piece in zip(asked.times, asked, strict=True) for _ in piece]
    await written.settle()
    return asked, [at - arrival for at, arrival in zip(times, arrivals, strict=True)]


def test_at_a_models_pace_most_text_is_written_when_it_arrives() -> None:
    asked, waits = run(written_at([0.01] * 200))
    assert sum(wait < 0.001 for wait in waits) > 110
    assert len(asked) <= 200 * 0.01 / FRAME_S + 2
    assert waits[0] < 0.001


@given(st.lists(st.sampled_from([0, 0.001, 0.005, 0.01, 0.015, 0.016, 0.02, 0.1]), min_size=1))
@example([0, 0])
def test_no_text_waits_for_long_and_pieces_are_a_frame_apart_on_average(gaps: list[float]) -> None:
    asked, waits = run(written_at(gaps))
    assert max(waits) <= FRAME_S + GATHER_S + 1e-6
    assert len(asked) <= (asked.times[-1] - asked.times[0]) / FRAME_S + 2


def test_a_slow_screen_receives_larger_pieces() -> None:
    slow_ms = 50
    asked, _ = run(written_at([0.01] * 200, slow_ms))
    between = [after - before for before, after in pairwise(asked.times[1:])]
    assert min(between) >= DUTY * slow_ms / 1000 - 1e-6
    assert (asked.requests[0], set(asked.requests[1:])) == ("write", {"append"})


def test_most_pieces_need_no_answer_but_all_are_answered_for_at_the_end() -> None:
    asked, _ = run(written_at([0.01] * 200))
    assert len(asked) / asked.requests.count("append") > UNANSWERED - 1
    unanswered = "".join("x" if name == "write" else " " for name in asked.requests).split()
    assert max(map(len, unanswered)) == UNANSWERED
    assert asked.requests[-1] == "append"


@pytest.mark.parametrize(
    ("told", "is_overtaken"),
    [
        (["status"], True),
        (["clear", "status"], True),
        (["folds"], False),
        (["status", "pin"], False),
    ],
)
async def test_a_piece_overtakes_only_what_neither_reads_nor_changes_text(
    told: list[str], is_overtaken: bool
) -> None:
    sent = list[Any]()

    class Nvim:
        loop = asyncio.get_running_loop()

        def exec_lua(self, _: str, first: Any, *more: Any, **options: Any) -> int:
            sent.append(first if isinstance(first, str) else [name for name, *_ in first])
            return 0

    editor = Editor(cast(Any, Nvim()))
    for name in told:
        editor.tell(name, 1)
    editor.send("write", 1, "text", True)
    await editor.ask("append", 1, "text", True)
    overtaking = ["write", "append"]
    assert sent == (overtaking if is_overtaken else [told, *overtaking])
    await editor.ask("read", 1)
    assert sent == [*([*overtaking, told] if is_overtaken else [told, *overtaking]), "read"]


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
        assert isinstance(append(plain, handle, piece, fresh=fresh), int | float)
        fresh = piece.endswith("\n")
    assert "\n".join(plain.lines()).endswith(text)
