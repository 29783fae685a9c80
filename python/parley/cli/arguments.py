"""The command line's grammar: the commands, their arguments and their help.

The general help does not import the commands. A command's code, and the values that its arguments
need, are imported only when the user enters the command.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

from parley import __version__
from parley.cli.exits import USAGE, exit_codes
from parley.cli.terminal import complain, screen
from parley.frozen import frozen

if TYPE_CHECKING:
    from parley.cli.scripted_choices import ScriptedChoice

_CHAT = "a chat"
_READ = "a chat; - for standard input"
SHELLS = ("bash", "zsh", "fish")
"""The shells with a completion script."""
_JSON = "print one JSON object per line, for programs"
_QUIET = "print only the answer and errors"
_WITHOUT = (
    "ask even if a server fails or is not ready in time; Parley tells the model which servers' "
    "tools are missing"
)
_HIDDEN = (
    "a hidden file that the chat's questions may include from now on, if they refer to it; may be "
    "repeated"
)
_AGENT = "the agent to answer, instead of the chat's"


class Parser(argparse.ArgumentParser):
    """Prints through the screen, and adds its arguments only when it is used."""

    def __init__(
        self, *rest: Any, fill: Callable[[Parser], None] = lambda _: None, **options: Any
    ) -> None:
        options.setdefault("allow_abbrev", False)  # the screen recognizes only the full `--json`
        super().__init__(*rest, **options)
        self.color = False  # Python 3.14 and later: the screen would escape the colour codes
        self._fill: Callable[[Parser], None] | None = fill
        self.commands = dict[str, Parser]()

    @property
    def arguments(self) -> list[argparse.Action]:
        """The arguments, except `--help`, commands and hidden ones."""
        self.fill()
        every = [action for action in self._actions if action.nargs != argparse.PARSER]
        return [
            action for action in every if action.dest != "help" and action.help != argparse.SUPPRESS
        ]

    def fill(self) -> None:
        """Add the arguments, unless they have been added."""
        fill, self._fill = self._fill, None
        if fill:
            fill(self)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse arguments like argparse; each command reports its own unknown arguments."""
        self.fill()
        known, rest = super().parse_known_args(args, namespace)
        if rest and not self.commands:
            self.error(f"unrecognized arguments: {' '.join(rest)}")
        return known, rest

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if self.commands and value not in self.commands:
            from parley.tables import did_you_mean

            hint = did_you_mean(value, self.commands) or "; `parley help` lists them"
            self.error(f"there is no command '{value}'{hint}")
        super()._check_value(action, value)

    def error(self, message: str) -> NoReturn:
        """Report wrong arguments, and exit."""
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


@frozen
class Command:
    """A command: its function, named `module:name` in this room, and its help.

    The help is the first line of the function's docstring.
    """

    function: str
    help: str
    fill: Callable[[Parser], None]

    def run(self, arguments: argparse.Namespace) -> int:
        """Run the command; returns its exit code."""
        return int(self.load()(arguments))

    def load(self) -> Callable[[argparse.Namespace], int]:
        """Import and return the function."""
        module, _, name = self.function.partition(":")
        function: Callable[[argparse.Namespace], int] = getattr(
            import_module(f"parley.cli.{module}"), name
        )
        return function


