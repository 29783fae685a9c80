"""`parley edit`: opens a chat in the user's editor, which owns the terminal until it exits."""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import subprocess
import termios
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from parley.chat.new import new_text
from parley.cli.exits import COMPLETE
from parley.cli.signals import handlers
from parley.cli.terminal import settings
from parley.errors import ParleyError, reason_of
from parley.programs import program
from parley.storage.chats import chat_folder, new_chat, remove_unchanged

_BY_ITSELF = ("nvim", "+")
"""Neovim, with the cursor on the last line."""
_COMMANDS = ("-", "+")
"""Editors interpret arguments that start with these characters as options or vi commands, not as
files.
"""
_STANDARD_INPUT = 0
_NONE = "no editor found. Set VISUAL or EDITOR, or install Neovim"


def edit(arguments: argparse.Namespace) -> int:
    """Open a chat in your editor, or a new one if you name no file."""
    if arguments.file:
        open_editor(Path(arguments.file), os.environ)
        return COMPLETE
    command(os.environ)  # if there is no editor, fail before creating a file
    text = new_text()
    path = new_chat(chat_folder(settings().chat_dir, os.environ), text)
    try:
        open_editor(path, os.environ)
    finally:
        remove_unchanged(path, text)
    return COMPLETE


def open_editor(path: Path, environ: Mapping[str, str]) -> None:
    """Open a file in the editor, and return when the editor exits. Raises ParleyError."""
    line = command(environ)
    name = f"./{path}" if str(path).startswith(_COMMANDS) else str(path)
    try:
        with _lent_terminal():
            code = subprocess.run([*line, name], check=False).returncode
    except (OSError, ValueError) as error:
        raise ParleyError(f"cannot start {line[0]}: {reason_of(error)}") from error
    if code:
        raise ParleyError(f"{line[0]} exited with code {code}; the chat is in {path}")


def command(environ: Mapping[str, str]) -> list[str]:
    """The command line from VISUAL or EDITOR, split like in a shell; otherwise Neovim.

    Raises ParleyError.
    """
    variable = next((name for name in ("VISUAL", "EDITOR") if environ.get(name, "").strip()), "")
    try:
        words = shlex.split(environ[variable]) if variable else list(_BY_ITSELF)
    except ValueError as error:
        raise ParleyError(f"{variable} cannot be read: {error}") from error
    found = program(words[0], folder=Path.cwd()) if words else None
    if found is None:
        raise ParleyError(
            f"{variable} is set to {words[0]}, but there is no such program" if variable else _NONE
        )
    return [found, *words[1:]]


@contextmanager
def _lent_terminal() -> Iterator[None]:
    """Restore the terminal after the editor exits; until then, leave Ctrl-C to the editor."""
    modes = None
    with suppress(termios.error):  # there is no terminal
        modes = termios.tcgetattr(_STANDARD_INPUT)
    try:
        with handlers(dict.fromkeys((signal.SIGINT, signal.SIGQUIT), lambda *_: None)):
            yield
    finally:
        if modes is not None:
            with suppress(termios.error):  # the terminal is gone
                termios.tcsetattr(_STANDARD_INPUT, termios.TCSADRAIN, modes)
