"""The table of commands: each is imported when it is named, and says of itself what its function says."""

from __future__ import annotations

import argparse
import subprocess
import sys

import pytest

from parley.cli.arguments import COMMANDS, Command, parser

_HEAVY = ("asyncio", "ssl", "yaml", "jsonschema", "parley.engine", "parley.models", "parley.settings", "mcp")


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_the_help_of_a_command_is_the_first_line_of_its_function(command: Command) -> None:
    assert (command.load().__doc__ or "").partition("\n")[0] == command.help


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_its_arguments_when_it_is_named(name: str) -> None:
    action = next(action for action in parser()._actions if isinstance(action, argparse._SubParsersAction))
    command = action.choices[name]
    before = command.format_help()
    command.fill()
    command.fill()
    assert len(command.format_help()) > len(before) or name == "man"


def test_the_help_on_all_commands_imports_none() -> None:
    code = f"""
import sys
from parley.cli import main
main(["--help"])
print([name for name in {_HEAVY} if name in sys.modules], file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"
    assert all(f"  {name} " in done.stdout or f"  {name}\n" in done.stdout for name in COMMANDS)
