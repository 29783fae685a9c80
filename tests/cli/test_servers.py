"""`parley login` and `logout`, and the messages when a command's server requires a login."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from parley.cli import main
from tests.cli.shell import Shell, toml
from tests.forks import ForkServer
from tests.mcp.oauth_server import browser, serving
from tests.mcp_servers import FAKE, TABLE
from tests.workspace.trees import work_tree


@pytest.fixture
def shell(tmp_path: Path, forks: ForkServer) -> Iterator[Shell]:
    with serving(tmp_path) as url:
        shell = Shell(tmp_path, forks)
        shell.configure(f"[mcp.servers.tracker]\nurl = {toml(url)}\n")
        yield shell


def output(process: subprocess.CompletedProcess[bytes]) -> tuple[int, str, str]:
    return process.returncode, process.stdout.decode(), process.stderr.decode()


def test_a_login_opens_the_browser_and_later_commands_use_it(shell: Shell, tmp_path: Path) -> None:
    code, said, complaints = output(shell.run("login", "tracker", **browser(tmp_path)))
    assert (code, complaints) == (0, "")
    first, page, last = said.splitlines()
    assert first.startswith("Sign in to tracker at 127.0.0.1:")
    assert "/authorize?response_type=code&" in page
    assert last == "signed in to tracker"
    assert "tracker: ready\n  whoami: Who is signed in." in output(shell.run("tools"))[1]
    assert output(shell.run("logout", "tracker"))[1].startswith("signed out of tracker")
    assert output(shell.run("logout", "tracker"))[::2] == (
        1,
        "parley: you are not signed in to tracker\n",
    )


def test_the_tool_list_shows_the_workspaces_folder_or_why_it_is_not_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    tree = work_tree(tmp_path / "tree", {"src/a.py": ""})
    monkeypatch.chdir(tree / "src")
    assert main(["tools"]) == 0
    assert f"workspace: ready\n  folder: {tree}\n" in capsys.readouterr().out
    monkeypatch.chdir(tmp_path)
    assert main(["tools"]) == 0
    reason = "workspace is not offered: the working directory is not in a Git work tree\n"
    assert capsys.readouterr().out.endswith(reason)


def test_a_logout_names_the_projects_unused_servers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    Path(".mcp.json").write_text(
        '{"mcpServers": {"x": {"url": "https://x.example/mcp"}}}', encoding="utf-8"
    )
    assert main(["logout", "x"]) == 1
    assert "parley: the servers in " in capsys.readouterr().err


def test_a_turn_names_the_command_that_signs_in(shell: Shell) -> None:
    shell.ask("hello")
    _, _, complaints = output(shell.run("respond", "chat.md"))
    assert "no tools from MCP server 'tracker': HTTP 401" in complaints
    assert "What to do: parley login tracker, or set" in complaints


@pytest.mark.parametrize("option", [[], ["--json"]])
def test_the_tool_list_names_the_command_that_signs_in(shell: Shell, option: list[str]) -> None:
    code, said, _ = output(shell.run("tools", *option))
    assert code == 5
    assert "What to do: parley login tracker, or set" in said
    assert ":Parley" not in said


def test_ctrl_c_cancels_a_login(shell: Shell) -> None:
    with shell.terminal("login", "tracker") as terminal:
        terminal.wait_for(lambda written: b"/authorize?" in written)
        terminal.press(b"\x03")
        assert terminal.end() == 130


@pytest.mark.parametrize("command", ["login", "logout"])
def test_an_unknown_account_is_an_error_that_lists_the_known_ones(
    shell: Shell, command: str
) -> None:
    code, _, complaints = output(shell.run(command, "nobody"))
    assert code == 1
    assert complaints.startswith("parley: there is no account 'nobody'; known: ")
    assert "tracker" in complaints


OFFER = {
    "capabilities": {"tools": {}, "resources": {}},
    "serverInfo": {"name": "t", "version": "1"},
}
ANSWERS = {
    "initialize": {"protocolVersion": "2025-06-18", **OFFER},
    "tools/list": {"tools": [{"name": "echo", "description": "Says it.", "inputSchema": {}}]},
}
LINKED = """💬: call echo {}

