"""The application notices changes to the server file named in the settings, and uses a demo server
that runs already."""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from parley.chat.reader import parse
from parley.demo.server import start
from parley.errors import ParleyError
from parley.policy.permissions import memory_of
from parley.runtime.app import App
from parley.session import Session
from parley.settings.load import load_settings
from parley.settings.read import read_settings
from parley.settings.values import Settings
from parley.storage.changed_files import ChangedFiles
from parley.storage.ledger import LedgerFile
from parley.workspace.change_tools import CallOrigin
from tests.child_processes import until
from tests.ledgers import open_ledger
from tests.model_servers import ModelServer, openai
from tests.workspace.trees import work_tree


async def test_the_ledger_keeps_records_for_as_long_as_the_settings_say() -> None:
    ledger = open_ledger()
    settings, problems = read_settings({"log": {"keep_days": 7}})
    app = App(settings, {}, ledger)
    assert problems == ()
    app.ledger("chat.md")
    assert ledger.keep_days == 7
    await app.close()
    assert read_settings({"log": {"keep_days": -1}})[1] == (
        "parley: log.keep_days: expected an integer ≥ 0, got -1",
    )


async def test_an_edited_server_file_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "servers.json"

    def write(**servers: object) -> None:
        path.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")

    def is_unreadable() -> bool:
        return app.has_unreadable_file

    def names() -> list[str]:
        app.untrusted()
        return [status.name for status in app.servers.status()]

    write(old={"command": "x", "disabled": True}, own={"command": "evil", "disabled": True})
    setup = {
        "mcp": {"config_file": str(path), "servers": {"own": {"command": "y", "enabled": False}}}
    }
    settings, _ = load_settings({"HOME": str(tmp_path)}, setup)
    app = App(settings, os.environ, open_ledger(tmp_path / "ledger.db"), folder=lambda: tmp_path)
    assert names() == ["old", "own", "mock"]
    write(new={"command": "x", "disabled": True}, odd={})
    assert names() == ["new", "own", "mock"]
    assert app.settings.mcp.servers["own"].command == "y"
    assert app.problems() == (f"parley: {path}: mcpServers.odd: needs a command or a url",)
    path.write_text('{"mcpServers": {', encoding="utf-8")
    assert names() == ["new", "own", "mock"]
    assert "invalid JSON" in app.problems()[0]
    assert is_unreadable()
    path.unlink()
    assert names() == ["new", "own", "mock"]
    write(last={"command": "x", "disabled": True})
    assert (names(), app.problems()) == (["last", "own", "mock"], ())
    assert not is_unreadable()
    await app.close()


async def test_the_workspace_is_offered_in_a_work_tree_and_follows_the_folder(
    tmp_path: Path,
) -> None:
    trees = [work_tree(tmp_path / name, {"src/a.py": ""}) for name in ("${HOME}", "two")]
    folder = trees[0] / "src"
    app = App(Settings(), os.environ, open_ledger(tmp_path / "ledger.db"), folder=lambda: folder)

    def folders() -> list[str]:
        app.untrusted()
        return [status.folder for status in app.servers.status() if status.name == "workspace"]

    assert folders() == [str(trees[0])]
    tools = (await app.servers.catalogue()).tools
    identities = {tool.identity for _, tool in tools if tool.server == "workspace"}
    assert len(identities) == 1
    assert str(trees[0]) in identities.pop()
    read = next(tool for _, tool in tools if tool.name == "list_files")
    assert (await app.servers.call(read, {"path": "src"})).text == "a.py"
    remembered = {t.name: memory_of(t, None) for _, t in tools if t.server == "workspace"}
    assert {name: memory for name, memory in remembered.items() if memory != "tool"} == {
        "write_file": "nothing",
        "move_file": "nothing",
        "delete_file": "nothing",
        "run_command": "arguments",
    }
    assert app.project() == str(trees[0])
    folder = trees[1]
    states = {status.name: status.state for status in app.servers.status()}
    assert folders() == [str(trees[1])]
    after = {status.name: status.state for status in app.servers.status()}
    assert states == {"mock": "ready", "workspace": "ready"}
    assert after == {"mock": "ready", "workspace": "stopped"}
    folder = tmp_path
    assert folders() == []
    assert app.project() == str(tmp_path)
    assert app.workspace.root.reason == "the working directory is not in a Git work tree"
    await app.close()


