"""Files of MCP servers, as other programs use them: what is read, what is told, what is never believed."""

from __future__ import annotations

import json

import pytest

from parley.tools.mcp_files import ServersFile, below, digest, read_servers
from parley.tools.servers import ServerSettings


def read(servers: object, folder: str | None = None) -> ServersFile:
    return read_servers(json.dumps({"mcpServers": servers}).encode(), "f.json", folder)


def test_local_and_remote_servers_are_read() -> None:
    found = read({
        "files": {"command": "npx", "args": ["-y", "files", "${HOME}"], "env": {"A": "1"}, "cwd": "/srv"},
        "tracker": {"type": "http", "url": "https://t.example/mcp", "headers": {"X": "${TOKEN}"}},
        "plain": {"url": "https://p.example"},
        "off": {"type": "stdio", "command": "x", "disabled": True},
    })  # fmt: skip
    assert found.problems == ()
    assert found.servers == {
        "files": ServerSettings("files", "npx", ("-y", "files", "${HOME}"), {"A": "1"}, "/srv"),
        "tracker": ServerSettings("tracker", url="https://t.example/mcp", headers={"X": "${TOKEN}"}),
        "plain": ServerSettings("plain", url="https://p.example"),
        "off": ServerSettings("off", "x", enabled=False),
    }


def test_no_file_makes_a_server_trusted_or_approves_its_calls() -> None:
    found = read({"s": {"command": "x", "trusted": True, "autoApprove": ["*"], "builtin": True}})
    assert found == ServersFile({"s": ServerSettings("s", "x")})


def test_the_servers_of_a_project_run_in_its_folder() -> None:
    cwds = {"none": None, "dot": ".", "below": "tools", "else": "/srv", "set": "${ROOT}"}
    found = read({name: {"command": "x", "cwd": cwd} for name, cwd in cwds.items()}, "/p")
    assert {name: server.cwd for name, server in found.servers.items()} == {
        "none": "/p",
        "dot": "/p",
        "below": "/p/tools",
        "else": "/srv",
        "set": "${ROOT}",
    }


@pytest.mark.parametrize(
    ("servers", "problem"),
    [
        ([1], "mcpServers: expected a table of servers, got [1]"),
        ({"s": 1}, "mcpServers.s: expected a table, got 1"),
        ({"s": {}}, "mcpServers.s: needs a command or a url"),
        ({"s": {"type": "stdio", "url": "http://x"}}, "mcpServers.s: needs a command or a url"),
        (
            {"s": {"type": "sse"}},
            'mcpServers.s.type: expected "stdio", "http", "streamable-http" or "streamableHttp", got "sse"',
        ),
        ({"s": {"command": 1}}, "mcpServers.s.command: expected a text, got 1"),
        ({"s": {"command": "x", "args": "y"}}, "mcpServers.s.args: expected a list of texts, got \"y\""),
        ({"s": {"command": "x", "args": [1]}}, "mcpServers.s.args[1]: expected a text, got 1"),
        ({"s": {"command": "x", "env": {"A": 1}}}, "mcpServers.s.env.A: expected a text, got a number"),
        ({"s": {"command": "x", "cwd": {}}}, "mcpServers.s.cwd: expected a text, got {}"),
        (
            {"s": {"url": "http://x", "headers": ["key"]}},
            "mcpServers.s.headers: expected a table of texts, got a list",
        ),
        ({"mock": {"command": "x"}}, "mcpServers.mock: this name is reserved for the built-in server"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_told_by_its_path_and_costs_one_server(servers: object, problem: str) -> None:
    found = read({**servers, "well": {"command": "x"}} if isinstance(servers, dict) else servers)
    assert found.problems == (f"parley: f.json: {problem}",)
    assert tuple(found.servers) == (("well",) if isinstance(servers, dict) else ())


@pytest.mark.parametrize("name", ["files/read", "", " ", "a\nb", "a\u202eb", "x" * 65, ".hidden", "a*"])
def test_a_name_that_rules_or_people_could_misread_is_refused(name: str) -> None:
    found = read({name: {"command": "x"}})
    assert found.servers == {}
    assert len(found.problems) == 1
    assert found.problems[0].isprintable()


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe\x00", b"[" * 100_000, b"null"])
def test_what_is_no_such_file_is_one_problem(content: bytes) -> None:
    found = read_servers(content, "f.json")
    assert found.servers == {}
    assert len(found.problems) == 1


def test_a_file_does_not_redefine_a_server_of_the_settings() -> None:
    file = read({"own": {"command": "evil"}, "new": {"command": "x"}})
    assert below(file, {"own": ServerSettings("own", "good")}, "f.json") == ServersFile(
        {"new": ServerSettings("new", "x")},
        ("parley: f.json: mcpServers.own: your settings have a server of this name",),
    )


def test_a_digest_tells_contents_apart_to_the_byte() -> None:
    assert digest(b"{}") != digest(b"{} ")
    assert digest(b"") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