🤖:[Demo]

❓: `{"index":0,"id":"call_1","type":"function","function":{"name":"echo","arguments":"{}"}}`

🛠️: [echo][call_1]

`[resource a:b]`

There is one.

💬: call notes__read_resource {"uri": "a:b"}
"""


def noted(folder: Path, forks: ForkServer, answers: dict[str, Any]) -> Shell:
    """A shell with a server that gives these answers."""
    shell = Shell(folder, forks)
    table = ", ".join(toml(value) for value in (TABLE, json.dumps({**ANSWERS, **answers})))
    shell.configure(f"[mcp.servers.notes]\ncommand = {toml(sys.executable)}\nargs = [{table}]\n")
    return shell


def test_a_resource_from_an_earlier_result_is_read_after_approval(
    tmp_path: Path, forks: ForkServer
) -> None:
    shell = noted(
        tmp_path, forks, {"resources/read": {"contents": [{"uri": "a:b", "text": "of b"}]}}
    )
    shell.chat.write_text(LINKED, encoding="utf-8")
    done = shell.run("respond", "chat.md")
    assert done.returncode == 3
    assert 'notes__read_resource {"uri": "a:b"}' in done.stdout.decode()
    done = shell.run("respond", "chat.md", "--choose", "ya")
    assert done.returncode == 0
    assert shell.text.count("`of b`") == 1


def test_the_list_of_resources_is_limited(tmp_path: Path, forks: ForkServer) -> None:
    resources = [{"uri": f"a:{n}", "name": str(n)} for n in range(25)]
    resources[0] |= {"title": "first\x1b[2J", "description": "one\ntwo", "mimeType": "text/plain"}
    templates = [{"uriTemplate": "a:{b}", "name": "page"}]
    lists = {
        "resources/list": {"resources": resources},
        "resources/templates/list": {"resourceTemplates": templates},
    }
    shell = noted(tmp_path, forks, lists)
    _, said, _ = output(shell.run("tools"))
    lines = said[said.index("notes: ready") :].splitlines()
    assert lines[1:3] == ["  echo: Says it.", "  resource a:0: first\\x1b[2J (text/plain): one two"]
    assert lines[21:24] == [
        "  resource a:19: 19",
        "  and 5 more resources: --json lists all of them",
        "  template a:{b}: page",
    ]
    _, said, _ = output(shell.run("tools", "--json"))
    (server,) = (s for s in map(json.loads, said.splitlines()) if s.get("name") == "notes")
    first = {
        "uri": "a:0",
        "name": "first\\x1b[2J",
        "description": "one two",
        "mime_type": "text/plain",
    }
    assert (len(server["resources"]), server["resources"][0]) == (25, first)
    assert [template["uri"] for template in server["templates"]] == ["a:{b}"]


def test_declining_trust_is_reported(tmp_path: Path, forks: ForkServer) -> None:
    with serving(tmp_path, "--will", "no") as url:
        shell = Shell(tmp_path, forks)
        shell.configure(f"[mcp.servers.tracker]\nurl = {toml(url)}\n")
        code, _, complaints = output(shell.run("login", "tracker", **browser(tmp_path)))
    assert code == 1
    assert "the site refused: access_denied" in complaints


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("# no list of servers\n", "invalid JSON: Expecting value"),
        ("{}", "mcpServers: expected a server table, got null"),
        ('{"mcpServers": {}}', ".mcp.json has no servers, so there is nothing to trust"),
        ('{"mcpServers": {"a": {}}}', "mcpServers.a: needs a command or a url"),
        (
            '{"mcpServers": {"a": {}, "b": {"command": "b"}}}',
            "mcpServers.a: needs a command or a url",
        ),
    ],
)
def test_trust_never_exits_with_0_after_an_error(
    tmp_path: Path, forks: ForkServer, content: str, complaint: str
) -> None:
    shell = Shell(tmp_path, forks)
    (tmp_path / ".mcp.json").write_text(content, encoding="utf-8")
    code, listing, complaints = output(shell.run("trust", ".mcp.json"))
    assert code == 1
    assert complaints.count("\n") == 1
    assert complaint in complaints
    described = "b:\n  starts the program b\n  b was not found here\n" if '"b"' in content else ""
    assert listing.startswith(described)
    assert bool(listing) == bool(described)


@pytest.mark.parametrize("content", [None, "{", "mcp_servers = 1"])
def test_tools_exits_with_5_and_lists_no_mock_if_the_server_file_is_unreadable(
    tmp_path: Path, forks: ForkServer, content: str | None
) -> None:
    shell = Shell(tmp_path, forks)
    shell.configure('[mcp]\nconfig_file = "servers.json"\n')
    place = Path(shell.environ["XDG_CONFIG_HOME"], "parley", "servers.json")
    if content is not None:
        place.write_text(content, encoding="utf-8")
    code, listing, complaints = output(shell.run("tools"))
    assert (code, listing) == (5, "")
    assert complaints.count(str(place)) == 1
    place.write_text(
        '{"mcpServers": {"off": {"command": "x", "disabled": true}}}', encoding="utf-8"
    )
    code, listing, complaints = output(shell.run("tools"))
    assert (code, complaints) == (0, "")
    assert "mock: ready" in listing


def test_tools_does_not_exit_with_0_if_a_server_failed(tmp_path: Path, forks: ForkServer) -> None:
    shell = Shell(tmp_path, forks)
    shell.configure('[mcp.servers.far]\ncommand = "false"\n')
    assert shell.run("tools").returncode == shell.run("tools", "--json").returncode == 5


def test_a_note_on_the_settings_is_not_a_failure(tmp_path: Path, forks: ForkServer) -> None:
    shell = Shell(tmp_path, forks)
    shell.configure("nothing = 1\n")
    code, _, notes = output(shell.run("tools"))
    assert (code, "there is no such setting" in notes) == (0, True)


def test_an_added_server_starts_at_once_and_stays_in_the_settings(
    tmp_path: Path, forks: ForkServer
) -> None:
    shell = Shell(tmp_path, forks)
    shell.configure("# mine\n[mcp]\nstart = 'lazy'  # why not\n")
    place = Path(shell.environ["XDG_CONFIG_HOME"], "parley", "config.toml")
    before = place.read_text(encoding="utf-8")
    code, listing, complaints = output(
        shell.run("servers", "add", "fake", "--", sys.executable, FAKE, "--many")
    )
    assert (code, complaints) == (0, "")
    assert listing.startswith(f"added fake to {place}\nfake: ready\n  echo: To echo.")
    assert before in place.read_text(encoding="utf-8")
    assert "fake: ready" in output(shell.run("tools"))[1]
    code, _, complaints = output(shell.run("servers", "add", "fake", "--url", "http://x"))
    assert code == 1
    assert "already has a server named 'fake'. Edit it there" in complaints
    assert shell.run("servers", "add", "gone", "--", "no-such-program").returncode == 5
    file = tmp_path / "mcp.json"
    file.write_text('{"mcpServers": {"off": {"command": "x", "disabled": true}}}', encoding="utf-8")
    assert output(shell.run("servers", "add", "off", "--from", "mcp.json"))[1].endswith(
        "off: stopped\n"
    )


def test_well_known_servers_are_listed(tmp_path: Path, forks: ForkServer) -> None:
    code, listing, complaints = output(Shell(tmp_path, forks).run("servers"))
    assert (code, complaints) == (0, "")
    assert (
        "files     reads and writes files\n          npx -y "
        "@modelcontextprotocol/server-filesystem ."
    ) in listing
    assert len(listing.splitlines()) == 20
