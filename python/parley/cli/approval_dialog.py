"""Asks the user at a terminal about calls: draws the calls and reads six keys, as in the editor.

Knows what the terminal shows and what each key does. An approval counts only for calls that were
drawn in full, and for long enough; otherwise the engine warns first, and the next approval counts.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from parley import engine
from parley.chat.transcript import CHOICES, YES, Broken, Choice, Proposal
from parley.cli.keyboard import PASTED, Keyboard
from parley.cli.pager import Pager
from parley.cli.report import Report, pen
from parley.cli.terminal import in_the_shell, screen
from parley.cli.terminal_rows import fit, is_cut, markdown_rows, note_rows, rows
from parley.display.summary import Chunk
from parley.display.view import ChatView, call_drawing, details, meanings, prompt
from parley.frozen import frozen
from parley.policy.choice import UNREADABLE
from parley.policy.doubts import Seen, Sighting
from parley.settings.values import Keys
from parley.text import visible

_LEAVE = ("q", "interrupt", "end of input")
_MOVES = {"j": 1, "down": 1, "\t": 1, "k": -1, "up": -1}
_REASON = "reason (may be empty): "
_PASTED = "pasted text is not a choice: type the choice"
_LONGEST_REASON = 2000
_LEAST_WIDTH = 12

_READER_S = 0.1
"""Seconds to wait for the program that reads our pipe, which may still write our output to this
terminal.
"""

Row = list[Chunk]


class ApprovalDialog:
    """Asks the user at this terminal for all choices in one command."""

    def __init__(self, report: Report, definition: Callable[[str], str], least_s: float) -> None:
        """`definition` finds the tool definition with a digest; "" if it is unknown.

        A call must be on the screen for `least_s` seconds before its approval counts.
        """
        self._report = report
        self._least_s = least_s
        self._definition = definition
        self._keyboard = Keyboard(sys.stdin.fileno(), screen().terminal)

    async def decide(self, ports: engine.Ports, resolve: engine.Resolve) -> bool:
        """Ask until all calls are decided; False if the user leaves some undecided."""
        if not screen().is_terminal:
            await asyncio.sleep(_READER_S)
        dialog = _Dialog(self._keyboard, self._report, self._definition, self._least_s)
        with self._keyboard.open(dialog.redraw, dialog.stop, dialog.go_on):
            try:
                return await dialog.run(ports, resolve)
            finally:
                screen().ask([])


@frozen
class _Drawing:
    """A call's rows, in the short form and in the full form."""

    short: list[Row]
    full: list[Row]
    is_all: bool
    """Whether the full form shows the whole call."""

    def within(self, height: int) -> tuple[list[Row], bool]:
        """As many rows as fit, and whether these rows show the whole call."""
        if len(self.full) <= height:
            return self.full, self.is_all
        if height < len(self.short) + 2:
            return self.short, False
        row: Row = [(f"  ⋮ +{len(self.full) - height + 1} rows, K", "ParleyHint")]
        return [*self.full[: height - 1], row], False


@frozen
class _Area:
    """The drawn rows, the range of drawn calls, and the numbers of the calls drawn in full."""

    rows: list[Row]
    first: int
    last: int
    whole: list[int]


