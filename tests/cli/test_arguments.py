"""The command table: each command is imported only when it is named, and its help matches its
function.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
from pathlib import Path

import pytest

from parley.cli import main
from parley.cli.arguments import COMMANDS, Command, parser
from parley.cli.terminal import in_a_conversation

_HEAVY = (
    *(
        "asyncio",
        "ssl",
        "logging",
        "sqlite3",
        "yaml",
        "jsonschema",
        "rich",
        "mcp",
        "pygments",
        "markdown_it",
    ),
    *("parley.engine", "parley.models", "parley.settings", "parley.runtime", "parley.providers"),
)


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_commands_help_is_its_functions_first_line(command: Command) -> None:
    assert (command.load().__doc__ or "").partition("\n")[0] == command.help


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_its_arguments_once_it_is_named(name: str) -> None:
    action = next(
        action for action in parser()._actions if isinstance(action, argparse._SubParsersAction)
    )
    command = action.choices[name]
    before = command.format_help()
    command.fill()
    command.fill()
    assert len(command.format_help()) > len(before) or name == "man"


def test_the_general_help_imports_no_command_and_check_imports_little(tmp_path: Path) -> None:
    (tmp_path / "chat.md").write_text("\U0001f4ac: hi\n", encoding="utf-8")
    code = f"""
import sys
from parley.cli import main
main(["--help"])
print([name for name in sys.modules if name.startswith("parley.cli.")], file=sys.stderr)
main(["check", "chat.md"])
print([name for name in {_HEAVY} if name in sys.modules], file=sys.stderr)
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    imported, heavy = done.stderr.splitlines()
    assert set(ast.literal_eval(imported)) == {
        f"parley.cli.{name}" for name in ("arguments", "exits", "screen", "terminal")
    }
    assert heavy == "[]"
    assert all(f"  {name} " in done.stdout or f"  {name}\n" in done.stdout for name in COMMANDS)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("ask --last -c chat.md hi", "argument -c/--continue: not allowed with argument --last"),
        ("chat chat.md --last", "argument --last: not allowed with argument FILE"),
        ("respond chat.md --nix", "unrecognized arguments: --nix"),
        ("check chat.md --js", "unrecognized arguments: --js"),
    ],
)
def test_wrong_arguments_are_refused_with_the_usage_of_their_command(
    line: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = line.split()[0]
    assert main(line.split()) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"usage: parley {command} ")
    assert err.endswith(f"parley {command}: error: {message}\n")


@pytest.mark.parametrize(
    ("word", "hint"),
    [("respnd", "did you mean respond?"), ("mcp", "`parley help` lists them")],
)
def test_an_unknown_command_is_compared_with_the_known_ones(
    word: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([word]) == 2
    assert capsys.readouterr().err.endswith(f"error: there is no command '{word}'; {hint}\n")


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_has_no_colours_even_if_python_would_add_some(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    command = parser().commands.get(name, parser())
    command.fill()
    assert command.color is False, "the default of Python 3.14 is True"
    assert command.format_help().startswith("usage: parley ")


@pytest.mark.parametrize("name", ["ask", "chat", "respond", "compact", "messages", "replay"])
def test_every_command_with_an_agent_has_the_short_option(name: str) -> None:
    arguments = parser().parse_args([name, *([] if name == "chat" else ["chat.md"]), "-a", "Demo"])
    assert arguments.agent == "Demo"


@pytest.mark.parametrize("rest", [[], ["ask"]])
def test_the_help_command_prints_the_same_as_the_option(
    rest: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*rest, "--help"]) == 0
    text = capsys.readouterr().out
    assert main(["help", *rest]) == 0
    assert capsys.readouterr().out == text


def test_without_a_command_all_commands_are_listed_and_the_code_is_wrong_arguments(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["help"]) == 0
    shown = capsys.readouterr().out
    assert main([]) == 2
    assert capsys.readouterr() == ("", shown)


def test_a_conversation_has_its_own_words_for_remedies() -> None:
    told = "wait, then :ParleyRespond, or choose another with :ParleyAgent (--agent NAME)"
    assert (
        in_a_conversation(told)
        == "wait, then /go, or choose another with /agent NAME (/agent NAME)"
    )
