"""Reports a running turn to a person at a terminal, to a pipe, or to a program.

Knows where each text is printed, but not how a turn runs. `report_for` chooses the report.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from parley import engine
from parley.chat.grammar import MARKERS
from parley.chat.transcript import Broken, Choice, Proposal, Result
from parley.cli.exits import COMPLETE, FAILED, STOPPED, WAITING
from parley.cli.terminal import complain, emit, plain, remark, say, say_line, screen, snake_case
from parley.models.events import Withdrawn
from parley.policy.doubts import caution
from parley.policy.status_texts import is_rate_limited, waiting_for
from parley.text import counted, legible

if TYPE_CHECKING:
    from parley.cli.terminal_rows import Pen
    from parley.display.summary import Chunks
    from parley.policy.previews import FilePreview
    from parley.tools.catalogue import Catalogue

CODES: dict[engine.EndKind, int] = {
    "complete": COMPLETE,
    "answered": COMPLETE,
    "waiting": WAITING,
    "stopped": STOPPED,
    "interrupted": FAILED,
    "nothing": FAILED,
}
"""The exit code for each end of a turn."""
WAITS = (
    "tool calls are waiting for your choice: --choose ya approves them, --choose yN declines them"
)
_CALL, _RESULT = MARKERS["proposal"].rstrip(":"), MARKERS["result"].rstrip(":")
_MOST_LINES: dict[str, int] = {"ok": 3, "refused": 3, "error": 12}
"""The maximum number of lines of a result on a terminal, by its status; the file contains all
lines."""


def report_for(*, as_json: bool) -> Report:
    """The report for the reader of this command's output."""
    if as_json:
        return JsonReport()
    return TerminalReport() if screen().is_terminal else Report()


def _waiting_calls(seen: engine.Observation) -> Iterator[tuple[Proposal | Broken, str, str]]:
    """Each waiting call, its full text in readable form, and a warning about it."""
    approvals = seen.situation.approvals
    for call in seen.undecided():
        if isinstance(call, Proposal):
            yield call, legible(f"{call.call.name} {call.call.arguments}"), caution(call, approvals)
        else:
            yield call, legible(call.text), ""


def _call_lines(seen: engine.Observation) -> Iterator[list[str]]:
    """The lines for each waiting call."""
    for call, text, note in _waiting_calls(seen):
        diffs = [legible(line) for change in _changes(call, seen) for line in _diff(change)]
        yield [f"{_CALL} {text}", *(f"   {line}" for line in [*diffs, *filter(None, [note])])]


def _diff(change: FilePreview) -> Sequence[str]:
    from parley.tools.line_diff import unified_diff

    return unified_diff(change.before, change.after, change.path, change.moved_to)


def _changes(call: Proposal | Broken, seen: engine.Observation) -> Sequence[FilePreview]:
    """The files that a call would change."""
    preview = None if isinstance(call, Broken) else seen.situation.approvals.preview(call)
    return preview.changes if preview else ()


