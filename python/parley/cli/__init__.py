"""The command line: moves chats on without an editor, and shows what is in them.

Each command reads its arguments, calls one function, and returns an exit code; nothing is decided here.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from parley import __version__
from parley.chat.transcript import CHOICES
from parley.cli.inspect import check, export, log, messages, show
from parley.cli.respond import respond
from parley.cli.servers import convert, demo_server, tools, trust
from parley.cli.terminal import complain
from parley.errors import ParleyError

WIRES = ("openai", "openai-responses", "anthropic")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code says how it ended."""
    arguments = _parser().parse_args(argv)
    try:
        code: int = arguments.run(arguments)
    except ParleyError as error:
        complain(str(error))
        return 1
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="parley", description="A Markdown file is the conversation with a language model."
    )
    parser.add_argument("--version", action="version", version=f"parley {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
        text = (run.__doc__ or "").strip()
        added = commands.add_parser(name, help=text.split("\n")[0].rstrip("."), description=text)
        added.set_defaults(run=run)
        return added

    asked = command("respond", respond)
    asked.add_argument("file")
    asked.add_argument("--agent", help="the agent to talk to, instead of the file's")
    asked.add_argument(
        "--choose", action="append", default=[], choices=CHOICES, help="the n-th answers the n-th wait"
    )
    asked.add_argument("--json", action="store_true", help="one JSON object a line, for programs")
    shown = command("messages", messages)
    shown.add_argument("file")
    shown.add_argument("--agent", help="the agent whose request is shown")
    shown.add_argument("--provider", choices=WIRES)
    shown.add_argument("--tools", action="store_true", help="with tools: starts the servers")
    command("parse", show).add_argument("file")
    command("export", export).add_argument("file")
    command("check", check).add_argument("files", nargs="+", metavar="file")
    looked = command("log", log)
    looked.add_argument("file")
    looked.add_argument("--json", action="store_true", help="one JSON object a line")
    command("convert", convert).add_argument(
        "--to", required=True, choices=["openai", "openai-responses", "anthropic"]
    )
    command("tools", tools).add_argument("--json", action="store_true")
    command("trust", trust).add_argument("file")
    served = command("demo-server", demo_server)
    served.add_argument("--port", type=_port, default=0, help="0 takes a free one")
    served.add_argument("--pace", type=float, default=0.02, help="seconds between two pieces of a reply")
    return parser


def _port(text: str) -> int:
    """A port number, for argparse."""
    number = int(text)
    if not 0 <= number < 65536:
        raise ValueError("not a port")
    return number
