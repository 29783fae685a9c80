"""`parley respond` and `parley compact`: move a chat file on as the editor would."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from parley import engine
from parley.chat.grammar import MARKERS
from parley.chat.transcript import Proposal, Transcript
from parley.cli.exits import COMPLETE, FAILED, MISSING, STOPPED, WAITING
from parley.cli.terminal import (
    complain,
    emit,
    plain,
    remark,
    say,
    say_line,
    screen,
    settings,
    snake_case,
    warn_of_project,
)
from parley.errors import GoneError, ParleyError
from parley.policy.doubts import caution
from parley.policy.plan import AwaitQuestion, Complete, next_step
from parley.policy.status import waiting_for
from parley.policy.topic import fill_topic
from parley.settings.start import Ready, Refusal
from parley.text import legible

if TYPE_CHECKING:
    from parley.runtime.app import App

OnStop: TypeAlias = Callable[[engine.Ports], Awaitable[str]]
Work: TypeAlias = Callable[["App", engine.Ports, "_Report"], Awaitable[engine.End]]

_WITHOUT = "--without-missing"
_CALL, _RESULT = MARKERS["proposal"].rstrip(":"), MARKERS["result"].rstrip(":")
_EXITS: dict[engine.EndKind, int] = {
    "complete": COMPLETE,
    "answered": COMPLETE,
    "waiting": WAITING,
    "stopped": STOPPED,
    "interrupted": FAILED,
    "nothing": FAILED,
}


def respond(arguments: argparse.Namespace) -> int:
    """Answer the last question of a chat, in its file, as the editor would."""

    async def work(app: App, ports: engine.Ports, report: _Report) -> engine.End:
        resolve = app.resolve(arguments.agent)
        if not arguments.without_missing and (missing := await _missing(ports, resolve)):
            raise _MissingError(
                f"not asked: the tools of {missing} are missing; {_WITHOUT} asks without them"
            )
        end = await _turns(ports, resolve, list(arguments.choose))
        if end.kind == "complete" and app.settings.fill_topic:
            await ports.document.change(lambda shot: fill_topic(shot.lines, shot.transcript))
        if end.kind == "waiting":
            report.waiting(await engine.observe(ports, resolve))
        return end

    async def stopped(ports: engine.Ports) -> str:
        if await engine.stopped(ports):
            return f"stopped: what was said so far is in {arguments.file}"
        return f"nothing was asked yet: {arguments.file} is as it was"

    return _run(arguments, work, stopped)


def compact(arguments: argparse.Namespace) -> int:
    """Have the model sum up older exchanges of a chat, each in a line of its answer."""

    async def work(app: App, ports: engine.Ports, report: _Report) -> engine.End:
        return await engine.sum_up(ports, app.resolve(arguments.agent), arguments.keep)

    async def stopped(ports: engine.Ports) -> str:
        return f"stopped: what was summed up so far is in {arguments.file}"

    return _run(arguments, work, stopped)


def _run(arguments: argparse.Namespace, work: Work, on_stop: OnStop) -> int:
    screen().needs_output = arguments.json  # else the answer is in the file
    with _ended_as_by_ctrl_c():
        return asyncio.run(_work(arguments, work, on_stop))


@contextmanager
def _ended_as_by_ctrl_c() -> Iterator[None]:
    """When the terminal goes or somebody ends us, what was said so far stays, as it does after Ctrl-C."""
    ends = [
        number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) == signal.SIG_DFL
    ]
    for number in ends:
        signal.signal(number, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        yield
    finally:
        for number in ends:
            signal.signal(number, signal.SIG_DFL)


async def _work(arguments: argparse.Namespace, work: Work, on_stop: OnStop) -> int:
    """Do the work in the chat's file; `on_stop` leaves it valid if that is stopped, and says so."""
    from parley.runtime.app import App
    from parley.storage.ledger import LedgerFile, default_path

    app = App(settings(), os.environ, LedgerFile(default_path(os.environ), viewer="shell"))
    try:
        return await _work_with(app, arguments, work, on_stop)
    finally:
        await app.close()


async def _work_with(app: App, arguments: argparse.Namespace, work: Work, on_stop: OnStop) -> int:
    from parley.runtime.tasks import Callbacks
    from parley.storage.chat_file import FileDocument

    warn_of_project(app)
    report = _Report(arguments.json)
    document = FileDocument(Path(arguments.file), on_append=report.text, on_note=remark)
    transcript = (await document.read()).transcript
    _begin(app, transcript, arguments)
    if arguments.agent == app.agent_name(transcript, None):
        app.confirm(transcript, arguments.file)
    ports = app.ports(document, arguments.file, Callbacks(report.status, report.on_event))
    try:
        end = await work(app, ports, report)
    except _MissingError as error:
        report.end(engine.End("nothing", str(error)))
        return MISSING
    except GoneError as error:
        raise ParleyError(str(error)) from error
    except asyncio.CancelledError:
        complain(await on_stop(ports))
        raise
    finally:
        with suppress(ParleyError):  # whatever went wrong was told
            await document.settle()
    report.end(end)
    return _EXITS[end.kind]


