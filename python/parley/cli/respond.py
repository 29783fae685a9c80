"""`parley respond` and `parley compact`: continue a chat file as the editor would."""

from __future__ import annotations

import argparse
import asyncio
import os
import shlex
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from parley import engine
from parley.chat.transcript import YES, Transcript
from parley.cli.exits import MISSING, USAGE
from parley.cli.keyboard import hushed
from parley.cli.report import CODES, Report, report_for
from parley.cli.scripted_choices import Script, record_sightings
from parley.cli.signals import ended_as_by_ctrl_c, handlers, soon
from parley.cli.terminal import (
    PIPE,
    complain,
    remark,
    screen,
    settings,
    warn_of_instructions,
    warn_of_project,
)
from parley.errors import GoneError, ParleyError
from parley.policy.choice import answered_at, exchange_at, open_calls
from parley.policy.plan import AwaitQuestion, Complete, next_step
from parley.policy.topic import fill_topic
from parley.settings.readiness import Ready, Refusal, wanted_agent, wants_more
from parley.text import one_line

if TYPE_CHECKING:
    from parley.runtime.app import App
    from parley.settings.values import Settings
    from parley.storage.chat_file import TextDocument

OnStop: TypeAlias = Callable[[engine.Ports], Awaitable[str]]
Work: TypeAlias = Callable[["App", engine.Ports, Report], Awaitable[engine.End]]
Decide: TypeAlias = Callable[[engine.Ports, engine.Resolve], Awaitable[bool]]
"""Decides on waiting calls; returns False if it leaves them undecided."""

_WITHOUT = "--without-missing"


def respond(arguments: argparse.Namespace) -> int:
    """Answer the last question in a chat file, as the editor would."""
    if arguments.reason and not any(choice.key not in YES for choice in arguments.choose):
        complain("--reason needs a declined call: pass --choose yn or --choose yN")
        return USAGE

    return _run(arguments, answering(arguments), stopping(arguments))


def answering(arguments: argparse.Namespace) -> Work:
    """The work on a chat's last question: run turns until the answer is complete or calls stay
    undecided.
    """

    async def work(app: App, ports: engine.Ports, report: Report) -> engine.End:
        await app.models.prepare((await ports.document.read()).transcript, arguments.agent)
        resolve = app.resolve(arguments.agent)
        await check_tools(ports, resolve, arguments)
        script = Script(arguments.choose, arguments.reason)
        await script.check(ports)
        decide = None if arguments.choose else person(app, report, arguments.file)
        end = await turns(ports, resolve, decide or script.decide)
        await name_topic(app, ports, end)
        if end.kind == "waiting":
            seen = await engine.observe(ports, resolve)
            if decide:
                report.left(seen)
                end = replace(
                    end,
                    message=f"these calls are waiting. {go_on(arguments)} asks about them again",
                )
            else:
                write_waiting(ports, seen, report)
        if script.unused:
            complain(script.unused)
        return engine.End(end.kind, script.refusal) if script.refusal else end

    return work


def go_on(arguments: argparse.Namespace) -> str:
    """The command that continues the chat."""
    if command := getattr(arguments, "go_on", ""):
        return str(command)
    place = ["--exchange", str(arguments.exchange)] if arguments.exchange else []
    agent = ["--agent", arguments.agent] if arguments.again and arguments.agent else []
    return shlex.join(["parley", "respond", arguments.file, *place, *agent])


async def name_topic(app: App, ports: engine.Ports, end: engine.End) -> None:
    """If the settings ask for it, fill in the topic of a chat whose answer is complete."""
    if end.kind == "complete" and app.settings.fill_topic:
        await ports.document.change(lambda shot: fill_topic(shot.lines, shot.transcript))


def write_waiting(ports: engine.Ports, seen: engine.Observation, report: Report) -> None:
    """Print the waiting calls. If all output was written, record that the calls were printed."""
    report.waiting(seen)
    if screen().has_shown_all:
        record_sightings(ports, seen)


