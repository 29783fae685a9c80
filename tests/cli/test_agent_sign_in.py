"""`parley login` and `logout` for an agent of another program."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from parley.cli import main
from tests.acp.agent_runs import AgentRun
from tests.cli.shell import Shell
from tests.cli.test_servers import output
from tests.forks import ForkServer
from tests.runtime.test_agent_accounts import METHODS, START

KEY = {"id": "1", "name": "Key", "type": "env_var", "vars": [{"name": "CODER_KEY"}]}


@pytest.fixture
def run(tmp_path: Path) -> AgentRun:
    (tmp_path / "agent").mkdir()
    start = {**START, "authMethods": [*METHODS, KEY]}
    script = {"prompts": [[{"say": "Ok."}]], "initialize": start, "login": True,
              "authenticate": {}, "logout": {}}  # fmt: skip
    return AgentRun(tmp_path / "agent", script)


def toml_of(run: AgentRun) -> str:
    command = json.dumps(list(run.provider.command))
    agent = '[[agents]]\nname = "Coder"\nprovider = "coder"\n'
    return f'{agent}[providers.coder]\nkind = "acp"\ncommand = {command}\n'


def test_a_login_runs_in_the_terminal_after_a_choice(
    run: AgentRun, tmp_path: Path, forks: ForkServer
) -> None:
    shell = Shell(tmp_path, forks)
    shell.configure(toml_of(run), agent='agent = "Coder"')
    code, _, complaints = output(shell.run("ask", "hello"))
    assert code == 1
    assert "Sign in with parley login coder, then ask again" in complaints
    with shell.terminal("login", "coder") as terminal:
        terminal.wait_for(lambda written: b"with number: " in written)
        assert "2: By itself: the agent does the rest itself" in terminal.text
        terminal.press(b"1\r")
        assert terminal.end() == 0
        assert "Signed in here, with words" in terminal.text
        assert "the sign-in to coder is complete" in terminal.text
    with shell.terminal("login", "coder", "--method", "o") as terminal:
        assert terminal.end() == 1
        assert "$ sh -c 'exit 3'" in terminal.text
    assert output(shell.run("ask", "hello"))[:2] == (0, "Ok.\n")


def test_without_a_terminal_the_method_is_named(
    run: AgentRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "parley").mkdir()
    (tmp_path / "parley" / "config.toml").write_text(toml_of(run), encoding="utf-8")

    def said(code: int, *arguments: str) -> str:
        assert main(list(arguments)) == code
        heard = capsys.readouterr()
        return heard.out + heard.err

    assert "offers 4 sign-in methods. Pass --method with one of t, a, o, 1" in said(
        1, "login", "coder"
    )
    assert "no sign-in method 'x'. Choose one of" in said(1, "login", "coder", "--method", "x")
    assert "the sign-in to coder needs a terminal" in said(1, "login", "coder", "--method", "t")
    assert "Set providers.coder.env: CODER_KEY" in said(1, "login", "coder", "--method", "1")
    assert "is complete" in said(0, "login", "Coder", "--method", "a")
    assert run.log.with_suffix(".login").exists()
    assert "signed out of coder" in said(0, "logout", "coder")
    assert not run.log.with_suffix(".login").exists()
