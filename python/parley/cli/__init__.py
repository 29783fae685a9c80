"""The command line: moves chats on without an editor, and shows what is in them.

Each command reads its arguments, calls one function, and returns an exit code; nothing is decided here.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # of `typing`: nothing is imported before Ctrl-C is waited for
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

WIRES = ("openai", "openai-responses", "anthropic")
_CODES = """exit codes:
  0    done; of respond: the answer is complete
  1    an error, problems in a checked file, output that could not be written; of respond: no question
  2    wrong arguments
  3    respond: tool calls wait for a choice, go on with --choose
  4    respond: a limit stopped the turn
  130  Ctrl-C
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code says how it ended."""
    try:
        try:
            return _main(argv)
        finally:
            if argv is None:
                _end_quietly()
    except KeyboardInterrupt:
        return 130


def _main(argv: Sequence[str] | None) -> int:
    _fill_descriptors()
    from parley.cli.terminal import complain, open_screen
    from parley.errors import ParleyError

    screen, code = open_screen(), 1
    try:
        arguments = _parser().parse_args(argv)
        code = arguments.run(arguments)
    except ParleyError as error:
        complain(str(error))
    except SystemExit as end:  # argparse has said what is wrong, or helped
        code = end.code if isinstance(end.code, int) else 1
    except Exception:  # noqa: BLE001 - nothing is left above us to report it
        from traceback import format_exc

        for line in format_exc().splitlines():
            screen.complain(line)
        complain("this is an error in Parley: please report it with the lines above")
    except KeyboardInterrupt:
        code = 130
    return screen.end(code)


def _fill_descriptors() -> None:
    """Let closed descriptors 0, 1 and 2 lead nowhere, or a file that we open would be our output."""
    try:
        while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
            pass
        os.close(number)
    except OSError:
        return


def _end_quietly() -> None:
    """A Ctrl-C while the interpreter ends comes too late to be told."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _parser() -> argparse.ArgumentParser:
    import argparse

    from parley import __version__
    from parley.chat.transcript import CHOICES
    from parley.cli.inspect import check, export, log, messages, show
    from parley.cli.respond import respond
    from parley.cli.servers import convert, demo_server, tools, trust
    from parley.cli.terminal import screen

    class Parser(argparse.ArgumentParser):
        """Says what it says on the screen that everything goes through."""

        def _print_message(self, message: str, file: object = None) -> None:
            if file is sys.stdout:
                screen().say(message)
            else:
                for line in message.rstrip("\n").split("\n"):
                    screen().complain(line)

    parser = Parser(
        prog="parley",
        description="A Markdown file is the conversation with a language model.",
        epilog=_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
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
    trusted = command("trust", trust)
    trusted.add_argument("file")
    trusted.add_argument("--pin", action="store_true", help="with the programs of the project that it names")
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
