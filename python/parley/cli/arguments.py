"""What may be typed behind `parley`: the commands, their arguments, and the help on them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import NoReturn

from parley import __version__
from parley.chat.transcript import CHOICES
from parley.cli.exits import USAGE, exit_codes
from parley.cli.inspect import check, export, log, messages, show
from parley.cli.respond import compact, respond
from parley.cli.servers import convert, demo_server, login, logout, tools, trust
from parley.cli.terminal import complain, screen
from parley.models.formats import options
from parley.policy.summaries import KEEP

_CHAT = "a chat"
_STRICT = "refuse, in the provider's words, what the provider would refuse"
_READ = "a chat; - for standard input"
_JSON = "print one JSON object a line, for programs"


class Parser(argparse.ArgumentParser):
    """Says what it says on the screen that everything goes through."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong with the arguments, and end the command."""
        if screen().as_json:
            complain(message)
            raise SystemExit(USAGE)
        super().error(message)

    def _print_message(self, message: str, file: object = None) -> None:
        if file is sys.stdout:
            screen().say(message)
            return
        for line in message.rstrip("\n").split("\n"):
            screen().complain(line)


def parser() -> Parser:
    """All commands; `run` of what is parsed carries out the one that was named."""
    root = Parser(
        prog="parley",
        description="A Markdown file is the conversation with a language model.",
        epilog=exit_codes(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    root.add_argument("--version", action="version", version=f"parley {__version__}")
    commands = root.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
        text = (run.__doc__ or "").strip()
        added: argparse.ArgumentParser = commands.add_parser(name, help=text.rstrip("."), description=text)
        added.set_defaults(run=run)
        return added

    _respond(command("respond", respond))
    _compact(command("compact", compact))
    _messages(command("messages", messages))
    command("parse", show).add_argument("file", help=_READ)
    command("export", export).add_argument("file", help=_READ)
    checked = command("check", check)
    checked.add_argument("files", nargs="+", metavar="file", help=_READ)
    checked.add_argument("--json", action="store_true", help=_JSON)
    history = command("log", log)
    history.add_argument("file", help=_CHAT)
    history.add_argument("--json", action="store_true", help=_JSON)
    formats = options()
    command("convert", convert).add_argument(
        "--to", required=True, choices=formats, metavar="FORMAT", help=", ".join(formats)
    )
    command("tools", tools).add_argument("--json", action="store_true", help=_JSON)
    for name, run in (("login", login), ("logout", logout)):
        command(name, run).add_argument("server", metavar="NAME", help="a server of the settings")
    trusted = command("trust", trust)
    trusted.add_argument("file", help="usually .mcp.json")
    trusted.add_argument("--pin", action="store_true", help="with the programs of the project that it names")
    served = command("demo-server", demo_server)
    served.add_argument("--port", type=_port, default=0, help="where to listen; without it on a free port")
    served.add_argument("--pace", type=float, default=0.02, help="seconds between two pieces of a reply")
    served.add_argument("--strict", action="store_true", help=_STRICT)
    return root


def _respond(command: argparse.ArgumentParser) -> None:
    command.add_argument("file", help=_CHAT)
    command.add_argument("--agent", metavar="NAME", help="the agent to talk to, instead of the chat's")
    command.add_argument(
        "--choose",
        action="append",
        default=[],
        choices=CHOICES,
        metavar="CHOICE",
        help=f"decide on calls that wait: {', '.join(CHOICES)}; given n times, the n-th is for the n-th wait",
    )
    without = (
        "ask also where a server is not ready in time, or fails: the model is told whose tools are missing"
    )
    command.add_argument("--without-missing", action="store_true", help=without)
    command.add_argument("--json", action="store_true", help=_JSON)


def _compact(command: argparse.ArgumentParser) -> None:
    command.add_argument("file", help=_CHAT)
    command.add_argument("--agent", metavar="NAME", help="the agent to talk to, instead of the chat's")
    command.add_argument(
        "-n",
        dest="keep",
        type=_count,
        default=KEEP,
        metavar="N",
        help=f"how many of the last exchanges are left as they are; {KEEP} without it",
    )
    command.add_argument("--json", action="store_true", help=_JSON)


def _messages(command: argparse.ArgumentParser) -> None:
    command.add_argument("file", help=_READ)
    command.add_argument("--agent", metavar="NAME", help="the agent whose request is printed")
    formats = options()
    command.add_argument(
        "--provider", choices=formats, metavar="FORMAT", help=f"the format to print: {', '.join(formats)}"
    )
    command.add_argument("--tools", action="store_true", help="start the MCP servers, print their tools too")


def _count(text: str) -> int:
    """A number of exchanges, for argparse."""
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise argparse.ArgumentTypeError("expected a number")
    return int(text)


def _port(text: str) -> int:
    """A port number, for argparse."""
    if not (text.isascii() and text.isdigit() and int(text[:6]) < 65536):
        raise argparse.ArgumentTypeError("expected a number from 0 to 65535")
    return int(text)
