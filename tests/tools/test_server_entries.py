"""Each of the other programs' server files is read as that program means it."""

from __future__ import annotations

import json

import pytest

from parley.tools.mcp_files import ServersFile, read_servers
from parley.tools.server_settings import ServerSettings

LOCAL = ServerSettings("s", "npx", ("-y", "pkg"), {"A": "1"})
REMOTE = ServerSettings("s", url="https://x/mcp", headers={"B": "2"})


def read(text: str | dict[str, object]) -> ServersFile:
    return read_servers((text if isinstance(text, str) else json.dumps(text)).encode(), "f")


@pytest.mark.parametrize(
    ("table", "server"),
    [
        ({"context_servers": {"s": {"source": "custom", "command": "npx", "args": ["-y", "pkg"],
                                    "env": {"A": "1"}}}}, LOCAL),
        ({"context_servers": {"s": {"command": {"path": "npx", "args": ["-y", "pkg"], "env": {"A": "1"}}}}},
         LOCAL),
        ({"context_servers": {"s": {"url": "https://x/mcp", "headers": {"B": "2"}}}}, REMOTE),
        ({"mcp": {"s": {"type": "local", "command": ["npx", "-y", "pkg"], "environment": {"A": "1"}}}},
         LOCAL),
        ({"mcp": {"s": {"type": "remote", "url": "https://x/mcp", "headers": {"B": "2"}}}}, REMOTE),
        ({"mcp": {"servers": {"s": {"type": "local", "command": ["npx", "-y", "pkg"], "env": {"A": "1"}}}}},
         LOCAL),
        ({"editor.fontSize": 12, "mcp": {"inputs": [], "servers": {"s": {"command": "npx", "env": {"A": "1"},
                                                                      "args": ["-y", "pkg"]}}}}, LOCAL),
        ({"mcpServers": {"s": {"type": "local", "command": "npx", "args": ["-y", "pkg"],
                               "env": {"A": 1, "B": None}, "tools": ["*"]}}},
         ServerSettings("s", "npx", ("-y", "pkg"), {"A": "1"}, enabled_tools=("*",))),
        ({"mcpServers": {"s": {"command": ["npx"], "args": ["-y"], "env": {"A": True, "B": 1.5}}}},
         ServerSettings("s", "npx", ("-y",), {"A": "true", "B": "1.5"})),
    ],
)  # fmt: skip
def test_entries_with_other_programs_words_are_read(
    table: dict[str, object], server: object
) -> None:
    assert read(table) == ServersFile({"s": server})  # type: ignore[dict-item]


CODEX = """
model = "gpt"
[mcp_servers.s]
command = "npx"
args = ["-y", "pkg"]
env = { A = "1" }
env_vars = ["B"]
startup_timeout_sec = 20
tool_timeout_sec = 90
enabled_tools = ["read", "write"]
disabled_tools = ["write"]
[mcp_servers.web]
url = "https://x/mcp"
enabled = false
bearer_token_env_var = "TOKEN"
http_headers = { C = "3" }
env_http_headers = { D = "DEE" }
"""


def test_codexs_toml_is_read() -> None:
    headers = {"Authorization": "Bearer ${TOKEN}", "C": "3", "D": "${DEE}"}
    assert read(CODEX) == ServersFile(
        {
            "s": ServerSettings(
                "s",
                "npx",
                ("-y", "pkg"),
                {"A": "1", "B": "${B}"},
                start_timeout_s=20,
                timeout_s=90,
                enabled_tools=("read", "write"),
                disabled_tools=("write",),
            ),
            "web": ServerSettings("web", url="https://x/mcp", headers=headers, enabled=False),
        }
    )


GOOSE = """
GOOSE_MODEL: a-model
extensions:
  developer: {enabled: true, type: builtin, name: developer}
  s:
    type: stdio
    cmd: npx
    args: [-y, pkg]
    envs: {A: 1}
    env_keys: [B]
    enabled: true
    timeout: 300
    available_tools: []
  web: {type: streamable_http, uri: "https://x/mcp", enabled: false, available_tools: [read]}
"""


def test_gooses_yaml_is_read_without_its_built_in_extensions() -> None:
    env = {"A": "1", "B": "${B}"}
    assert read(GOOSE) == ServersFile(
        {
            "s": ServerSettings("s", "npx", ("-y", "pkg"), env, timeout_s=300),
            "web": ServerSettings(
                "web", url="https://x/mcp", enabled=False, enabled_tools=("read",)
            ),
        }
    )


@pytest.mark.parametrize("text", [CODEX + "[", GOOSE + "  - [", "mcp_servers", "extensions: [1]"])
def test_a_fault_in_such_a_file_is_one_problem(text: str) -> None:
    file = read(text)
    assert (file.servers, len(file.problems), file.is_unreadable) == ({}, 1, True)


@pytest.mark.parametrize("text", [CODEX, GOOSE])
def test_a_projects_file_is_json(text: str) -> None:
    assert "invalid JSON" in read_servers(text.encode(), "f", "/p").problems[0]


TOOLS = ("read", "write", "run")


@pytest.mark.parametrize(
    ("entry", "offered"),
    [
        ({"enabled_tools": ["read"]}, {"read"}),
        ({"enabledTools": ["read"]}, {"read"}),
        ({"includeTools": ["read", "run"]}, {"read", "run"}),
        ({"tools": []}, set()),
        ({"disabled_tools": ["run"]}, {"read", "write"}),
        ({"excludeTools": ["run"]}, {"read", "write"}),
        ({"disabledTools": ["run"], "excludeTools": ["write"]}, {"read"}),
        ({"includeTools": ["read", "write"], "enabled_tools": ["write", "run"]}, {"write"}),
        ({"enabledTools": ["*"], "includeTools": ["read"]}, {"read"}),
        ({"includeTools": ["read", "run"], "excludeTools": ["run"]}, {"read"}),
        ({"includeTools": None}, set(TOOLS)),
    ],
)
def test_both_lists_that_narrow_the_offer_count(
    entry: dict[str, object], offered: set[str]
) -> None:
    file = read({"mcpServers": {"s": {"command": "x", **entry}}})
    assert file.problems == ()
    assert {tool for tool in TOOLS if file.servers["s"].takes(tool)} == offered
