"""`parley verify`: checks whether a chat still matches the requests that its models saw."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from parley.chat.reader import parse
from parley.chat.transcript import Transcript
from parley.cli.exits import COMPLETE, FAILED, MISSING
from parley.cli.show import look, onlooker
from parley.cli.terminal import complain, emit, say_line
from parley.engine import guidance
from parley.errors import ParleyError
from parley.models.fingerprint import header, request_digest
from parley.runtime.totals import deleted_note
from parley.storage.attachment_files import ChatAttachments
from parley.storage.content import text_of
from parley.storage.ledger import default_path, shell_ledger
from parley.text import one_line
from parley.verification import (
    LaterEdit,
    RequestRecord,
    Verification,
    settings_changes,
    verify_chat,
)


def verify(arguments: argparse.Namespace) -> int:
    """Report what was edited in a chat after a model saw it, and which settings changed."""
    path = arguments.file
    text = text_of(Path(path))  # standard input has no records
    transcript, (records, until) = parse(text), _records(path)
    if not transcript.exchanges:
        raise ParleyError(f"{path}: no question")
    if not records and any(exchange.answers for exchange in transcript.exchanges):
        complain(f"{path}: this machine has no record of a request from this chat")
        if until is not None:
            complain(deleted_note(until))
        return MISSING
    outcome = verify_chat(transcript, records)
    edits = [*outcome.edits, *_attachments(path, transcript)]
    changes = asyncio.run(_settings(text, arguments, records[-1].header)) if records else []
    _tell(path, edits, outcome, as_json=arguments.json)
    for change in changes:
        if arguments.json:
            emit("settings_change", message=change, since=records[-1].at)
        else:
            since = (
                datetime.fromtimestamp(records[-1].at, UTC).astimezone().isoformat(" ", "minutes")
            )
            say_line(f"settings, since {since}: {one_line(change)}")
    _conclude(outcome, until, as_json=arguments.json)
    if edits:
        return FAILED
    return MISSING if outcome.unknown else COMPLETE


def _records(path: str) -> tuple[list[RequestRecord], float | None]:
    """A chat's recorded requests, and the time of the newest deleted record, if any was deleted.

    Raises ParleyError if a record is damaged.
    """
    with shell_ledger(os.environ) as ledger:
        chat = ledger.chat(path) if ledger else None
        rows, until = (chat.requests(), chat.deleted_until()) if chat else ([], None)
    for row in rows:
        if request_digest(row.header, row.units) != row.digest:
            where = default_path(os.environ)
            raise ParleyError(f"the request record of {path} in {where} is damaged")
    records = [RequestRecord(row.at, json.loads(row.header), row.units, row.reply) for row in rows]
    return records, until


def _attachments(path: str, transcript: Transcript) -> list[LaterEdit]:
    """Attachments whose bytes have changed."""
    problems = ChatAttachments(path).problems(transcript)
    return [
        LaterEdit(
            problem.line + 1, _exchange_at(transcript, problem.line), "attachment", problem.message
        )
        for problem in problems
        if problem.severity != "hint"
    ]


def _exchange_at(transcript: Transcript, line: int) -> int:
    """The number, from 1, of the exchange that contains a line."""
    return sum(exchange.span.start <= line for exchange in transcript.exchanges)


async def _settings(text: str, arguments: argparse.Namespace, then: Any) -> list[str]:
    """The changes to the settings since the last recorded request."""
    async with onlooker() as app:
        # If the front matter named no agent, provider or model, the agent was either the default or
        # the user's choice: the record does not show which. A chosen agent ignores the front
        # matter's provider and model.
        is_free = not then["front"].keys() & {"agent", "provider", "model"}
        agent = then["agent"] if is_free and app.settings.named_agent(then["agent"]) else None
        _, seen = await look(app, text, arguments.file, agent, with_tools=arguments.tools)
        request = seen.request(tools_on=True)
        now = header(request, guidance(seen.catalogue)) | {"agent": seen.settings.agent}
    return settings_changes(then, now, has_tools=arguments.tools and bool(then["tools"]))


def _tell(path: str, edits: Sequence[LaterEdit], outcome: Verification, *, as_json: bool) -> None:
    for edit in edits:
        if as_json:
            emit("edit", file=path, **asdict(edit))
            continue
        where = f"exchange {edit.exchange}: " if edit.exchange else ""
        count = f" (different in {edit.requests} requests)" if edit.requests > 1 else ""
        say_line(f"{path}:{edit.line}: {where}{one_line(edit.text)}{count}")
    for exchange, line in outcome.unknown:
        if as_json:
            emit("unknown_reply", file=path, line=line, exchange=exchange)
        else:
            say_line(f"{path}:{line}: exchange {exchange}: no recorded request led to this reply")


def _conclude(outcome: Verification, until: float | None, *, as_json: bool) -> None:
    if as_json:
        deleted = {} if until is None else {"deleted_until": until}
        emit(
            "verification",
            requests=outcome.requests,
            same=outcome.same,
            unknown=len(outcome.unknown),
            **deleted,
        )
    else:
        if until is not None:
            say_line(deleted_note(until))
        say_line(f"requests that still match the chat: {outcome.same} of {outcome.requests}")