def _begin(app: App, transcript: Transcript, arguments: argparse.Namespace) -> None:
    """Say what is to be known before a turn. Raises ParleyError where none may begin."""
    match app.start(transcript, arguments.file, arguments.agent):
        case Ready(hint):
            if hint:
                remark(f"{hint} in this shell")
        case Refusal("unconfirmed agent", wish):
            raise ParleyError(
                f"{arguments.file} was not made here and asks for {wish}: if that is what you want, "
                f"say --agent {app.agent_name(transcript, None)}"
            )
        case Refusal("unknown agent", problem):
            raise ParleyError(f"{arguments.file}: {problem} (--agent NAME)")
        case Refusal("broken front matter", problem):
            raise ParleyError(f"{arguments.file}: {problem}")
        case Refusal(_, problem):
            raise ParleyError(problem)


class _MissingError(ParleyError):
    """Tools are missing that the question may need."""


async def _missing(ports: engine.Ports, resolve: engine.Resolve) -> str:
    """The servers whose tools are missing where the next step may need them; "" for none."""
    seen = await engine.observe(ports, resolve)
    is_over = isinstance(next_step(seen.situation), AwaitQuestion | Complete)
    return "" if is_over else ", ".join(seen.catalogue.missing)


async def _turns(ports: engine.Ports, resolve: engine.Resolve, choices: list[Any]) -> engine.End:
    """Turns until all is said, until a choice is wanted and none is left, or until one is not taken.

    What is said then is to be read before the next choice: that takes another command.
    """
    while (end := await engine.run_turn(ports, resolve)).kind == "waiting" and choices:
        line = (await engine.observe(ports, resolve)).undecided()[0].span.start
        outcome = await engine.choose(ports, resolve, line, choices.pop(0), "command")
        if outcome.doubts:
            return engine.End("waiting", outcome.message)
        if outcome.message:
            remark(outcome.message)
    return end


class _Report:
    """The report of a running turn to a person, or with `--json` to a program."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._in_line = False

    def text(self, piece: str) -> None:
        if piece and not self._as_json:
            self._in_line = not piece.endswith("\n")
            screen().stream(piece)

    def status(self, text: str) -> None:
        if self._as_json:
            emit("status", text=text)
        else:
            screen().status(text)

    def on_event(self, what: engine.TurnEvent) -> None:
        if self._as_json and not isinstance(what, engine.Aside):
            emit(snake_case(type(what)), **plain(what))
            return
        match what:
            case engine.CallBegan(proposal, tool):
                self._begin_paragraph()
                say_line(f"{_CALL} {tool.server}/{tool.name} {proposal.call.arguments}")
            case engine.CallEnded(_, result):
                say(f"{_RESULT} {result.text}\n")
            case engine.Aside(text):
                remark(text)
            case engine.ServerWait(servers):
                screen().status(waiting_for(servers) if servers else "")
            case engine.CallRefused(proposal, result):
                self._begin_paragraph()
                say_line(f"{_CALL} {proposal.call.name} {proposal.call.arguments}")
                say(f"{_RESULT} {result.body}\n")
            case _:
                pass

    def waiting(self, seen: engine.Observation) -> None:
        approvals = seen.situation.approvals
        for call in seen.undecided():
            text = f"{call.call.name} {call.call.arguments}" if isinstance(call, Proposal) else call.text
            note = caution(call, approvals) if isinstance(call, Proposal) else ""
            if self._as_json:
                facts = plain(call.call) if isinstance(call, Proposal) else None
                emit("call_waiting", text=legible(text), caution=note, call=facts)
                continue
            self._begin_paragraph()
            say_line(f"{_CALL} {legible(text)}")
            if note:
                say_line(f"   {note}")

    def end(self, end: engine.End) -> None:
        self._end_line()
        if end.message:
            (complain if _EXITS[end.kind] in (FAILED, STOPPED) else remark)(end.message)
        elif end.kind == "waiting" and not self._as_json:
            remark("tool calls wait for your choice: --choose ya approves them, --choose yN refuses them")

    def _begin_paragraph(self) -> None:
        self._end_line()
        say("")

    def _end_line(self) -> None:
        if self._in_line:
            say("")
        self._in_line = False