def parser() -> Parser:
    """The parser for all commands; `run` in the parsed arguments runs the named command."""
    root = Parser(
        prog="parley",
        description="A Markdown file is the conversation with a language model.",
        epilog=exit_codes(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    root.add_argument("--version", action="version", version=f"parley {__version__}")
    root.set_defaults(run=_without_command)
    commands = root.add_subparsers(metavar="COMMAND")
    for name, command in COMMANDS.items():
        added = commands.add_parser(
            name, help=command.help.rstrip("."), description=command.help, fill=command.fill
        )
        added.set_defaults(run=command.run)
        root.commands[name] = added
    return root


def _without_command(arguments: argparse.Namespace) -> int:
    """Print all commands to standard error, so that a script does not mistake the help for
    output.
    """
    parser().print_help(sys.stderr)
    return USAGE


def _ask(command: Parser) -> None:
    command.add_argument(
        "question", nargs="*", metavar="QUESTION", help="the question; - for standard input"
    )
    place = command.add_mutually_exclusive_group()
    place.add_argument(
        "-c", "--continue", dest="chat", default="", metavar="FILE", help="a chat to continue"
    )
    _last(place)
    _conversation(command)
    _with(command)
    command.add_argument(
        "--prompt", default="", metavar="NAME", help="a prompt to begin the question with"
    )
    command.add_argument(
        "--argument",
        dest="values",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an argument of the prompt; may be repeated",
    )
    command.add_argument("--quiet", action="store_true", help=_QUIET)
    _json(command)


def _with(command: Parser) -> None:
    command.add_argument(
        "--with",
        dest="contents",
        action="append",
        default=[],
        metavar="PATH",
        help="a file to include in the question, or PATH:10-40 for some of its lines; - for "
        "standard input, "
        "which is included anyway unless it is a terminal",
    )


def _talk(command: Parser) -> None:
    _conversation(command)
    place = command.add_mutually_exclusive_group()  # adjacent, for the usage before Python 3.14
    _last(place)
    place.add_argument(
        "chat", nargs="?", default="", metavar="FILE", help="a chat; default: a new one"
    )
    command.set_defaults(json=False)


def _last(place: argparse._MutuallyExclusiveGroup) -> None:
    place.add_argument(
        "--last", action="store_true", help="continue the most recently changed chat"
    )


def _conversation(command: Parser) -> None:
    """Add the arguments that `ask` and `chat` share."""
    command.add_argument("-a", "--agent", metavar="NAME", help=f"{_AGENT}; a new chat keeps it")
    command.add_argument(
        "--no-tools", action="store_true", help="do not use tools in this chat from now on"
    )
    _includes(command)
    command.set_defaults(choose=[], reason="", again=False, exchange=None)


def _includes(command: Parser) -> None:
    """Add the arguments about missing and hidden things that a question needs."""
    command.add_argument("--without-missing", action="store_true", help=_WITHOUT)
    command.add_argument("--hidden", action="append", default=[], metavar="PATH", help=_HIDDEN)


def _respond(command: Parser) -> None:
    from parley.chat.transcript import CHOICES

    command.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help=(
            f"{_CHAT}; several chats are answered in turn; - reads standard input and writes "
            "to standard output"
        ),
    )
    command.add_argument(
        "--jobs",
        type=_positive,
        metavar="N",
        help="answer N chats at once; the answers are written only to the files",
    )
    command.add_argument("-a", "--agent", metavar="NAME", help=_AGENT)
    command.add_argument(
        "--again",
        action="store_true",
        help="regenerate the last answer; the old answer stays until the new one begins",
    )
    command.add_argument(
        "--exchange",
        type=_positive,
        metavar="N",
        help="the number of the exchange to continue or regenerate; default: the last one",
    )
    command.add_argument(
        "--choose",
        action="append",
        default=[],
        type=_choice,
        metavar="CHOICE",
        help="for scripts: decide on waiting calls that an earlier run printed, with "
        f"{', '.join(CHOICES)}, or ID=CHOICE for the call with this id; may be repeated, and then "
        "each applies to the calls that earlier choices left undecided",
    )
    command.add_argument(
        "--reason", default="", metavar="TEXT", help="the reason for declining, for the model"
    )
    command.add_argument("--quiet", action="store_true", help=_QUIET)
    _includes(command)
    _json(command)


def _compare(command: Parser) -> None:
    command.add_argument(
        "file",
        metavar="FILE",
        help="a chat, whose last question is asked; with --ask, name an agent here instead",
    )
    command.add_argument(
        "agents", nargs="+", metavar="AGENT", help="the agents that answer, at least two"
    )
    command.add_argument(
        "--ask",
        default="",
        metavar="QUESTION",
        help="ask this question, in a new chat; - for standard input",
    )
    place = command.add_mutually_exclusive_group()
    place.add_argument(
        "-c",
        "--continue",
        dest="chat",
        default="",
        metavar="FILE",
        help="with --ask: the chat to continue",
    )
    _last(place)
    _with(command)
    command.add_argument(
        "--exchange",
        type=_positive,
        metavar="N",
        help="the number of the exchange whose question is asked; default: the last one",
    )
    command.add_argument("--quiet", action="store_true", help=_QUIET)
    _includes(command)
    _json(command)
    command.set_defaults(choose=[], reason="", again=False, agent=None, no_tools=False)


def _compact(command: Parser) -> None:
    from parley.policy.summaries import KEEP

    command.add_argument("file", metavar="FILE", help=_CHAT)
    command.add_argument("-a", "--agent", metavar="NAME", help=_AGENT)
    command.add_argument(
        "-n",
        dest="keep",
        type=_count,
        default=KEEP,
        metavar="N",
        help=f"the number of recent exchanges to leave unchanged; default: {KEEP}",
    )
    command.set_defaults(again=False, exchange=None)
    command.add_argument("--quiet", action="store_true", help=_QUIET)
    _json(command)


def _messages(command: Parser) -> None:
    from parley.models.formats import options

    command.add_argument("file", metavar="FILE", help=_READ)
    command.add_argument("-a", "--agent", metavar="NAME", help="the agent whose request is printed")
    formats = options()
    command.add_argument(
        "--provider",
        choices=formats,
        metavar="FORMAT",
        help=f"the format to print: {', '.join(formats)}",
    )
    command.add_argument(
        "--tools", action="store_true", help="also start the MCP servers and print their tools"
    )


def _chat(command: Parser) -> None:
    command.add_argument("file", metavar="FILE", help=_READ)


def _export(command: Parser) -> None:
    from parley.cli.export_import import EXPORTS, HTML

    command.add_argument(
        "files", nargs="+", metavar="FILE", help=f"{_READ}; several with JSON lines"
    )
    forms = "; ".join(f"{name}, {form.title}" for name, form in EXPORTS.items())
    about = f"the form: {forms}; default: {HTML}"
    command.add_argument("--to", choices=tuple(EXPORTS), default=HTML, metavar="FORM", help=about)


def _import(command: Parser) -> None:
    from parley.conversion import IMPORT_FORMATS

    command.add_argument("file", metavar="FILE", help="the file to import; - for standard input")
    known = "; ".join(f"{name}, {entry.title}" for name, entry in IMPORT_FORMATS.items())
    command.add_argument(
        "--from",
        dest="source",
        choices=tuple(IMPORT_FORMATS),
        metavar="FORMAT",
        help=f"the format: {known}; default: detected from the content",
    )
    command.add_argument(
        "--to",
        metavar="FILE",
        help="a new file, or a folder for new files; default: standard output",
    )


def _check(command: Parser) -> None:
    command.add_argument("files", nargs="+", metavar="FILE", help=_READ)
    _json(command)


def _edit(command: Parser) -> None:
    command.add_argument(
        "file", nargs="?", default="", metavar="FILE", help="a chat; default: a new one"
    )


def _log(command: Parser) -> None:
    command.add_argument("file", metavar="FILE", help=_CHAT)
    _json(command)


def _changes(command: Parser) -> None:
    command.add_argument("file", metavar="FILE", help=_CHAT)
    command.add_argument(
        "--diff", action="store_true", help="print the changes as a unified diff, for patch(1)"
    )
    _json(command)


def _revert(command: Parser) -> None:
    command.add_argument("file", metavar="FILE", help=_CHAT)
    command.add_argument(
        "--exchange",
        type=_positive,
        metavar="N",
        help="the number of the exchange whose changes are reverted; default: the last one with "
        "changes to revert",
    )
    command.add_argument(
        "--file", dest="path", default="", metavar="PATH", help="revert only this file's changes"
    )
    command.add_argument("--repeat", action="store_true", help="repeat reverted changes instead")
    _json(command)


def _list(command: Parser) -> None:
    command.add_argument(
        "words",
        nargs="*",
        metavar="WORD",
        help="list only chats that contain all words; #TAG for chats with this tag, a folder such "
        "as ./ for the chats below it",
    )
    command.add_argument(
        "-n",
        dest="most",
        type=_positive,
        metavar="N",
        help="list at most N chats; default: 20, or all with --json or --paths",
    )
    command.add_argument("--paths", action="store_true", help="print only the files' paths")
    _json(command)
    command.add_argument("--starting", dest="start", help=argparse.SUPPRESS)  # for completion


def _verify(command: Parser) -> None:
    command.add_argument("file", metavar="FILE", help=_CHAT)
    command.add_argument(
        "--tools", action="store_true", help="also start the MCP servers and compare their tools"
    )
    _json(command)


def _replay(command: Parser) -> None:
    command.add_argument("file", metavar="FILE", help=_READ)
    command.add_argument(
        "-a", "--agent", metavar="NAME", help="the agent to ask, instead of the chat's"
    )
    command.add_argument(
        "--requests",
        action="store_true",
        help="print each request's body as one line of JSON, without the result",
    )
    _json(command)


def _json(command: Parser) -> None:
    command.add_argument("--json", action="store_true", help=_JSON)


def _agents(command: Parser) -> None:
    command.add_argument(
        "--models",
        action="store_true",
        help="list the models that your providers serve instead; PROVIDER/MODEL is an agent, too",
    )
    command.add_argument(
        "--refresh", action="store_true", help="with --models, ask the providers again"
    )
    _json(command)


def _config(command: Parser) -> None:
    command.add_argument(
        "key",
        nargs="?",
        default="",
        metavar="KEY",
        help="the name of a setting, or of a table such as loop",
    )
    _json(command)


def _convert(command: Parser) -> None:
    from parley.models.formats import options

    formats = options()
    known = f"the provider's format: {', '.join(formats)}"
    command.add_argument("--to", required=True, choices=formats, metavar="FORMAT", help=known)


def _servers(command: Parser) -> None:
    command.add_argument("action", nargs="?", choices=("add",), metavar="add", help="add a server")
    command.add_argument(
        "name",
        nargs="?",
        metavar="NAME",
        help="the server's name; a well-known server needs nothing else",
    )
    command.add_argument(
        "words", nargs="*", metavar="COMMAND", help="after --, a local server's command"
    )
    source = command.add_mutually_exclusive_group()
    source.add_argument("--url", default="", metavar="URL", help="a remote server's address")
    source.add_argument(
        "--from",
        dest="source",
        default="",
        metavar="FILE",
        help="another program's server file that contains a server with this name",
    )


def _prompts(command: Parser) -> None:
    command.add_argument(
        "--servers", action="store_true", help="also start the MCP servers and list their prompts"
    )
    _json(command)


def _account(command: Parser) -> None:
    command.add_argument(
        "name",
        metavar="NAME",
        help="a server from the settings, a provider such as openrouter, or an agent of another "
        "program such as codex",
    )


def _login(command: Parser) -> None:
    _account(command)
    command.add_argument(
        "--method",
        metavar="METHOD",
        help="the id of the agent's sign-in method; default: ask in the terminal",
    )


def _trust(command: Parser) -> None:
    command.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="a server file, such as .mcp.json, or a text for models, such as AGENTS.md, a prompt "
        "or a skill; default: all files of this project that you have not decided on",
    )
    command.add_argument(
        "--pin", action="store_true", help="also pin the project programs that the file mentions"
    )
    command.add_argument(
        "--digest",
        action="append",
        default=[],
        metavar="DIGEST",
        help="for scripts: agree to the text with this SHA-256 digest, without asking; may be "
        "repeated",
    )