class _Watch:
    """Measures how long each call has been on the screen."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._before = dict[Sighting, float]()
        self._since = dict[Sighting, float]()

    def look(self, sightings: Iterable[Sighting]) -> None:
        """Record that only these calls are on the screen from now on."""
        now, here = self._now(), set(sightings)
        for gone in self._since.keys() - here:
            self._before[gone] = self._before.get(gone, 0.0) + now - self._since.pop(gone)
        self._since |= dict.fromkeys(here - self._since.keys(), now)

    def forget(self, sightings: Iterable[Sighting]) -> None:
        """Reset these sightings to zero."""
        for sighting in sightings:
            self._before.pop(sighting, None)
            self._since.pop(sighting, None)

    def seconds(self) -> dict[Sighting, float]:
        """How many seconds each sighting has been on the screen."""
        now = self._now()
        return self._before | {
            s: self._before.get(s, 0.0) + now - t for s, t in self._since.items()
        }


class _Dialog:
    """One wait for choices: the drawn calls and the typed keys."""

    def __init__(
        self, keyboard: Keyboard, report: Report, definition: Callable[[str], str], least_s: float
    ) -> None:
        self._keyboard = keyboard
        self._report = report
        self._definition = definition
        self._view: ChatView
        self._calls: Sequence[Proposal | Broken] = ()
        self._keys = Keys()
        self._current = 0
        self._least_s = least_s
        self._watch = _Watch()
        """Tracks each call that is drawn in full, or that a warning has told the user is not."""
        self._warned_of = set[Sighting]()
        self._message = ""
        self._prompt = ""
        """The prompt for a typed line; "" while the user makes a choice."""
        self._typed = ""
        self._pager: Pager | None = None

    async def run(self, ports: engine.Ports, resolve: engine.Resolve) -> bool:
        """Ask until all calls are decided; False if the user leaves some undecided."""
        while calls := await self._look(ports, resolve):
            self._keyboard.clear()  # keys pressed before the calls appeared do not count
            self.draw()
            key = await self._key()
            if key is None:
                return False
            reason = "" if key in YES else await self._line(_REASON)
            if reason is not None:
                await self._choose(ports, resolve, calls, key, reason)
        return True

    async def _look(
        self, ports: engine.Ports, resolve: engine.Resolve
    ) -> Sequence[Proposal | Broken]:
        """Read which calls are waiting now; the current position stays."""
        seen = await engine.observe(ports, resolve)
        self._calls = seen.undecided()
        self._view = ChatView(
            seen.snapshot.transcript, seen.catalogue, seen.view, previews=seen.previews
        )
        self._keys = replace(self._keys, scope=seen.settings.scope)
        self._current = min(self._current, max(len(self._calls) - 1, 0))
        if self._calls:
            readable = [call for call in self._calls if isinstance(call, Proposal)]
            self._report.asking(readable, seen.catalogue)
        return self._calls

    async def _choose(
        self,
        ports: engine.Ports,
        resolve: engine.Resolve,
        calls: Sequence[Proposal | Broken],
        key: Choice,
        reason: str,
    ) -> None:
        line, seen = calls[self._current].span.start, Seen(self._watch.seconds(), self._least_s)
        outcome = await engine.choose(ports, resolve, line, engine.Press(key, "key", reason, seen))
        self._message = in_the_shell(outcome.message)
        if outcome.doubts:
            doubtful = [doubt.proposal for doubt in outcome.doubts]
            self._current = next(n for n, call in enumerate(calls) if call in doubtful)
            area = self._area()
            await self._look(ports, resolve)
            drawn = calls[area.first : area.last]
            self._watch.forget(map(self._view.sighting, doubtful))
            self._warned_of |= {self._view.sighting(call) for call in doubtful if call in drawn}
        elif key in YES and outcome.decided:
            left = [call.span for call in await self._look(ports, resolve)]
            screen().ask([])
            self._report.decided(
                [c for c in calls if isinstance(c, Proposal) and c.span not in left], key
            )

    # --- Keys ---

    async def _key(self) -> Choice | None:
        """The user's choice; None if the user leaves."""
        while True:
            key = await self._keyboard.key()
            if self._typed and (
                choice := next((c for c in CHOICES if c == self._typed + key), None)
            ):
                self._typed = ""
                return choice
            if key in _LEAVE:
                return None
            self._typed = "y" if key == "y" else ""
            if key in _MOVES:
                self._current = (self._current + _MOVES[key]) % len(self._calls)
                self._message = ""
            elif key.isdigit() and 0 < int(key) <= len(self._calls):
                self._current = int(key) - 1
            elif key == "K":
                await self._show_all()
            elif key.startswith(PASTED):
                self._message = _PASTED
            if not self._typed or screen().draws:  # a plain terminal prints all rows again
                self.draw()

    async def _line(self, prompt: str) -> str | None:
        """A typed line; None if the user cancels it."""
        self._prompt, self._typed = prompt, ""
        try:
            while True:
                self.draw()
                match await self._keyboard.key():
                    case "enter":
                        return self._typed.strip()
                    case "interrupt" | "end of input" | "escape":
                        return None
                    case "backspace":
                        self._typed = self._typed[:-1]
                    case "erase line":
                        self._typed = ""
                    case str(key) if len(key) == 1 or key.startswith(PASTED):
                        words = key.removeprefix(PASTED).replace("\n", " ").replace("\r", " ")
                        text = "".join(filter(str.isprintable, words))
                        self._typed = (self._typed + text)[:_LONGEST_REASON]
        finally:
            self._prompt, self._typed = "", ""

    async def _show_all(self) -> None:
        call = self._calls[self._current]
        if isinstance(call, Broken):
            self._message = UNREADABLE
            return
        lapse = self._view.approvals.lapsed(call)
        before = self._definition(lapse.digest) if lapse else None
        tool = self._view.catalogue.get(call.call.name) if self._view.catalogue else None
        lines = details(call, tool, before, self._view.approvals.preview(call))
        write, sighting = pen().write, self._view.sighting(call)
        pager = Pager(
            self._keyboard,
            lambda width: [write(row) for row in markdown_rows(lines, width)],
            lambda: self._watch.look([sighting]),
        )
        self._watch.look([])
        self._pager = pager
        try:
            await pager.read()
        finally:
            self._pager = None

    # --- Drawing ---

    def redraw(self) -> None:
        """Draw again after the terminal's size has changed."""
        self._pager.draw() if self._pager else self.draw()

    def stop(self) -> None:
        """Let other programs use the terminal until `go_on`."""
        self._watch.look([])
        if self._pager:
            screen().turn_page(is_open=False)

    def go_on(self) -> None:
        """Draw again after other programs have written to the terminal."""
        screen().go_on()
        if self._pager:
            screen().turn_page(is_open=True)
        self.redraw()

    def draw(self) -> None:
        """Draw the calls and the prompt, and record which calls are drawn in full."""
        area = self._area()
        screen().ask(list(map(pen().write, area.rows)))
        whole = [call for number in area.whole if isinstance(call := self._calls[number], Proposal)]
        drawn = [call for call in self._calls[area.first : area.last] if isinstance(call, Proposal)]
        told = self._warned_of.intersection(map(self._view.sighting, drawn))
        self._watch.look({*map(self._view.sighting, whole), *told})

    def _area(self) -> _Area:
        """The area to draw. If some calls do not fit, most of the room is given to the current
        call.
        """
        width = max(screen().width - 1, _LEAST_WIDTH)
        foot = self._foot(width)
        drawings = [self._drawing(number, width) for number in range(len(self._calls))]
        room = max(screen().height - 1 - len(foot), 1)
        if sum(len(drawing.full) for drawing in drawings) <= room:
            first, last, spare = 0, len(drawings), room
        else:
            first, last, spare = _window(
                [len(drawing.short) for drawing in drawings], self._current, room
            )
        body, whole = dict[int, list[Row]](), list[int]()
        for number in sorted(range(first, last), key=lambda number: number != self._current):
            drawing = drawings[number]
            body[number], is_whole = drawing.within(len(drawing.short) + max(spare, 0))
            spare -= len(body[number]) - len(drawing.short)
            whole += [number] if is_whole else []
        above: list[Row] = [[(f"   ↑ {first} more", "ParleyHint")]] if first else []
        left = len(drawings) - last
        below: list[Row] = [[(f"   ↓ {left} more", "ParleyHint")]] if left else []
        calls = [row for number in range(first, last) for row in body[number]]
        area = [*above, *calls, *below, *foot]
        return _Area(area, first, last, whole if len(area) <= screen().height else [])

    def _drawing(self, number: int, width: int) -> _Drawing:
        drawn = call_drawing(self._view, self._calls[number], 1, 1)
        mark, margin = "", ""
        if len(self._calls) > 1:
            mark = f"{'▸' if number == self._current else ' '}{number + 1:>{len(str(len(self._calls)))}} "
            margin = " " * len(mark)
        chunks, cells = drawn["lines"][0], width - len(mark)
        notes = [row for note in drawn["notes"] for row in note_rows(note, cells)]
        blocks = [row for block in drawn["blocks"] for row in _block(block, cells)]
        short, full = fit(chunks, cells), rows(chunks, cells)

        def beside(lines: Sequence[Row]) -> list[Row]:
            marks = [mark, *[margin] * len(lines)]
            return [[(m, "ParleyPrompt"), *line] for m, line in zip(marks, lines, strict=False)]

        is_whole = not is_cut(chunks) and all(map(_is_whole, drawn["blocks"]))
        return _Drawing(beside([short, *notes]), beside([*full, *notes, *blocks]), is_whole)

    def _foot(self, width: int) -> list[Row]:
        """The message, the keys, and the typed text."""
        several = "".join([" · j/k another call"] if len(self._calls) > 1 else [])
        hint = f"{meanings(self._view, self._calls, self._keys)}{several} · q later"
        text = visible(self._message).replace("\n", " ")
        message = note_rows([(text, "ParleyNote", "")], width) if text else []
        asked = self._prompt or prompt(len(self._calls))
        typed = fit([(asked, "ParleyPrompt"), (visible(self._typed)[-width // 2 :], "")], width)
        return [*message, *_phrases(hint, width), typed]


def _window(heights: Sequence[int], current: int, room: int) -> tuple[int, int, int]:
    """The range of calls around the current call that fit, and the remaining room."""
    first, last, spare = current, current + 1, room - heights[current]

    def more(first: int, last: int) -> int:
        return (first > 0) + (last < len(heights))

    while first > 0 or last < len(heights):
        down, up = last < len(heights), first > 0
        if down and heights[last] + more(first, last + 1) <= spare:
            spare, last = spare - heights[last], last + 1
        elif up and heights[first - 1] + more(first - 1, last) <= spare:
            first, spare = first - 1, spare - heights[first - 1]
        else:
            break
    return first, last, spare - more(first, last)


def _block(block: Mapping[str, Any], width: int) -> Iterator[Row]:
    """The lines of a long argument, as in the editor."""
    yield fit(block["title"], width)
    for line in block["head"]:
        yield from rows(line, width)
    if gap := block["count"] - len(block["head"]) - len(block["tail"]):
        yield [(f"  ⋮ +{gap} lines, K", "ParleyHint")]
    for line in block["tail"]:
        yield from rows(line, width)


def _is_whole(block: Mapping[str, Any]) -> bool:
    lines = [*block["head"], *block["tail"]]
    return len(lines) == block["count"] and not any(map(is_cut, lines))


def _phrases(text: str, width: int) -> Iterator[Row]:
    """A text on as many rows as it needs, broken only at ` · `."""
    row = ""
    for part in text.split(" · "):
        longer = f"{row} · {part}" if row else part
        if row and len(longer) > width:
            yield [(row, "ParleyHint")]
            longer = part
        row = longer
    yield fit([(row, "ParleyHint", "")], width)
