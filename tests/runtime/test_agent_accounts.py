"""Signing in to agents of other programs: in a terminal, by the agent itself, and out again."""

from __future__ import annotations

import asyncio
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from parley.errors import ParleyError
from parley.models.agent_sign_ins import SignInMethod
from tests.acp.test_agent_processes import until
from tests.runtime.test_chat_agents import AgentDesk, desk_with, desks

__all__ = ["desks"]

METHODS = [
    {"id": "t", "name": "In a terminal", "type": "terminal", "args": ["login"],
     "env": {"WAY": "words"}},
    {"id": "a", "name": "By itself"},
    {"id": "o", "name": "Elsewhere", "_meta": {"terminal-auth": {"command": "sh", "args": ["-c", "exit 3"]}}},
]  # fmt: skip
START: dict[str, Any] = {
    "protocolVersion": 1,
    "authMethods": METHODS,
    "agentCapabilities": {"auth": {"logout": {}}},
}


def signing(desks: list[AgentDesk], folder: Path, **script: Any) -> AgentDesk:
    script = {"initialize": START, "login": True, "authenticate": {}, "logout": {}, **script}
    return desk_with(desks, folder, {"say": "Ok."}, **script)


async def methods_of(desk: AgentDesk) -> list[SignInMethod]:
    return list(await desk.app.agent_accounts.methods(desk.app.provider("coder")))


async def test_a_question_names_the_methods_and_works_after_a_sign_in_in_a_terminal(
    desks: list[AgentDesk], tmp_path: Path
) -> None:
    desk = signing(desks, tmp_path)
    end = await desk.respond()
    assert end.kind == "interrupted"
    assert end.message == (
        "the agent of coder requires a sign-in (In a terminal, By itself, Elsewhere). Sign in with "
        ":ParleyLogin coder, then ask again"
    )
    accounts, provider = desk.app.agent_accounts, desk.app.provider("coder")
    terminal, _, elsewhere = await methods_of(desk)
    command = await accounts.command(provider, terminal)
    assert command.words[-1] == "login"
    assert "HOME" in command.env
    assert "WAY" not in repr(command)
    done = await asyncio.to_thread(
        subprocess.run,
        command.words,
        env=dict(command.env),
        cwd=command.folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "Signed in here, with words\n"
    accounts.renew(provider)
    assert (await desk.respond()).kind == "complete"
    assert "Ok." in desk.text
    assert Path((await accounts.command(provider, elsewhere)).words[0]).is_absolute()
    with pytest.raises(ParleyError, match="which was not found"):
        await accounts.command(provider, replace(elsewhere, command="no-such-program"))


async def test_an_agent_signs_the_user_in_itself_and_deletes_its_login(
    desks: list[AgentDesk], tmp_path: Path
) -> None:
    desk = signing(desks, tmp_path)
    accounts, provider = desk.app.agent_accounts, desk.app.provider("coder")
    await accounts.authenticate(provider, (await methods_of(desk))[1])
    assert desk.run.received("authenticate") == [{"methodId": "a"}]
    assert (await desk.respond()).kind == "complete"
    assert len(desk.run.received("initialize")) == 1
    await accounts.sign_out(provider)
    desk.document.lines = ["💬: Again.", ""]
    assert (await desk.respond()).kind == "interrupted"


async def test_an_agent_that_refuses_or_offers_no_method_says_so(
    desks: list[AgentDesk], tmp_path: Path
) -> None:
    plain = {"protocolVersion": 1}
    desk = signing(desks, tmp_path, initialize=plain)
    provider = desk.app.provider("coder")
    with pytest.raises(ParleyError, match="coder offers no sign-in method"):
        await methods_of(desk)
    with pytest.raises(ParleyError, match="cannot delete its login"):
        await desk.app.agent_accounts.sign_out(provider)
    end = await desk.respond()
    assert "requires a sign-in. Sign in with its own program, then ask again" in end.message


async def test_a_cancelled_sign_in_ends_the_agent(desks: list[AgentDesk], tmp_path: Path) -> None:
    desk = desk_with(desks, tmp_path, {"say": "Ok."}, initialize=START, silent=["authenticate"])
    provider, method = desk.app.provider("coder"), (await methods_of(desk))[1]
    signing_in = asyncio.ensure_future(desk.app.agent_accounts.authenticate(provider, method))
    await until(lambda: bool(desk.run.received("authenticate")))
    signing_in.cancel()
    await asyncio.wait({signing_in})
    assert (await desk.respond()).kind == "complete"
    assert len(desk.run.received("initialize")) == 2


async def test_a_name_means_an_agent_its_provider_or_a_server(
    desks: list[AgentDesk], tmp_path: Path
) -> None:
    desk = desk_with(desks, tmp_path, {"say": "Ok."})
    server = {"url": "https://x.example/mcp"}
    desk.settings = {"mcp": {"servers": {"codex": server, "tracker": server}}}
    accounts = desk.restart().accounts
    names = {n: agent.name for n in ("Coder", "coder", "Codex", "codex", "tracker", "openai")
             if (agent := accounts.agent(n))}  # fmt: skip
    assert names == {"Coder": "coder", "coder": "coder", "Codex": "codex"}
    assert accounts.names() == ["coder", "codex", "openrouter", "tracker"]