async def test_the_changes_of_a_command_that_runs_at_the_end_are_recorded(tmp_path: Path) -> None:
    root, ledger = work_tree(tmp_path / "root", {"a.txt": "one\n"}), tmp_path / "ledger.db"
    environ = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}
    app = App(Settings(), environ, LedgerFile(ledger), folder=lambda: root)
    work = app.workspace.tools()
    assert work is not None
    assert work.command is not None
    recorder = work.recorder(CallOrigin(str(tmp_path / "chat.md"), "c1", ""))
    command = "echo two > a.txt; sleep 60"
    running = asyncio.ensure_future(work.command.run(command, ".", 0, recorder, None))
    await until(lambda: (root / "a.txt").read_text() == "two\n")
    running.cancel()
    await app.close()
    with closing(LedgerFile(ledger)) as after:
        (change,) = ChangedFiles(after, str(tmp_path / "chat.md")).all()
    assert (change.path, change.state) == (root / "a.txt", "done")


@pytest.mark.parametrize("agent", ["Demo", "Claude"])
async def test_every_agent_has_the_workspace_and_only_demo_agents_the_mock_server(
    tmp_path: Path, agent: str
) -> None:
    root = work_tree(tmp_path / "tree", {})
    ledger = open_ledger(tmp_path / "ledger.db")
    app = App(Settings(), os.environ, ledger, folder=lambda: root)
    chosen = app.resolve(agent)(parse("💬: hello\n"))
    assert chosen.tools
    servers = {tool.server for _, tool in chosen.tools(await app.servers.catalogue()).tools}
    assert servers == {"workspace", *(["mock"] if agent == "Demo" else [])}
    await app.close()


async def test_a_turns_settings_are_resolved_again_only_after_a_change(tmp_path: Path) -> None:
    app = App(Settings(), {}, open_ledger(), folder=lambda: tmp_path)
    resolve = app.resolve("Demo")
    one, other = parse("💬: one\n"), parse("💬: other\n")
    first, same = resolve(one), resolve(other)
    assert same.limits is first.limits
    assert [each.request.transcript for each in (first, same)] == [one, other]
    limited = resolve(parse("---\nmax_tokens: 7\n---\n💬: one\n"))
    assert limited.request.max_tokens == 7
    app.settings = replace(app.settings, system_prompt="Be brief.")
    changed = resolve(one)
    assert (first.request.max_tokens, changed.request.max_tokens) == (None, None)
    assert changed.request.system == "Be brief."
    await app.close()


@pytest.mark.parametrize("agent", ["Demo", "Demo-OpenAI"])
async def test_the_running_demo_server_at_this_port_replies_at_the_wanted_pace(agent: str) -> None:
    async with await start(pace=30) as demo:
        environ = {"PARLEY_DEMO_PORT": demo.url.rsplit(":", 1)[1], "PARLEY_DEMO_PACE": "0"}
        async with Session(agent=agent, environ=environ) as session:
            assert await session.process_message("say: hello") == "hello"
        assert demo.requests


async def test_a_port_that_is_no_number_is_an_error() -> None:
    async with Session(agent="Demo", environ={"PARLEY_DEMO_PORT": "1@elsewhere"}) as session:
        with pytest.raises(ParleyError, match="PARLEY_DEMO_PORT is not a number"):
            await session.process_message("say: hello")


async def test_the_app_lists_the_models_of_each_provider_once_a_day(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}
    async with ModelServer(openai) as near:
        url = f"{near.url}/v1"
        settings, problems = read_settings(
            {
                "agents": [{"name": "Near", "provider": "near", "model": "gpt-5"}],
                "providers": {
                    "near": {"base_url": url},
                    "far": {"base_url": url, "api_key_env": "FAR_KEY"},
                    "gone": {"base_url": "http://127.0.0.1:9/v1"},
                    "quiet": {"base_url": url, "model_list": "off"},
                    "ollama": {"model_list": "off"},
                },
            }
        )
        assert problems == ()
        app = App(settings, environ, open_ledger())
        own = ["far", "gone", "near"]
        assert [name for name in app.models.providers() if name in settings.providers] == own
        for refresh, requests in ((False, 1), (False, 1), (True, 2)):
            found = {each.provider: each for each in await app.models.all(refresh=refresh)}
            assert found["far"].problem == "no key. To list its models, set FAR_KEY"
            assert found["gone"].problem.startswith("not listed: ")
            assert [m.id for m in found["near"].listed.models].count("gpt-6.2-sol") == 1
            assert near.requests == ["/v1/models"] * requests
        assert app.models.known("near") == found["near"].listed
        agent = settings.named_agent("Near")
        assert agent
        await app.models.fetch_for([agent])
        assert len(near.requests) == 2
        assert "2026-12-11" in app.models.problem(agent)
        await app.close()