class Report:
    """The report for a pipe: the answer as in the file, and the calls that run."""

    can_take_back = False
    """Whether text that was written can be replaced by other text."""

    def __init__(self) -> None:
        self._in_line = False
        self._is_below_row = False
        """Whether the last output is a call that others ran, whose result has not arrived."""
        self._is_held = False
        """Whether the turn waits for the rate limit."""
        self._names = dict[tuple[str, str], tuple[str, str]]()
        """Tool and server of each known call, by its id and arguments."""

    def text(self, piece: str) -> None:
        """Write a piece of the answer."""
        if piece:
            if self._is_below_row:
                self._is_below_row = False
                say("")
            self._in_line = not piece.endswith("\n")
            screen().stream(piece)

    def status(self, text: str) -> None:
        """Show the status."""
        screen().status(text)
        self._note_wait(text)

    def _note_wait(self, text: str) -> None:
        """Print one note for each wait for the rate limit, unless the status shows the wait."""
        is_held = is_rate_limited(text)
        if is_held and not self._is_held and not screen().shows_status:
            remark(f"{text.removesuffix('...')} (safety.rate_limit_per_minute)")
        self._is_held = is_held

    def on_event(self, what: engine.TurnEvent) -> None:
        """Report an event."""
        match what:
            case engine.Aside(text):
                remark(text)
            case engine.ServerWait(servers):
                screen().status(waiting_for(servers) if servers else "")
            case _ if not screen().is_quiet:
                self._on_call(what)
            case _:
                pass

    def _on_call(self, what: engine.TurnEvent) -> None:
        match what:
            case engine.CallBegan(proposal):
                self._write_call(proposal)
            case engine.CallEnded(proposal, result):
                self._write_result(proposal, result.text)
            case engine.CallRefused(proposal, result):
                self._write_call(proposal)
                self._write_result(proposal, result.body)
            case _:
                pass

    def _write_call(self, proposal: Proposal) -> None:
        self._begin_paragraph()
        by = f" (run by the {proposal.ran_by})" if proposal.ran_by else ""
        say_line(f"{_CALL} {proposal.call.name} {proposal.call.arguments}{by}")
        self._is_below_row = bool(proposal.ran_by)

    def _write_result(self, proposal: Proposal, text: str) -> None:
        """Write a result with its call's name, because several calls run at once."""
        say_line(f"{_RESULT} {proposal.call.name}")
        say(f"{text}\n")
        self._is_below_row = False

    def asking(self, calls: Sequence[Proposal], catalogue: Catalogue) -> None:
        """Prepare to ask the user about some calls, below the output so far."""
        known = [(call, tool) for call in calls if (tool := catalogue.get(call.call.name))]
        self._names.update((_key(call), (tool.name, tool.server)) for call, tool in known)
        self._end_line()

    def decided(self, calls: Sequence[Proposal], key: Choice) -> None:
        """Write the rows of calls on which the user has decided."""
        screen().record([self._row(replace(call, choice=key)) for call in calls])

    def _row(self, proposal: Proposal) -> str:
        from parley.cli.terminal_rows import fit
        from parley.display.summary import call_row

        row = call_row(proposal, self._names.get(_key(proposal), ()))
        return pen().write(fit(row, screen().width - 1))

    def waiting(self, seen: engine.Observation) -> None:
        """Write the waiting calls in full."""
        for lines in _call_lines(seen):
            self._begin_paragraph()
            for line in lines:
                say_line(line)

    def left(self, seen: engine.Observation) -> None:
        """Write the calls that the user left undecided."""
        self.waiting(seen)

    def end(self, end: engine.End) -> None:
        """Report how the turn ended."""
        self._end_line()
        _say_why(end)
        if end.kind == "waiting" and not end.message:
            screen().complain(f"parley: {WAITS}")

    def _begin_paragraph(self) -> None:
        self._end_line()
        say("")

    def _end_line(self) -> None:
        if self._in_line:
            say("")
        self._in_line = False


class SilentReport(Report):
    """The report if standard output has another use: waiting calls go to standard error."""

    can_take_back = True

    def text(self, piece: str) -> None:
        """Ignore the text, because the chat is written when it is complete."""

    def _on_call(self, what: engine.TurnEvent) -> None:
        """Ignore the call, because it is in the chat."""

    def waiting(self, seen: engine.Observation) -> None:
        """Print the waiting calls in full."""
        for line in (line for lines in _call_lines(seen) for line in lines):
            screen().complain(line)


class JsonReport(Report):
    """The report for a program: one object per line."""

    can_take_back = True

    def text(self, piece: str) -> None:
        """Ignore the text, because the pieces also arrive as events."""

    def status(self, text: str) -> None:
        """Report the status."""
        emit("status", text=text)

    def on_event(self, what: engine.TurnEvent) -> None:
        """Report an event."""
        if isinstance(what, engine.Aside):
            remark(what.text)
        else:
            emit(snake_case(type(what)), **plain(what))

    def waiting(self, seen: engine.Observation) -> None:
        """Report the waiting calls in full."""
        for call, text, note in _waiting_calls(seen):
            facts = plain(call.call) if isinstance(call, Proposal) else None
            changes = [
                {"path": change.path, "moved_to": change.moved_to, "diff": "\n".join(_diff(change))}
                for change in _changes(call, seen)
            ]
            emit("call_waiting", text=text, caution=note, call=facts, changes=changes)

    def end(self, end: engine.End) -> None:
        """Print the message of the turn's end; the exit code conveys the rest."""
        _say_why(end)


