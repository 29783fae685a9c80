"""`parley respond -`: continues a chat from standard input, and writes it to standard output.

Always writes the chat, unchanged if Parley sent nothing. Because there is no file, earlier
approvals do not exist, and nothing is recorded.
"""

from __future__ import annotations

import argparse
import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from parley import engine
from parley.cli.exits import USAGE
from parley.cli.report import Report, SilentReport
from parley.cli.respond import answering, application, work_in_file
from parley.cli.signals import ended_as_by_ctrl_c
from parley.cli.terminal import PIPE, complain, read, say, screen
from parley.storage.chat_file import Spelling, TextDocument, in_hand

if TYPE_CHECKING:
    from parley.runtime.app import App

_NO_FILE = "choices need a file"
_WAITS = (
    "tool calls are waiting for your choice, but choices need a file. "
    "Save this chat, then run: parley respond FILE"
)


def respond(arguments: argparse.Namespace) -> int:
    """Continue a chat from standard input to standard output."""
    if arguments.choose or arguments.json:
        why = (
            f"--choose: {_NO_FILE}"
            if arguments.choose
            else "--json: the output is already the chat"
        )
        complain(f"'respond -' does not accept {why}")
        return USAGE
    screen().is_quiet = arguments.quiet
    text = read(PIPE)
    document = TextDocument(text, in_hand(text))
    before = list(document.lines)
    try:
        with ended_as_by_ctrl_c():
            return asyncio.run(_respond(arguments, document))
    finally:
        say(text if document.lines == before else Spelling.of(text).text(document.lines), end="")


async def _respond(arguments: argparse.Namespace, document: TextDocument) -> int:
    answer = answering(arguments)

    async def work(app: App, ports: engine.Ports, report: Report) -> engine.End:
        end = await answer(app, ports, report)
        return replace(end, message=_WAITS) if end.kind == "waiting" and not end.message else end

    async def stopped(ports: engine.Ports) -> str:
        await engine.stopped(ports)
        return "stopped: the answer so far was written"

    async with application(has_file=False) as app:
        return await work_in_file(app, arguments, work, stopped, SilentReport(), document)
