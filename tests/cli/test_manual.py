"""The manual page matches the help, and no text in it becomes a command by mistake."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from parley.cli import main
from parley.cli.arguments import Parser, parser
from parley.cli.manual import page

PAGE = Path(__file__).parent.parent.parent / "doc" / "parley.1"


def words(text: str) -> str:
    """A page's plain text, without commands and escapes, and with single spaces between words."""
    text = re.sub(r"^\.[A-Z]+ ?", "", text, flags=re.MULTILINE)
    text = re.sub(r"\\f[A-Z]|\\&", "", text).replace(r"\(ga", "`").replace(r"\(aq", "'")
    return " ".join(text.replace(r"\-", "-").replace(r"\e", "\\").split())


def test_the_packaged_page_is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["man"]) == 0
    assert PAGE.read_text(encoding="utf-8") == capsys.readouterr().out, "make man writes it anew"


def test_the_page_has_the_help_of_every_command_and_argument() -> None:
    root = parser()
    text = words(page(root))
    for command in (root, *root.commands.values()):
        for action in command.arguments:
            assert f"{', '.join(action.option_strings)}" in text
            assert " ".join((action.help or "").split()) in text
        assert " ".join((command.description or "").rstrip(".").split()) in text


def test_text_is_not_a_command() -> None:
    root = Parser(prog="parley", description=".so /etc/passwd", fill=lambda _: None)
    command = Parser(prog="parley x", description=r"'br \fB `a-b`")
    command.add_argument("--odd", help=".\\odd")
    root.commands["x"] = command
    lines = page(root).split("\n")
    assert r"parley \- \&.so /etc/passwd" in lines
    assert r"\(aqbr \efB \(gaa\-b\(ga" in lines
    assert r"\&.\eodd" in lines


@pytest.mark.skipif(not shutil.which("groff"), reason="groff is not installed")
def test_man_shows_the_page_without_a_warning() -> None:
    command = ["groff", "-man", "-ww", "-Kutf8", "-Tutf8", str(PAGE)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert "EXIT STATUS" in re.sub(".\b", "", done.stdout)
