"""Other programs' MCP server files: read entries, reported flaws, and fields without effect."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from parley.tools.mcp_files import ServersFile, below, digest, project_of, read_servers
from parley.tools.server_settings import ServerSettings


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
        "tracker": ServerSettings(
            "tracker", url="https://t.example/mcp", headers={"X": "${TOKEN}"}
        ),
        "plain": ServerSettings("plain", url="https://p.example"),
        "off": ServerSettings("off", "x", enabled=False),
    }


def read_text(text: str, folder: str | None = None) -> ServersFile:
    return read_servers(text.encode(), "f.json", folder)


def test_no_file_makes_a_server_trusted_or_approves_its_calls() -> None:
    grants = {"trusted": True, "trust": True, "autoApprove": ["*"], "alwaysAllow": ["echo"]}
    found = read({"s": {"command": "x", **grants}, "none": {"command": "x", "alwaysAllow": []}})
    assert found == ServersFile(
        {"s": ServerSettings("s", "x"), "none": ServerSettings("none", "x")},
        tuple(
            f"parley: f.json: mcpServers.s.{key}: files cannot approve calls. "
            "Use approval.auto in your settings"
            for key in grants
        ),
    )


def test_vs_codes_file_is_read_with_its_comments() -> None:
    found = read_text(
        """{
          // what VS Code writes
          "servers": {
            "files": { "type": "stdio", "command": "npx", "args": ["//notes", "${env:NOTES}",], },
            "net": { "type": "http", "url": "https://n.example", "gallery": true, "version": "1" }, /* , */
          },
          "inputs": [],
        }""",
        "/p",
    )
    assert found == ServersFile({
        "files": ServerSettings("files", "npx", ("//notes", "${env:NOTES}"), cwd="/p"),
        "net": ServerSettings("net", url="https://n.example"),
    })  # fmt: skip


@pytest.mark.parametrize(
    "kind", ["http", "sse", "streamable-http", "streamableHttp", "streamable_http"]
)
@pytest.mark.parametrize(
    ("type_", "url"), [("type", "url"), ("transport", "serverUrl"), ("type", "httpUrl")]
)
def test_a_remote_server_is_read_in_every_spelling(type_: str, url: str, kind: str) -> None:
    assert read({"s": {type_: kind, url: "http://x"}}) == ServersFile(
        {"s": ServerSettings("s", url="http://x")}
    )


@pytest.mark.parametrize(
    "entry", [{"disabled": True}, {"enabled": False}, {"disabled": True, "enabled": True}]
)
def test_a_server_that_its_file_disables_is_off(entry: dict[str, bool]) -> None:
    assert read({"s": {"command": "x", **entry}}) == ServersFile(
        {"s": ServerSettings("s", "x", enabled=False)}
    )


def test_tools_that_a_file_excludes_are_excluded() -> None:
    server = read({"s": {"command": "x", "disabledTools": ["rm", "echo"]}}).servers["s"]
    assert [tool for tool in ("rm", "list", "echo") if server.takes(tool)] == ["list"]


@pytest.mark.parametrize(
    ("field", "entry", "why"),
    [
        ("envFile", {"envFile": ".env"}, "ignored: unknown field"),
        ("arg", {"arg": ["x"]}, "ignored: unknown field; did you mean args?"),
        ("builtin", {"builtin": True}, "ignored: unknown field"),
        ("sandboxEnabled", {"sandboxEnabled": True}, "ignored: unknown field"),
        ("headers", {"headers": {"A": "1"}}, "ignored: only for a server with a url"),
        ("serverUrl", {"serverUrl": "http://x"}, "ignored: only for a server with a url"),
    ],
)
def test_an_ignored_field_is_reported_with_file_server_and_field(
    field: str, entry: dict[str, object], why: str
) -> None:
    found = read({"s": {"command": "x", **entry}})
    assert found == ServersFile(
        {"s": ServerSettings("s", "x")}, (f"parley: f.json: mcpServers.s.{field}: {why}",)
    )


def test_the_last_value_of_a_repeated_name_counts_and_is_reported() -> None:
    found = read_text('{"mcpServers": {"s": {"command": "a"}, "s": {"command": "b"}}}')
    assert found.servers == {"s": ServerSettings("s", "b")}
    assert found.problems == (
        "parley: f.json: s: occurs twice in one table, so the last value is used",
    )
    found = read_text('{"mcpServers": {"s": {"command": "a"}}, "servers": {"s": {"command": "b"}}}')
    assert found.servers == {"s": ServerSettings("s", "a")}
    assert found.problems == ("parley: f.json: servers.s: mcpServers has a server with this name",)


def test_vs_codes_inputs_are_reported_with_a_replacement() -> None:
    found = read_text(
        """{
          "inputs": [{"type": "promptString", "id": "github-token", "description": "Token of GitHub"}],
          "servers": {
            "hub": {"url": "http://x", "headers": {"Authorization": "Bearer ${input:github-token}"}},
            "other": {"command": "x", "env": {"A": "${input:a}"}},
            "well": {"command": "x"}
          }
        }"""
    )
    assert list(found.servers) == ["well"]
    hub, other = found.problems
    assert hub == (
        "parley: f.json: servers.hub: VS Code asks for ${input:github-token} (Token of GitHub), "
        "but Parley "
        "does not: write ${env:GITHUB_TOKEN} instead, and set that variable"
    )
    assert (
        "servers.other: VS Code asks for ${input:a}, but Parley does not: write ${env:A} instead"
        in other
    )


def test_folder_placeholders_refer_to_the_project() -> None:
    entry = {
        "command": "${workspaceFolder}/serve",
        "args": ["${userHome}${/}x", "${workspaceFolderBasename}"],
    }
    assert read({"s": entry}, "/p/q").servers == {
        "s": ServerSettings("s", "/p/q/serve", ("${HOME}/x", "q"), cwd="/p/q")
    }
    assert read({"s": entry}).problems == (
        "parley: f.json: mcpServers.s: ${workspaceFolder} works only in a project's file",
    )


@pytest.mark.parametrize(
    ("path", "folder"),
    [
        ("/p/.mcp.json", "/p"),
        ("/p/.vscode/mcp.json", "/p"),
        ("/p/.cursor/mcp.json", "/p"),
        ("/p/other/mcp.json", "/p/other"),
        ("/p/.vscode/.mcp.json", "/p/.vscode"),
    ],
)
def test_a_projects_folder_is_not_its_editor_folder(path: str, folder: str) -> None:
    assert project_of(Path(path)) == Path(folder)


def test_a_projects_servers_run_in_its_folder() -> None:
    cwds = {"none": None, "dot": ".", "below": "tools", "else": "/srv", "set": "${ROOT}"}
    found = read({name: {"command": "x", "cwd": cwd} for name, cwd in cwds.items()}, "/p")
    assert {name: server.cwd for name, server in found.servers.items()} == {
        "none": "/p",
        "dot": "/p",
        "below": "/p/tools",
        "else": "/srv",
        "set": "${ROOT}",
    }


REMOTE = '"http", "sse", "streamable-http", "streamableHttp"'


IS_RESERVED = "this name is reserved for a built-in server"


@pytest.mark.parametrize(
    ("servers", "problem"),
    [
        ([1], "mcpServers: expected a server table, got [1]"),
        ({"s": 1}, "mcpServers.s: expected a table, got 1"),
        ({"s": {}}, "mcpServers.s: needs a command or a url"),
        ({"s": {"type": "stdio", "url": "http://x"}}, "mcpServers.s: needs a command or a url"),
        (
            {"s": {"type": "ws"}},
            f'mcpServers.s.type: expected "stdio", {REMOTE} or "streamable_http", got "ws"',
        ),
        ({"s": {"command": "x", "disabled": 1}}, ("mcpServers.s.disabled: expected true or false, got 1")),
        ({"s": {"command": 1}}, "mcpServers.s.command: expected a text, got 1"),
        ({"s": {"command": "x", "args": "y"}}, ("mcpServers.s.args: expected a list of texts, got \"y\"")),
        ({"s": {"command": "x", "args": [1]}}, "mcpServers.s.args[1]: expected a text, got 1"),
        ({"s": {"command": "x", "env": {"A": [1]}}}, ("mcpServers.s.env.A: expected a text, got a list")),
        (
            {"s": {"command": "x", "includeTools": "read"}},
            'mcpServers.s.enabled_tools: expected a list of texts, got "read"',
        ),
        ({"s": {"command": "x", "cwd": {}}}, "mcpServers.s.cwd: expected a text, got {}"),
        (
            {"s": {"url": "http://x", "headers": ["key"]}},
            "mcpServers.s.headers: expected a table of texts, got a list",
        ),
        ({"mock": {"command": "x"}}, f"mcpServers.mock: {IS_RESERVED}"),
        ({"workspace": {"command": "x"}}, f"mcpServers.workspace: {IS_RESERVED}"),
    ],
)  # fmt: skip
def test_an_invalid_value_is_reported_by_its_path_and_costs_one_server(
    servers: object, problem: str
) -> None:
    found = read({**servers, "well": {"command": "x"}} if isinstance(servers, dict) else servers)
    assert found.problems == (f"parley: f.json: {problem}",)
    assert tuple(found.servers) == (("well",) if isinstance(servers, dict) else ())


@pytest.mark.parametrize(
    "name", ["files/read", "", " ", "a\nb", "a\u202eb", "x" * 65, ".hidden", "a*"]
)
def test_a_name_that_rules_or_people_could_misread_is_refused(name: str) -> None:
    found = read({name: {"command": "x"}})
    assert found.servers == {}
    assert len(found.problems) == 1
    assert found.problems[0].isprintable()


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe\x00", b"[" * 100_000, b"null"])
def test_an_invalid_file_is_one_problem(content: bytes) -> None:
    found = read_servers(content, "f.json")
    assert found.servers == {}
    assert len(found.problems) == 1


def test_a_file_does_not_redefine_a_server_from_the_settings() -> None:
    file = read({"own": {"command": "evil"}, "new": {"command": "x"}})
    assert below(
        file, {"own": ServerSettings("own", "good")}, "your settings have", "f.json"
    ) == ServersFile(
        {"new": ServerSettings("new", "x")},
        ("parley: f.json: own: your settings have a server with this name",),
    )


def test_the_very_same_server_in_two_files_is_not_a_problem() -> None:
    file = read({"s": {"command": "x"}})
    assert below(file, file.servers, "another file has", "g.json") == ServersFile()


MANY = 20_000


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"mcpServers": {f"s{n}": {"command": "x", "zz": 1} for n in range(MANY)}}),
        json.dumps({"mcpServers": {"s": {"command": "x", **{f"k{n}": 1 for n in range(MANY)}}}}),
        json.dumps({"mcpServers": {"s": {"command": "x", "args": ["${" * 400_000]}}}),
        json.dumps({"mcpServers": {"s": {"command": "x", "k" * 900_000: 1}}}),
        json.dumps({
            "inputs": [{"id": "i", "description": "d" * 900_000}],
            "servers": {f"s{n}": {"command": "${input:i}"} for n in range(200)},
        }),
        f'{{"mcpServers": {{{", ".join(["`s`: 1".replace("`", chr(34))] * MANY)}}}}}',
    ],
    ids=["servers", "fields", "beginnings of variables", "a name", "descriptions", "doubles"],
)  # fmt: skip
def test_a_file_that_wastes_time_is_reported_in_few_lines(text: str) -> None:
    found = read_text(text)
    assert len(found.problems) <= 21
    assert sum(map(len, found.problems)) < 11_000


def test_a_digest_distinguishes_contents_to_the_byte() -> None:
    assert digest(b"{}") != digest(b"{} ")
    assert digest(b"") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_a_too_deeply_nested_entry_says_so_and_costs_no_other_server() -> None:
    found = read_text('{"mcpServers": ' + "[" * 100_000)
    assert found.problems == ("parley: f.json: the file: is nested too deeply",)
    for depth in range(100, 990, 10):
        deep = "[" * depth + "]" * depth
        found = read_text(
            f'{{"mcpServers": {{"odd": {{"command": "x", "args": {deep}}}, "b": {{"command": "y"}}}}}}'
        )
        assert (
            found.servers.keys() == {"b"} or "the file: is nested too deeply" in found.problems[0]
        )
        assert len(found.problems) == 1