def stopping(arguments: argparse.Namespace) -> OnStop:
    """The function that stops an answer and returns the message for it."""

    async def stopped(ports: engine.Ports) -> str:
        if await engine.stopped(ports):
            return f"stopped: the answer so far is in {arguments.file}"
        before = "the new answer began" if arguments.again else "a request was sent"
        return f"stopped before {before}, so {arguments.file} is unchanged"

    return stopped


def compact(arguments: argparse.Namespace) -> int:
    """Have the model add a summary line to each of a chat's older answers."""

    async def work(app: App, ports: engine.Ports, report: Report) -> engine.End:
        return await engine.sum_up(ports, app.resolve(arguments.agent), arguments.keep)

    async def stopped(ports: engine.Ports) -> str:
        return f"stopped: the summaries so far are in {arguments.file}"

    return _run(arguments, work, stopped)


def _run(arguments: argparse.Namespace, work: Work, on_stop: OnStop) -> int:
    screen().is_quiet = arguments.quiet
    with ended_as_by_ctrl_c():
        return asyncio.run(_work(arguments, work, on_stop))


def undisturbed() -> AbstractContextManager[None]:
    """Keep typed text off the drawn rows.

    When the command continues after Ctrl-Z, draw the rows again, because the shell wrote over them.
    """
    if screen().draws and screen().is_terminal and screen().can_ask:  # a pager may read keys
        return hushed(sys.stdin.fileno(), screen().give_way, screen().go_on)
    return handlers({signal.SIGCONT: soon(asyncio.get_running_loop(), screen().go_on)})


async def _work(arguments: argparse.Namespace, work: Work, on_stop: OnStop) -> int:
    async with application() as app:
        return await work_in_file(app, arguments, work, on_stop, report_for(as_json=arguments.json))


@asynccontextmanager
async def application(*, has_file: bool = True) -> AsyncIterator[App]:
    """Open the application for turns in a shell; warn about the project's servers.

    If `has_file` is false, nothing is recorded.
    """
    from parley.runtime.app import App
    from parley.settings.load import settings_file
    from parley.storage.ledger import LedgerFile, default_path

    ledger = LedgerFile(default_path(os.environ), viewer="shell")
    own, trust = (ledger, None) if has_file else (LedgerFile(None), ledger)
    file = settings_file(os.environ)
    app = App(_frugal(settings(file)), os.environ, own, trust=trust, fault=file.consequence)
    try:
        warn_of_project(app)
        yield app
    finally:
        await app.close()


async def work_in_file(
    app: App,
    arguments: argparse.Namespace,
    work: Work,
    on_stop: OnStop,
    report: Report,
    document: TextDocument | None = None,
) -> int:
    """Work in the chat's file, or in a `document` without a file.

    If the work is stopped, `on_stop` leaves the document valid and returns a message.
    """
    from parley.storage.chat_file import FileDocument

    path = "" if document else arguments.file
    document = document or FileDocument(Path(arguments.file), on_append=report.text, on_note=remark)
    ports = await open_chat(app, arguments, document, path, report)
    try:
        with undisturbed():
            end = await work(app, ports, report)
    except MissingError as error:
        report.end(engine.End("nothing", str(error)))
        return MISSING
    except GoneError as error:
        raise ParleyError(str(error)) from error
    except asyncio.CancelledError:
        message = await on_stop(ports)
        screen().end_text()
        screen().status("")
        complain(message)
        raise
    finally:
        with suppress(ParleyError):  # the error is already reported
            await document.settle()
    report.end(end)
    return CODES[end.kind]


async def open_chat(
    app: App, arguments: argparse.Namespace, document: TextDocument, path: str, report: Report
) -> engine.Ports:
    """Open a chat; returns its turns' ports. Raises ParleyError if no turn may begin."""
    from parley.runtime.asyncio_ports import Callbacks

    transcript = (await document.read()).transcript
    begin(app, transcript, arguments)
    warn_of_instructions(app, transcript)
    name = app.agent_name(transcript, arguments.agent)
    if arguments.agent == app.agent_name(transcript, None):
        if wants_more(transcript):
            wish = one_line(wanted_agent(transcript))
            remark(f"without --agent, {arguments.file} may use {wish} from now on")
        app.confirm(transcript, path, is_shown=True)
    _agree_to_hidden(app, path, getattr(arguments, "hidden", ()))
    document.anchor = _line(transcript, document.anchor, arguments)
    observer = Callbacks(report.status, report.on_event)
    ports = app.ports(document, path, observer, can_take_back=report.can_take_back)
    return engine.regenerating(ports, name) if arguments.again else ports


