"""`parley replay`: replays a chat from its own replies and results, and finds differences."""

from __future__ import annotations

import argparse
import asyncio

from parley.chat.front_matter import trouble
from parley.chat.reader import parse
from parley.cli.exits import COMPLETE, FAILED
from parley.cli.show import onlooker
from parley.cli.terminal import chat_path, check_agent, emit, file_name, read, say, say_line
from parley.errors import ParleyError
from parley.models.request import Request
from parley.providers.client import wire_format
from parley.text import counted
from parley.verification import Replay, replay_chat


def replay(arguments: argparse.Namespace) -> int:
    """Replay a chat offline, with its recorded replies and results, and print any differences."""
    outcome = asyncio.run(_replay(arguments))
    if arguments.json:
        emit("replay", requests=outcome.requests, is_same=not outcome.diff, diff=outcome.diff)
    elif not arguments.requests:
        say(outcome.diff, end="")
        what = (
            "the replay produced a different chat"
            if outcome.diff
            else "the replay produced the same chat"
        )
        say_line(f"{what}, in {counted(outcome.requests, 'request')}")
    return FAILED if outcome.diff else COMPLETE


async def _replay(arguments: argparse.Namespace) -> Replay:
    transcript = parse(read(arguments.file))
    if not transcript.exchanges:
        raise ParleyError(f"{file_name(arguments.file)}: no question")
    if problem := trouble(transcript):
        raise ParleyError(f"{arguments.file}: {problem}")
    async with onlooker() as app:
        check_agent(arguments.agent, app.settings)

        def on_request(exchange: int, request: Request) -> None:
            if arguments.requests:
                body = wire_format(app.provider(request.provider), request).body(request)
                emit("request", exchange=exchange, provider=request.provider, body=body)

        read_attachments = app.attachments(chat_path(arguments.file)).read
        resolve = app.resolve(arguments.agent)
        return await replay_chat(transcript, resolve, app.ledger(""), read_attachments, on_request)
