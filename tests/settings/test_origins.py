"""Each setting's origin; no value contains a secret."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from parley.paths import config_path
from parley.settings.load import SettingsFile, load_settings, settings_file
from parley.settings.origins import entries
from parley.settings.values import Settings

SECRET = "hunter2"
TOML = f"""\
max_tool_calls = 5
fill_topic = true
[loop]
max_iterations = "many"
timeout_s = 60

[[agents]]
name = "Bad]"
provider = "corp"
model = "m1"
[[agents]]
name = "Mine"
provider = "corp"
model = "m1"
max_tokens = 77

[providers.corp]
base_url = "https://me:{SECRET}@corp.example/v1?token={SECRET}"
api_key_env = "{SECRET}"
[providers.other]
base_url = "http://[{SECRET}"
api_key_command = ["pass", "{SECRET}"]

[approval]
auto = ["mock/*"]

[mcp.servers.files]
command = "npx"
args = ["-y", "server", "--api-key", "{SECRET}", "--token={SECRET}", "--key", "${{KEY}}", "http://me:{SECRET}@x/"]
env = {{ A = "{SECRET}", B = "${{B}}", C = "HUNTER2", D = "${{D:-{SECRET}}}", E = "${{env:E}}{SECRET}" }}
enabled = true
[mcp.servers.far]
url = "https://far.example/mcp?key={SECRET}"
headers = {{ Authorization = "${{A:-Bearer {SECRET}}}", B = "${{env:B}}" }}
client_secret = "HUNTER2"
token_command = ["pass", "{SECRET}"]
"""


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"XDG_CONFIG_HOME": str(tmp_path), "HOME": str(tmp_path)}


def rows(environ: Mapping[str, str], toml: str | None = None) -> dict[str, tuple[Any, str]]:
    """Value and origin of each setting, by its name."""
    if toml is not None:
        config_path(environ).parent.mkdir(exist_ok=True)
        config_path(environ).write_text(toml, encoding="utf-8")
    settings, _ = load_settings(environ)
    return {
        row.name: (row.value, row.origin)
        for row in entries(settings, settings_file(environ), environ)
    }


def test_without_a_file_all_settings_are_defaults_in_effect(environ: dict[str, str]) -> None:
    known = rows(environ)
    assert {origin for _, origin in known.values()} == {"default"}
    assert known["agent"] == ("Demo", "default")
    assert known["chat_dir"] == (f"{environ['HOME']}/.local/share/parley/chats", "default")
    assert known["keys.choices.ya"] == ("ya", "default")
    assert (known["mcp.servers"], known["agents"], known["approval.auto"]) == (
        ({}, "default"),
        ([], "default"),
        ([], "default"),
    )


def test_a_setting_in_the_file_has_its_line(environ: dict[str, str]) -> None:
    known = rows(environ, TOML)
    assert known["max_tool_calls.per_message"] == (5, "config.toml:1")
    assert known["max_tool_calls.per_session"] == (None, "default")
    assert known["fill_topic"] == (True, "config.toml:2")  # the same as without it
    assert known["loop.max_iterations"] == (10, "default")  # the file's value is invalid
    assert known["loop.timeout_s"] == (60.0, "config.toml:5")
    assert known["loop.parallel"] == (True, "default")
    assert known["approval.auto[1]"] == ({"tool": "mock/*"}, "config.toml:25")
    assert known["mcp.servers.files.enabled"] == (True, "config.toml:31")
    assert "mcp.servers.files.timeout_s" not in known
    mine = {"name": "Mine", "provider": "corp", "model": "m1", "max_tokens": 77}
    assert known["agents[1]"] == (mine, "config.toml:7")  # the first is dropped
    assert "agents[2]" not in known


def test_an_agent_has_its_tables_line(environ: dict[str, str]) -> None:
    tables = "".join(f'[[agents]]\nname = "{n}"\nprovider = "openai"\nmodel = "m"\n' for n in "ab")
    known = rows(environ, tables)
    assert [known[f"agents[{n}]"][1] for n in (1, 2)] == ["config.toml:1", "config.toml:5"]


def test_no_value_contains_a_possible_secret(environ: dict[str, str]) -> None:
    known = rows(environ, TOML)
    assert SECRET not in repr(known).lower()
    assert known["providers.corp.base_url"][0] == "https://…@corp.example/v1?…"
    assert known["providers.corp.api_key_env"][0] == "…"
    assert known["providers.other.base_url"][0] == "…"
    assert known["providers.other.api_key_command"][0] == ["pass", "…"]
    hidden = ["-y", "server", "--api-key", "…", "--token=…", "--key", "${KEY}", "http://…@x/"]
    assert known["mcp.servers.files.args"][0] == hidden
    assert known["mcp.servers.files.env"][0] == {
        "A": "…",
        "B": "${B}",
        "C": "…",
        "D": "${D:-…}",
        "E": "…",
    }
    assert known["mcp.servers.far.url"][0] == "https://far.example/mcp?…"
    assert known["mcp.servers.far.headers"][0] == {"Authorization": "${A:-…}", "B": "${env:B}"}
    assert known["mcp.servers.far.client_secret"][0] == "…"
    assert known["mcp.servers.far.token_command"][0] == ["pass", "…"]


@pytest.mark.parametrize(
    ("arguments", "hidden"),
    [
        (["--dsn=postgres://me:{}@h/db"], ["--dsn=…"]),
        (["--db", "postgres://me:a/{}@h/db"], ["--db", "postgres://…@h/db"]),
        (["--db=mysql://me:{}@h/db?a={}"], ["--db=mysql://…@h/db?…"]),
        (['{{"url": "https://me:{}@h/x", "a": 1}}'], ['{"url": "https://…@h/x", "a": 1}']),
        (["-H", "Cookie: a={}", "-h", "here"], ["-H", "…", "-h", "here"]),
        (["--header", "X-Site: {}"], ["--header", "…"]),
        (["X-Site: Bearer {}"], ["X-Site: Bearer …"]),
        (["--pat", "{}", "--path", "x"], ["--pat", "…", "--path", "x"]),
        (["--pwd={}", "--credentials", "{}"], ["--pwd=…", "--credentials", "…"]),
        (["--token", "HUNTER2"], ["--token", "…"]),
        (
            ["--token", "${{API_KEY:-{}}}", "${{PORT:-{}}}"],
            ["--token", "${API_KEY:-…}", "${PORT:-…}"],
        ),
        (["http://h/${{K:-{}}}/x", "${{K:-{}"], ["http://h/${K:-…}/x", "${K:-…"]),
        (["ghp_{}aaaaaaaaaaaaaaaaaa", "x-sk-{}-aaaaaaaaaaaaaaaaaa"], ["…", "x-…"]),
        (["-y", "@scope/server@1.2", "--port", "80", "/a/b:c", "https://h/p"], None),
    ],
)
def test_no_value_contains_a_secret_from_a_programs_arguments(
    environ: dict[str, str], arguments: list[str], hidden: list[str] | None
) -> None:
    texts = [text.format(*[SECRET] * 2) if hidden else text for text in arguments]
    known = rows(environ, f"[mcp.servers.a]\ncommand = 'x'\nargs = {json.dumps(texts)}\n")
    assert known["mcp.servers.a.args"][0] == (hidden or arguments)


def test_a_variable_sets_an_address_a_folder_and_the_agent(environ: dict[str, str]) -> None:
    environ |= {"OPENAI_BASE_URL": f"http://u:{SECRET}@localhost:1/v1", "XDG_DATA_HOME": "/d"}
    environ |= {"OPENAI_API_KEY": SECRET, "CORP_URL": "http://corp.example"}
    toml = '[providers.corp]\nbase_url = "http://old.example"\nbase_url_env = "CORP_URL"\n'
    known = rows(environ, toml)
    assert known["agent"] == ("ChatGPT", "environment OPENAI_API_KEY")
    assert known["chat_dir"] == ("/d/parley/chats", "environment XDG_DATA_HOME")
    assert known["providers.openai.base_url"] == (
        "http://…@localhost:1/v1",
        "environment OPENAI_BASE_URL",
    )
    assert known["providers.corp.base_url"] == ("http://corp.example", "environment CORP_URL")
    command = '[providers.anthropic]\nkind = "anthropic"\napi_key_command = ["pass"]\n'
    assert rows(environ, command)["agent"] == ("Claude", "config.toml:3")
    signed_in = Settings().with_logins(["openrouter"])
    found = entries(signed_in, SettingsFile(Path("config.toml")), {})
    assert [(row.value, row.origin) for row in found if row.name == "agent"] == [
        ("OpenRouter", "sign-in")
    ]
    assert not [row for row in found if row.name.startswith(("logins", "providers."))]


def test_another_files_servers_have_its_name(environ: dict[str, str], tmp_path: Path) -> None:
    servers = tmp_path / "servers.json"
    servers.write_text('{"mcpServers": {"there": {"command": "npx", "args": ["x"]}}}')
    known = rows(environ, f"mcp.config_file = '{servers}'\n")
    assert known["mcp.servers.there.command"] == ("npx", str(servers))
    assert known["mcp.config_file"] == (str(servers), "config.toml:1")


def test_a_providers_headers_are_shown_without_their_values(environ: dict[str, str]) -> None:
    table = (
        '[providers.lab]\nbase_url = "http://127.0.0.1"\n'
        'headers = { X-Token = "abc-secret", X-App = "${APP}", X-Or = "Bearer ${A:-hidden}" }\n'
        "parameters = { top_k = 40 }\n"
    )
    known = rows(environ, table)
    headers = {"X-Token": "…", "X-App": "${APP}", "X-Or": "…"}
    assert known["providers.lab.headers"] == (headers, "config.toml:3")
    assert known["providers.lab.parameters"] == ({"top_k": 40}, "config.toml:4")


def test_parameters_are_shown_without_keys(environ: dict[str, str]) -> None:
    parameters = (
        '{ max_tokens = 9, tier = "flex", extra = { api_key = "abc", all = ["Bearer abc"] } }'
    )
    table = (
        f'[providers.lab]\nbase_url = "http://127.0.0.1"\nparameters = {parameters}\n'
        f'[[agents]]\nname = "A"\nprovider = "lab"\nmodel = "m"\nparameters = {parameters}\n'
    )
    known, extra = rows(environ, table), {"api_key": "…", "all": ["Bearer …"]}
    shown = {"max_tokens": 9, "tier": "flex", "extra": extra}
    assert known["providers.lab.parameters"] == (shown, "config.toml:3")
    assert known["agents[1]"][0]["parameters"] == shown
