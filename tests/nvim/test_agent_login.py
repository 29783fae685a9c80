"""Signing in to an agent of another program from a real Neovim, in a terminal window."""

from __future__ import annotations

import json
from pathlib import Path

from tests.acp.agent_runs import AgentRun
from tests.nvim.harness import child
from tests.nvim.test_turn import ask, complete

METHODS = [
    {"id": "t", "name": "Account", "type": "terminal", "args": ["login"], "env": {"WAY": "words"}},
    {"id": "a", "name": "Browser", "description": "Open the browser"},
    {"id": "v", "name": "Key", "type": "env_var", "vars": [{"name": "CODER_KEY"}]},
    {"id": "f", "name": "Other", "type": "terminal", "args": ["fail"]},
]
START = {
    "protocolVersion": 1,
    "authMethods": METHODS,
    "agentCapabilities": {"auth": {"logout": {}}},
}


def test_the_command_shows_the_methods_and_runs_one_in_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "agent").mkdir()
    script = {"prompts": [[{"say": "Ok."}]], "initialize": START, "login": True,
              "authenticate": {}, "logout": {}}  # fmt: skip
    run = AgentRun(tmp_path / "agent", script)
    table = {
        "agent": "Coder",
        "agents": [{"name": "Coder", "provider": "coder"}],
        "providers": {"coder": {"kind": "acp", "command": list(run.provider.command)}},
        "status": {"llm": False},
    }
    init = f"require('parley').setup(vim.json.decode({json.dumps(json.dumps(table))}))"
    with child(tmp_path, init=init, width=100, height=30) as nvim:

        def choose(number: int) -> None:
            nvim.keys(":ParleyLogin coder<CR>")
            nvim.until_screen("Type number and <Enter>")
            nvim.keys(f"{number}<CR>")

        def heard(text: str) -> None:
            nvim.until(lambda: text in nvim.messages(), text)

        ask(nvim, "hello", "first.md")
        heard("requires a sign-in (Account, Browser, Key, Other). Sign in with :ParleyLogin coder")
        words = nvim.lua("return vim.fn.getcompletion('ParleyLogin ', 'cmdline')")
        assert "coder" in words
        nvim.keys(":ParleyLogin coder<CR>")
        screen = nvim.until_screen("Type number and <Enter>")
        assert "Sign in to coder" in screen
        assert "2: Browser: Open the browser" in screen
        assert "3: Key: set CODER_KEY in the provider's env" in screen
        nvim.keys("3<CR>")
        heard("coder needs variables. Set providers.coder.env: CODER_KEY")
        choose(4)
        heard("the sign-in command of coder ended with 3: its terminal shows why")
        assert "[Process exited 3]" in nvim.screen()
        nvim.keys("<C-\\><C-n>:close<CR>")
        choose(1)
        heard("the sign-in to coder is complete. Ask again")
        assert run.log.with_suffix(".login").exists()
        nvim.command("stopinsert")
        ask(nvim, "hello", "second.md")
        complete(nvim)
        assert "Ok." in nvim.text()
        nvim.command("ParleyLogin! coder")
        heard("signed out of coder")
        choose(2)
        nvim.until(lambda: run.log.with_suffix(".login").exists(), "the login")