def _allow(command: Parser) -> None:
    command.add_argument(
        "--remove",
        action="append",
        default=[],
        type=_count,
        metavar="N",
        help="remove the permission with this number; may be repeated",
    )
    _json(command)


def _completion(command: Parser) -> None:
    command.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))


def _help(command: Parser) -> None:
    command.add_argument(
        "name",
        nargs="?",
        choices=tuple(COMMANDS),
        metavar="COMMAND",
        help="a command; default: all",
    )


def _nothing(command: Parser) -> None:
    """Add no arguments."""


def _demo_server(command: Parser) -> None:
    command.add_argument(
        "--port", type=_port, default=0, help="the port to listen on; default: a free one"
    )
    command.add_argument(
        "--pace", type=float, default=0.02, help="seconds between pieces of a reply"
    )


def _choice(text: str) -> ScriptedChoice:
    """Convert a script's choice, for argparse."""
    from parley.cli.scripted_choices import ScriptedChoice

    try:
        return ScriptedChoice.of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _count(text: str) -> int:
    """Convert a number, for argparse."""
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise argparse.ArgumentTypeError("expected a number")
    return int(text)


def _positive(text: str) -> int:
    """Convert a number of at least 1, for argparse."""
    if not (number := _count(text)):
        raise argparse.ArgumentTypeError("expected a number of at least 1")
    return number


