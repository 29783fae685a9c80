"""`parley edit`: the user's editor receives the chat and the terminal."""

from __future__ import annotations

import os
import pty
import shlex
import sys
from pathlib import Path

import pytest

from parley.chat.new import new_text
from parley.cli import main
from parley.cli.external_editor import _lent_terminal, command
from parley.errors import ParleyError
from tests.cli.shell import Shell

WRITE = "import sys; open(sys.argv[-1], 'a').write('mine'); print(*sys.argv[1:])"


def editor(code: str, *more: str) -> str:
    """A Python program as the value of EDITOR or VISUAL."""
    return shlex.join([sys.executable, "-c", code, *more])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    for name in ("VISUAL", "EDITOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def chats(folder: Path) -> list[Path]:
    return list((folder / "parley" / "chats").glob("*"))


def test_the_editor_comes_from_visual_then_editor_then_neovim(folder: Path) -> None:
    nvim = folder / "nvim"
    nvim.write_text("#!/bin/sh\n")
    nvim.chmod(0o755)
    here = {"PATH": str(folder)}
    assert command({"VISUAL": "/bin/sh -c 'a b'", "EDITOR": "/bin/false"}) == [
        "/bin/sh",
        "-c",
        "a b",
    ]
    assert command({"VISUAL": " ", "EDITOR": "/bin/sh"}) == ["/bin/sh"]
    assert command({"EDITOR": "./nvim"}) == [str(nvim)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", here["PATH"])
        assert command({}) == [str(nvim), "+"]
        nvim.unlink()
        with pytest.raises(
            ParleyError, match=r"no editor found\. Set VISUAL or EDITOR, or install Neovim"
        ):
            command({})


@pytest.mark.parametrize(
    ("value", "problem"),
    [("nothing-there -x", "is set to nothing-there"), ("vi '", "cannot be read")],
)
def test_an_unusable_editor_is_an_error_and_creates_no_chat(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    value: str,
    problem: str,
) -> None:
    monkeypatch.setenv("EDITOR", value)
    assert main(["edit"]) == 1
    assert f"parley: EDITOR {problem}" in capsys.readouterr().err
    assert chats(folder) == []


def test_a_file_with_any_name_is_opened(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("EDITOR", editor(WRITE, "--wait"))
    for name in ("a b.md", "-c.md", "+q.md", "$HOME;x.md"):  # vi runs the command after a plus
        assert main(["edit", "--", name]) == 0
        assert (folder / name).read_text() == "mine"
    assert (
        capfd.readouterr().out
        == "--wait a b.md\n--wait ./-c.md\n--wait ./+q.md\n--wait $HOME;x.md\n"
    )


def test_without_a_file_a_new_chat_is_created_and_kept_if_it_was_changed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDITOR", editor("pass"))
    assert main(["edit"]) == 0
    assert chats(folder) == []
    monkeypatch.setenv("EDITOR", editor(WRITE))
    assert main(["edit"]) == 0
    (chat,) = chats(folder)
    assert chat.read_text(encoding="utf-8") == new_text() + "mine"


def test_an_editor_that_fails_is_an_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("EDITOR", editor("raise SystemExit(3)"))
    assert main(["edit", "chat.md"]) == 1
    assert "exited with code 3; the chat is in chat.md" in capsys.readouterr().err
    (folder / "none").write_text("#!/nowhere/at/all\n")
    (folder / "none").chmod(0o755)
    monkeypatch.setenv("EDITOR", "./none")
    assert main(["edit", "chat.md"]) == 1
    assert "cannot start" in capsys.readouterr().err


def test_a_terminal_that_closes_while_the_editor_is_open_is_not_an_error() -> None:
    before, (ours, theirs) = os.dup(0), pty.openpty()
    os.dup2(theirs, 0)
    try:
        with _lent_terminal():
            os.close(ours)
    finally:
        os.dup2(before, 0)
        os.close(before)
        os.close(theirs)


ROGUE = """
import os, signal, termios
modes = termios.tcgetattr(0)
modes[3] &= ~(termios.ECHO | termios.ICANON)
termios.tcsetattr(0, termios.TCSANOW, modes)
signal.signal(signal.SIGINT, lambda *_: os.write(1, b'heard it'))
os.write(1, b'ready')
while b'q' not in os.read(0, 1): pass
"""


def test_the_editor_owns_the_terminal_which_is_then_restored(tmp_path: Path) -> None:
    with Shell(tmp_path).terminal("edit", "chat.md", EDITOR=editor(ROGUE)) as terminal:
        terminal.wait_for(lambda output: b"ready" in output)
        terminal.press(b"\x03")
        terminal.wait_for(lambda output: b"heard it" in output)
        terminal.press(b"q")
        assert terminal.process.wait(45) == 0
        assert terminal.is_by_lines()
