"""Neovim's record of a chat: the shell verifies the chat against what the models received, until an
edit.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from parley.cli import main
from tests.nvim.harness import Child


def test_a_neovim_chat_verifies_until_it_is_edited(
    nvim: Child, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, folder in (("HOME", "."), ("XDG_STATE_HOME", "state"), ("XDG_CONFIG_HOME", "config")):
        monkeypatch.setenv(name, str(home / folder))
    path = home / "data" / "parley" / "chats" / "verified.md"
    nvim.edit(str(path), "💬: find the stock price of google\n")
    nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    nvim.keys("<C-g><C-g>")
    nvim.until_waiting()
    nvim.keys("ya")
    nvim.until_text("GOOGL) is at")
    nvim.until_idle()
    nvim.keys("GAthanks<Esc><C-g><C-g>")
    nvim.until(lambda: nvim.text().count("🤖:") == 2, "the second answer")
    nvim.until_idle()
    nvim.command("silent write")
    assert (main(["verify", str(path)]), capsys.readouterr().out.splitlines()[-1]) == (
        0,
        "requests that still match the chat: 3 of 3",
    )
    nvim.command("%s/of google$/of apple/")
    nvim.command("silent write")
    assert main(["verify", str(path)]) == 1
    said = "verified.md:1: exchange 1: the question was reworded (different in 3 requests)"
    assert said in capsys.readouterr().out