def _line(transcript: Transcript, line: int, arguments: argparse.Namespace) -> int:
    """A line in the exchange to work on; `line` is in the exchange that the chat would continue.

    Raises ParleyError if the arguments name an exchange that does not exist.
    """
    number: int | None = arguments.exchange
    exchanges = transcript.exchanges
    if number and number > len(exchanges):
        raise ParleyError(
            f"{arguments.file}: there is no exchange {number}: it has {len(exchanges)}"
        )
    if number:
        return exchanges[number - 1].span.start
    at = exchange_at(transcript, line)
    if at is None or not arguments.again:
        return line
    chosen = answered_at(transcript, at)
    return line if chosen == at else exchanges[chosen].span.start


def _agree_to_hidden(app: App, chat: str, files: Sequence[str]) -> None:
    """Record that the user lets the chat's questions include these hidden files."""
    for file in files:
        app.ledger(chat).agree_to_read(os.path.realpath(file))


def _frugal(settings: Settings) -> Settings:
    """If the status is not shown, the settings without model-written status texts."""
    return (
        settings
        if screen().shows_status
        else replace(settings, status=replace(settings.status, llm=False))
    )


def begin(
    app: App, transcript: Transcript, arguments: argparse.Namespace, question: str | None = None
) -> None:
    """Print the notes before a turn. Raises ParleyError if no turn may begin.

    `question` is a question that is not yet in the chat.
    """
    match app.start(transcript, arguments.file, arguments.agent, question=question):
        case Ready(hint, previous):
            if hint:
                remark(f"{hint} in this shell")
            if previous and (question is not None or is_unanswered(transcript)):
                name = app.agent_name(transcript, arguments.agent)
                remark(f"{name} answers now; {previous} answered last (--agent {previous})")
        case Refusal("unconfirmed agent", wish):
            raise ParleyError(
                f"{arguments.file} was not created here and asks for {wish}. "
                f"To accept, pass --agent {app.agent_name(transcript, None)}"
            )
        case Refusal() as refusal:
            raise ParleyError(refusal.text("--agent NAME", f"{arguments.file}: "))


def is_unanswered(transcript: Transcript) -> bool:
    """Whether the last question has text but no answer, or its answer has open calls."""
    last = transcript.exchanges[-1]
    if last.answers:
        return bool(open_calls(last))
    return last.question is not None and bool(last.question.parts)


class MissingError(ParleyError):
    """Tools that the question may need are missing."""


async def check_tools(
    ports: engine.Ports, resolve: engine.Resolve, arguments: argparse.Namespace
) -> bool:
    """Whether there is work to do. Raises MissingError if the work may need missing tools."""
    seen = await engine.observe(ports, resolve)
    is_over = isinstance(next_step(seen.situation), AwaitQuestion | Complete)
    if seen.catalogue.missing and not is_over and not arguments.without_missing:
        servers = ", ".join(seen.catalogue.missing)
        raise MissingError(
            f"not asked: the tools of {servers} are missing. To ask without them, pass {_WITHOUT}"
        )
    return not is_over


async def turns(ports: engine.Ports, resolve: engine.Resolve, decide: Decide) -> engine.End:
    """Run turns until the answer is complete or calls stay undecided."""
    while (end := await engine.run_turn(ports, resolve)).kind == "waiting" and await decide(
        ports, resolve
    ):
        pass
    return end


def person(app: App, report: Report, file: str) -> Decide | None:
    """The function that asks the user at this terminal; None without a terminal."""
    if screen().as_json or not screen().can_ask or file == PIPE:
        return None
    from parley.cli.approval_dialog import ApprovalDialog

    return ApprovalDialog(report, app.ledger(file).definition, app.least_seen_s).decide
