"""`parley man`: the manual page, made from the help."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from functools import partial

from parley import __version__
from parley.cli.arguments import Parser, parser
from parley.cli.exits import COMPLETE, EXITS
from parley.cli.terminal import say

_FILES = {
    "$XDG_CONFIG_HOME/parley/config.toml": "the settings; in ~/.config if the variable is not set",
    "$XDG_STATE_HOME/parley": (
        "approvals, calls and requests; in ~/.local/state if the variable is not set"
    ),
}
_ONE_LINE = 10_000
"""More cells than any usage line needs, because line breaks depend on the Python version."""


def man(arguments: argparse.Namespace) -> int:
    """Print the manual page, for man(1)."""
    say(page(parser()), end="")
    return COMPLETE


def help_on(arguments: argparse.Namespace) -> int:
    """Print the help for a command, or for all commands."""
    root = parser()
    command = root.commands[arguments.name] if arguments.name else root
    command.fill()
    say(command.format_help(), end="")
    return COMPLETE


def page(root: Parser) -> str:
    """The page in man(7) format."""
    return "\n".join(_lines(root)) + "\n"


def _lines(root: Parser) -> Iterator[str]:
    yield f'.TH PARLEY 1 "" "parley {_text(__version__)}" "User Commands"'
    yield from (".SH NAME", f"parley \\- {_text(_sentence(root.description))}")
    yield from (".SH SYNOPSIS", ".B parley", r"\fICOMMAND\fR [\fIARGUMENT\fR ...]")
    yield ".SH COMMANDS"
    for name, command in root.commands.items():
        arguments = command.arguments
        yield from (f".SS {_text(name)}", _usage(command), ".PP", _text(command.description or ""))
        for action in arguments:
            yield from (".TP", _heading(action), _text(_sentence(action.help)))
    yield from (
        ".SH OPTIONS",
        ".TP",
        r"\fB\-h\fR, \fB\-\-help\fR",
        "show help; after a command, the help for that command",
    )
    for action in root.arguments:
        yield from (".TP", _heading(action), _text(_sentence(action.help)))
    yield ".SH EXIT STATUS"
    for code, (_, meaning) in EXITS.items():
        yield from (".TP", f".B {code}", _text(meaning))
    yield ".SH FILES"
    for path, about in _FILES.items():
        yield from (".TP", f".I {_text(path)}", _text(about))


def _usage(command: Parser) -> str:
    command.formatter_class = partial(argparse.HelpFormatter, width=_ONE_LINE)
    usage = " ".join(command.format_usage().split()).removeprefix("usage: ")
    return f".B {_text(usage.replace('[-h] ', ''))}"


def _heading(action: argparse.Action) -> str:
    """An argument as the user types it."""
    value = rf"\fI{_text(str(action.metavar or action.dest))}\fR"
    if not action.option_strings:
        return value
    names = ", ".join(rf"\fB{_text(option)}\fR" for option in action.option_strings)
    return names if action.nargs == 0 else f"{names} {value}"


def _sentence(text: str | None) -> str:
    return (text or "").rstrip(".")


def _text(text: str) -> str:
    """A text escaped for man(7), so that none of it is read as a command."""
    escaped = (
        text.replace("\\", r"\e").replace("-", r"\-").replace("`", r"\(ga").replace("'", r"\(aq")
    )
    return re.sub(r"^\.", r"\\&.", escaped)