class TerminalReport(Report):
    """The report for a person: calls as rows, as in the editor, and the start of each result."""

    can_take_back = True

    def __init__(self) -> None:
        super().__init__()
        self._drawn = set[tuple[str, str]]()
        """The calls with rows on the terminal."""
        self._last = ""
        """The kind of the last output: text or a row."""

    def text(self, piece: str) -> None:
        """Write a piece of the answer."""
        if piece:
            self._apart("text")
            screen().stream(piece)

    def on_event(self, what: engine.TurnEvent) -> None:
        """Report an event; text that is void stays on the terminal, above a remark."""
        if isinstance(what, Withdrawn):
            screen().end_text()
            screen().complain("parley: the text above is void, because the reply broke off")
        super().on_event(what)

    def _on_call(self, what: engine.TurnEvent) -> None:
        match what:
            case engine.CallBegan(proposal, tool):
                self._names[_key(proposal)] = tool.name, tool.server
                if _key(proposal) not in self._drawn:
                    self._record([self._row(proposal)])
            case engine.CallEnded(proposal, result):
                self._record(self._result(proposal, result))
            case engine.CallRefused(proposal, result):
                self._record(self._result(proposal, result))
            case _:
                pass

    def asking(self, calls: Sequence[Proposal], catalogue: Catalogue) -> None:
        """Prepare to ask, and leave a blank line."""
        super().asking(calls, catalogue)
        self._apart("row")

    def decided(self, calls: Sequence[Proposal], key: Choice) -> None:
        """Write the calls' rows, and remember that they are on the terminal."""
        self._drawn.update(map(_key, calls))
        self._last = "row"
        super().decided(calls, key)

    def left(self, seen: engine.Observation) -> None:
        """Write only the calls' rows, because the user has already seen the calls."""
        self._record([self._row(call) for call in seen.undecided() if isinstance(call, Proposal)])

    def end(self, end: engine.End) -> None:
        """Report how the turn ended."""
        screen().end_text()
        super().end(end)

    def _record(self, rows: Sequence[str]) -> None:
        self._apart("row")
        screen().record(rows)

    def _apart(self, kind: str) -> None:
        """Leave a blank line between text and rows."""
        if self._last not in ("", kind):
            screen().end_text()
            say("")
        self._last = kind

    def _result(self, proposal: Proposal, result: Result) -> list[str]:
        from parley.cli.terminal_rows import fit
        from parley.display.diff_rows import made_files
        from parley.display.summary import SIGNS, call_row, outcome, shown_line

        made = made_files(replace(proposal, result=result))
        names = self._names.get(_key(proposal), ())
        row = call_row(proposal, names, made, is_whole=bool(made))
        head: Chunks = [(f"{SIGNS['result']} ", "ParleyResult"), *row[1:], outcome(result, row)]
        lines = result.text.rstrip("\n").split("\n")
        most = _MOST_LINES[result.status]
        body: list[Chunks] = [
            [("   ", ""), (shown_line(line), "ParleyHint", "")] for line in lines[:most]
        ]
        if len(lines) > most:
            body.append(
                [(f"   ⋮ {counted(len(lines) - most, 'more line')} in the chat file", "ParleyHint")]
            )
        width = screen().width - 1
        return [pen().write(fit(chunks, width)) for chunks in (head, *body)]


def _key(proposal: Proposal) -> tuple[str, str]:
    return proposal.call.id, proposal.call.arguments


def _say_why(end: engine.End) -> None:
    """Print the message of a turn's end, if there is one."""
    if end.message:
        (complain if CODES[end.kind] in (FAILED, STOPPED) else remark)(end.message)


def pen() -> Pen:
    """The pen for this terminal."""
    from parley.cli.terminal_rows import Pen

    return Pen(screen().draws, screen().has_colours)
