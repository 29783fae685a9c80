"""`parley messages`, `parse` and `log`: show a chat without changing it."""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parley import engine
from parley.chat import grammar
from parley.chat.reader import parse
from parley.chat.transcript import (
    NOWHERE,
    Attachment,
    Broken,
    Note,
    Orphan,
    Proposal,
    Result,
    Text,
    Thinking,
)
from parley.cli.check import problem_facts
from parley.cli.exits import COMPLETE
from parley.cli.terminal import (
    chat_path,
    check_agent,
    emit,
    read,
    remark,
    say_json,
    say_line,
    screen,
    settings,
    snake_case,
    warn_of_instructions,
)
from parley.errors import ParleyError
from parley.models.formats import format_for
from parley.models.request import Request, instruction_tokens
from parley.policy.approval import CallKey
from parley.policy.status_texts import waiting_for
from parley.runtime.totals import deleted_note, totals, totals_table
from parley.settings.values import Settings
from parley.storage.content import content
from parley.tools.catalogue import Catalogue, Tool
from parley.tools.tasks import TaskHandle

if TYPE_CHECKING:
    from parley.runtime.app import App

_PARTS = (Text, Note, Attachment, Thinking, Proposal, Orphan, Broken)


def messages(arguments: argparse.Namespace) -> int:
    """Print the request that a chat would send."""
    body = asyncio.run(_messages(arguments))
    say_json(body)
    return COMPLETE


async def _messages(arguments: argparse.Namespace) -> dict[str, Any]:
    from parley.providers.client import wire_format

    text = read(arguments.file)
    async with onlooker() as app:
        check_agent(arguments.agent, app.settings)
        agent = _agent_for(app.settings, arguments)
        ports, seen = await look(
            app, text, chat_path(arguments.file), agent, with_tools=arguments.tools
        )
        request = await engine.with_pictures(ports, seen.next_request())
        for name, tokens in instruction_tokens(request):
            remark(f"the system prompt contains instructions from {name}, {tokens}")
        warn_of_instructions(app, seen.snapshot.transcript)
        if arguments.provider:
            return format_for(arguments.provider).body(request)
        return wire_format(app.provider(request.provider), request).body(request)


@asynccontextmanager
async def onlooker() -> AsyncIterator[App]:
    """An application that sends nothing, and does not change the ledger."""
    from parley.runtime.app import App
    from parley.storage.ledger import LedgerFile, shell_ledger

    with shell_ledger(os.environ) as trust:
        app = App(settings(), os.environ, LedgerFile(None), trust=trust)
        try:
            yield app
        finally:
            await app.close()


async def look(
    app: App, text: str, path: str, agent: str | None, *, with_tools: bool
) -> tuple[engine.Ports, engine.Observation]:
    """Observe a chat as if for its next request; without tools, start no servers."""
    from parley.runtime.asyncio_ports import Callbacks
    from parley.storage.chat_file import TextDocument

    document = TextDocument(text, text.count("\n") + 1)
    ports = app.ports(document, path, Callbacks(on_event=_tell))
    if not with_tools:
        ports = replace(ports, tools=_NoTools())
    resolve = app.resolve(agent)
    if with_tools:
        return ports, await engine.observe(ports, resolve)
    return ports, await engine.observe(ports, lambda text: replace(resolve(text), skills=None))


def _tell(what: engine.TurnEvent) -> None:
    """Report, on standard error, awaited servers and anything missing from the request."""
    match what:
        case engine.ServerWait(servers):
            screen().status(waiting_for(servers) if servers else "")
        case engine.Aside(text):
            remark(text)
        case _:
            pass


class _NoTools:
    """A tool port without servers: Parley shows a request without starting any."""

    async def catalogue(self, narrow: engine.Narrow, calls: Sequence[str]) -> Catalogue:
        return Catalogue()

    def go_without(self) -> None:
        pass

    async def call(self, tool: Tool, key: CallKey, request: Request, task: TaskHandle) -> Result:
        raise ParleyError(f"{tool.name} is not called while a request is only shown")

    async def resources(self, server: str) -> Sequence[str]:
        return ()


def _agent_for(known: Settings, arguments: argparse.Namespace) -> str | None:
    """The named agent; if only a format is named, the first agent with this format."""
    if arguments.agent or not arguments.provider:
        return arguments.agent or None
    kind = format_for(arguments.provider).kind
    providers = ((agent, known.provider(agent.provider)) for agent in known.all_agents())
    return next(
        (agent.name for agent, provider in providers if provider and provider.kind == kind), None
    )


def show(arguments: argparse.Namespace) -> int:
    """Print a chat as JSON."""
    transcript = parse(read(arguments.file))
    problems = [problem_facts(problem) for problem in transcript.problems]
    say_json({"version": grammar.VERSION, **_tree(transcript), "problems": problems})
    return COMPLETE


def _tree(value: Any) -> Any:
    """A transcript value as plain JSON: its kind, its lines (counted from 1) and its fields."""
    if isinstance(value, tuple):
        return [_tree(item) for item in value]
    if not is_dataclass(value):
        return value
    kind = {"kind": snake_case(type(value))} if isinstance(value, _PARTS) else {}
    span = value.result.span if isinstance(value, Orphan) else getattr(value, "span", NOWHERE)
    lines = {} if span == NOWHERE else {"line": span.start + 1, "end_line": span.end}
    facts = {
        field.name: _tree(getattr(value, field.name)) for field in fields(value) if field.compare
    }
    if isinstance(value, Broken):
        facts["marker"] = facts.pop("kind")
    return {**kind, **lines, **facts}


def log(arguments: argparse.Namespace) -> int:
    """Print a chat's choices, calls, requests and totals."""
    from parley.storage.ledger import shell_ledger

    with shell_ledger(os.environ) as ledger:
        chat = ledger.chat(arguments.file) if ledger else None
        history, until = (chat.history(), chat.deleted_until()) if chat else ([], None)
    if not history and until is None:
        content(Path(arguments.file))  # report a mistyped name, but show a deleted chat's log
    for at, kind, facts in history:
        when = datetime.fromtimestamp(at, UTC).astimezone().isoformat(" ", "seconds")
        if arguments.json:
            emit("record", **{"at": at, "kind": kind, **facts})
        else:
            say_line(
                f"{when}  {kind:<8} "
                + "  ".join(f"{name}={_short(value)}" for name, value in facts.items())
            )
    added = totals(history)
    if arguments.json:
        deleted = {} if until is None else {"deleted_until": until}
        emit("totals", **added.table(), **deleted)
        return COMPLETE
    if until is not None:
        say_line(deleted_note(until))
    elif not history:
        say_line("No decisions or requests yet.")
    for line in ["", *totals_table(added)] if history else []:
        say_line(line)
    return COMPLETE


def _short(value: Any) -> str:
    """A record on one line, without counts that are zero."""
    if isinstance(value, dict):
        return ",".join(f"{name}:{count}" for name, count in value.items() if count)
    return str(value)
