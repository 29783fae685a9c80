"""When a chat's document asks the buffer for its text, and when the known text suffices."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from parley.chat.edits import Edit
from parley.nvim.document import BufferDocument
from parley.nvim.editor import LATER_S, Editor
from parley.nvim.mirror import CURRENT_S, BufferText, Mirror

LINES = ["💬: q", "", "🤖:[A]", "", "said"]


class FakeEditor:
    """Answers like Lua for a buffer without other changes, and records the requests."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.asked = list[str]()
        self.tick = 3

    async def ask(self, what: str, *_: Any, on_reply: Callable[[Any], None]) -> Any:
        self.asked.append(what)
        if what == "append":
            return 0
        if what in ("apply", "open_stream"):
            self.tick += 1
            reply: dict[str, Any] = {"applied": True, "tick": self.tick, "anchor": 0}
        else:
            same = {"tick": self.tick, "since": self.tick, "count": len(LINES)}
            reply = {"change": same, "anchor": 0, "pinned": False}
        on_reply(reply)
        return reply

    def send(self, what: str, *_: Any) -> None:
        """Record a request that needs no answer."""
        self.asked.append(what)

    def tell(self, *_: Any) -> None:
        """Accept a notification, which needs no answer."""


def opened(
    clock: Callable[[], float] | None = None,
) -> tuple[FakeEditor, Mirror, BufferDocument]:
    """A document whose text has just arrived."""
    editor = FakeEditor()
    mirror = Mirror(clock or editor.loop.time)
    mirror.put(editor.tick, BufferText.of(LINES))
    return editor, mirror, BufferDocument(cast(Editor, editor), mirror, 1, 0)


@pytest.mark.parametrize(("age", "before"), [(0.0, []), (2 * CURRENT_S, ["read"])])
async def test_a_text_received_some_time_ago_is_requested_again_when_it_is_read(
    age: float, before: list[str]
) -> None:
    time = [0.0]
    editor, _, document = opened(lambda: time[0])
    time[0] += age
    assert list((await document.look()).lines) == LINES
    assert editor.asked == before


async def test_edits_apply_to_a_text_of_any_age_because_lua_compares_first() -> None:
    time = [0.0]
    editor, mirror, document = opened(lambda: time[0])
    time[0] += 2 * CURRENT_S
    await document.change(lambda _: [Edit(5, 5, ("more",))])
    assert editor.asked == ["apply"]
    assert list(mirror.text.lines) == [*LINES, "more"]


async def test_a_reply_and_its_first_text_are_one_request() -> None:
    editor, mirror, document = opened()
    await document.open_stream(lambda _: (Edit(5, 5, ("", "below")), 5))
    await document.append("first\nsecond")
    await document.settle()
    assert editor.asked == ["open_stream"]
    assert list(mirror.text.lines) == [*LINES, "first", "second", "below"]
    await document.append(" more")
    await document.settle()
    assert editor.asked == ["open_stream", "write", "append"]


async def test_a_first_text_whose_place_is_there_leaves_at_once() -> None:
    editor, _, document = opened()
    await document.open_stream(lambda _: (Edit(5, 5, ("", "below")), 5))
    await asyncio.sleep(2 * LATER_S)
    assert editor.asked == ["open_stream"]
    await document.append("first")
    assert editor.asked == ["open_stream", "write"]


async def test_changes_that_begin_together_are_one_request_with_the_place_for_the_reply() -> None:
    editor, mirror, document = opened()
    await document.begin(lambda s: [Edit(len(s.lines), len(s.lines), ("one",))])
    await document.begin(lambda s: [Edit(len(s.lines), len(s.lines), ("two",))])
    ahead = await document.read()
    await document.open_stream(lambda s: (Edit(len(s.lines), len(s.lines), ("",)), len(s.lines)))
    await document.begin(lambda s: [Edit(0, 1, ("💬: later",))])  # not before the reply's place
    await document.settle()
    assert editor.asked == ["open_stream", "apply"]
    assert ahead.lines == [*LINES, "one", "two"]
    assert list(mirror.text.lines) == ["💬: later", *LINES[1:], "one", "two", ""]


async def test_a_text_is_parsed_once_for_a_begun_change_and_its_arrival() -> None:
    _, mirror, document = opened()
    await document.begin(lambda _: [Edit(5, 5, ("more",))])
    ahead = (await document.read()).transcript
    await document.settle()
    assert mirror.text.transcript is ahead


async def test_begun_changes_are_made_again_for_a_text_that_has_changed() -> None:
    editor, mirror, document = opened()
    await document.look()
    await document.begin(lambda s: [Edit(len(s.lines), len(s.lines), ("end",))])
    editor.tick += 1
    mirror.put(editor.tick, BufferText.of([*LINES, "typed"]))
    await document.settle()
    assert list(mirror.text.lines) == [*LINES, "typed", "end"]
