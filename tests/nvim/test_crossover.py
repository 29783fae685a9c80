"""A chat begun in Neovim, decided in a terminal, and finished in Neovim: one file, one ledger, the
same keys.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.shell import Shell
from tests.nvim.counting import Chat, environ, furnish, is_complete, opened, until, waits
from tests.nvim.harness import child


@pytest.mark.timeout(120)
def test_a_chat_goes_from_neovim_to_a_terminal_and_back(tmp_path: Path) -> None:
    home = tmp_path / "home"
    furnish(home)
    chat = Chat(home, "both")
    calls = " ".join(f'call note {{"text":"both","n":"{n}"}}' for n in (1, 2))
    chat.path.write_text(f"💬: {calls}\n", encoding="utf-8")
    shell = Shell(tmp_path)
    shell.environ |= {**environ(home), "TERM": "xterm"}
    with child(home) as nvim:
        opened(nvim, chat)
        nvim.command("ParleyRespond")
        until(nvim, lambda: waits(nvim), "the choice")
        with shell.terminal("respond", str(chat.path)) as terminal:
            terminal.wait_for(lambda output: b"Please choose" in output)
            terminal.press(b"2yo")
            terminal.wait_for(lambda output: b"ya yes" in output)
            terminal.press(b"q")
            assert terminal.end() == 3
        assert chat.calls() == 0
        nvim.command("checktime")
        until(
            nvim,
            lambda: nvim.text().count("❓:[yo]") == 1 and waits(nvim),
            "the choice of the terminal",
        )
        nvim.keys("ya")
        until(nvim, lambda: is_complete(nvim), "the answer")
        assert chat.calls() == 2
        assert nvim.text().count("🛠️: [note]") == 2
        until(nvim, lambda: chat.path.read_text(encoding="utf-8") == nvim.text() + "\n", "the file")