def _port(text: str) -> int:
    """Convert a port number, for argparse."""
    if not (text.isascii() and text.isdigit() and int(text[:6]) < 65536):
        raise argparse.ArgumentTypeError("expected a number from 0 to 65535")
    return int(text)


COMMANDS: dict[str, Command] = {
    "ask": Command(
        "ask:ask",
        "Ask a question in a new or existing chat, and print the answer.",
        _ask,
    ),
    "chat": Command(
        "chat:chat", "Talk in the terminal; the conversation is kept in a file.", _talk
    ),
    "respond": Command(
        "batch:respond",
        "Answer the last question in a chat file, as the editor would.",
        _respond,
    ),
    "compare": Command(
        "compare:compare",
        "Ask several agents the same question, each in a fork of the chat, and print the answers.",
        _compare,
    ),
    "compact": Command(
        "respond:compact",
        "Have the model add a summary line to each of a chat's older answers.",
        _compact,
    ),
    "messages": Command("show:messages", "Print the request that a chat would send.", _messages),
    "parse": Command("show:show", "Print a chat as JSON.", _chat),
    "export": Command(
        "export_import:export", "Print a chat in another form, for readers or programs.", _export
    ),
    "import": Command(
        "export_import:import_chats",
        "Make a chat from another program's chat, or from a provider's API messages.",
        _import,
    ),
    "check": Command(
        "check:check",
        "Print the problems in chats as `file:line:col: level: text`; exit with 1 on errors.",
        _check,
    ),
    "log": Command("show:log", "Print a chat's choices, calls, requests and totals.", _log),
    "changes": Command("changes:changes", "List the files that a chat's calls changed.", _changes),
    "revert": Command(
        "changes:revert", "Revert the changes that a chat's calls made to files.", _revert
    ),
    "list": Command(
        "chat_list:list_chats",
        "List the chats that Parley knows, by folder, newest first.",
        _list,
    ),
    "edit": Command(
        "external_editor:edit",
        "Open a chat in your editor, or a new one if you name no file.",
        _edit,
    ),
    "agents": Command(
        "config:agents",
        "List the agents, whether each has a key, and which one answers by default.",
        _agents,
    ),
    "prompts": Command(
        "prompts:prompts",
        "List the prompts for questions, and which of this project's you have not trusted.",
        _prompts,
    ),
    "skills": Command(
        "prompts:skills",
        "List the skills that models may read, and which of this project's you have not trusted.",
        _json,
    ),
    "config": Command(
        "config:config",
        "Print all settings with the origin of each value, or the value of one setting.",
        _config,
    ),
    "verify": Command(
        "verify:verify",
        "Report what was edited in a chat after a model saw it, and which settings changed.",
        _verify,
    ),
    "replay": Command(
        "replay:replay",
        "Replay a chat offline, with its recorded replies and results, and print any differences.",
        _replay,
    ),
    "convert": Command(
        "servers:convert",
        "Convert MCP tool definitions from standard input to a provider's format.",
        _convert,
    ),
    "servers": Command(
        "servers:servers",
        "List well-known MCP servers, or add a server to the settings and start it.",
        _servers,
    ),
    "tools": Command("servers:tools", "Start the MCP servers and list their tools.", _json),
    "login": Command(
        "servers:login",
        "Sign in to a provider, an MCP server or an agent of another program.",
        _login,
    ),
    "logout": Command(
        "servers:logout",
        "Sign out of a provider, an MCP server or an agent of another program.",
        _account,
    ),
    "trust": Command(
        "trust:trust",
        "Trust a project's server files and texts, with their current content.",
        _trust,
    ),
    "allow": Command(
        "allow:allow",
        "List the permissions that you gave in Neovim, or remove some of them.",
        _allow,
    ),
    "completion": Command(
        "completion:completion",
        "Print a shell completion script for commands, options, chats and agents.",
        _completion,
    ),
    "man": Command("manual:man", "Print the manual page, for man(1).", _nothing),
    "help": Command("manual:help_on", "Print the help for a command, or for all commands.", _help),
    "demo-server": Command(
        "servers:demo_server", "Serve the demo model to other programs, until Ctrl-C.", _demo_server
    ),
}
"""All commands, in the order of the help."""
