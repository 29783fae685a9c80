"""`parley agents` and `parley config`: the agents, and the settings with their origins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from parley.cli import main
from tests.json_schema import types_of
from tests.model_servers import served


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The settings file in a home without a key."""
    for name in (
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "GEMINI_API_KEY",
        "OPENROUTER_API_KEY",
        "OPENAI_BASE_URL",
        "XDG_DATA_HOME",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "parley").mkdir()
    return tmp_path / "parley" / "config.toml"


def lines(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    """The output of a command."""
    assert main(arguments) == 0
    return capsys.readouterr().out.splitlines()


def objects(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines(capsys, *arguments, "--json")]


def test_agents_are_listed_with_the_place_of_their_key_and_the_default_is_marked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, config: Path
) -> None:
    config.write_text(
        '[[agents]]\nname = "Mine"\nprovider = "corp"\nmodel = "m1"\n'
        '[providers.corp]\napi_key_env = "sk-1234"\n[providers.ollama]\napi_key_command = '
        '["pass", "x"]\n'
    )
    monkeypatch.setenv("OPENAI_API_KEY", "sk-5678")
    printed = lines(capsys, "agents")
    assert printed[0] == "  Mine         corp         m1                 no key: … is not set"
    assert (
        printed[1]
        == "  Claude       anthropic    claude-sonnet-5-5  no key: ANTHROPIC_API_KEY is not set"
    )
    assert (
        printed[2] == "* ChatGPT      openai       gpt-5.6            key found in OPENAI_API_KEY"
    )
    assert (
        printed[4] == "  OpenRouter   openrouter   openrouter/auto    no key: OPENROUTER_API_KEY "
        "is not set; to sign in: parley login openrouter"
    )
    assert (
        printed[5]
        == "  Ollama       ollama       llama3.1           the key comes from the command pass"
    )
    assert printed[6] == (
        "  Claude-Code  claude-code                     "
        "not installed: npm install -g @agentclientprotocol/claude-agent-acp"
    )
    assert printed[10] == "  Demo         demo         demo               built in, needs no key"
    assert "sk-" not in "".join(printed)
    first, _, third, *_, end = objects(capsys, "agents")
    key = "no key: … is not set"
    facts = {"name": "Mine", "provider": "corp", "model": "m1", "has_key": False, "key": key}
    assert first == {"type": "agent", **facts, "is_default": False}
    assert (third["has_key"], third["is_default"], end["type"]) == (True, True, "end")


def test_the_models_of_each_provider_are_printed_and_used(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    config: Path,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-5678")
    with served("openrouter", "openai") as (router, openai):
        monkeypatch.setenv("OPENAI_BASE_URL", openai)
        off = "".join(f'[providers.{name}]\nmodel_list = "off"\n' for name in ("gemini", "ollama"))
        config.write_text(f'{off}[providers.router]\nbase_url = "{router}"\n')
        printed = lines(capsys, "agents", "--models")
    assert printed[0] == "anthropic: no key. To list its models, set ANTHROPIC_API_KEY"
    assert printed[1] == "openai: 6 models, listed just now"
    assert printed[-4:] == [
        "router: 2 models, listed just now",
        "  model            window  output  $ in/out  per million tokens",
        "  openrouter/auto      2M",
        "  qwen/qwen4-max     262k   32.8k      2/10",
    ]
    # The servers are gone, but the lists are known.
    rows = objects(capsys, "agents", "--models")
    types_of(json.dumps(row) for row in rows)  # checks the schema
    models = [row["name"] for row in rows if row["type"] == "model"]
    assert models[-2:] == ["openrouter/auto", "qwen/qwen4-max"]
    assert "gpt-6.2-sol" in models
    chatgpt = next(row for row in objects(capsys, "agents") if row.get("name") == "ChatGPT")
    assert (chatgpt["model"], chatgpt["is_default"]) == ("gpt-6.2-sol", True)
    failed = lines(capsys, "agents", "--refresh")
    assert any(
        line.startswith("router: 2 models, listed ") and "cannot be" in line for line in failed
    )
    chat, problem = tmp_path / "chat.md", "the provider does not list this model"
    for front, text in (
        ("", ""),
        ("agent: openai/gpt-5", "the provider stops serving this model on 2026-12-11"),
        ("agent: router/none", problem),
        ("model: gpt-7", problem),
    ):
        chat.write_text(f"---\n{front}\n---\n\n💬: hello\n", encoding="utf-8")
        printed = lines(capsys, "check", str(chat))
        assert [text in line for line in printed] == [True] * bool(text), front


def test_settings_are_printed_with_their_origins(
    capsys: pytest.CaptureFixture[str], config: Path, tmp_path: Path
) -> None:
    config.write_text('agent = "Demo"\nno_such = 1\n[loop]\ntimeout_s = 60\n')
    assert main(["config"]) == 0
    out, err = capsys.readouterr()
    printed = out.splitlines()
    assert printed[0] == f"# {config}"
    assert f'chat_dir = "{tmp_path}/.local/share/parley/chats"  # default' in printed
    assert 'agent = "Demo"  # config.toml:1' in printed
    assert "loop.timeout_s = 60.0  # config.toml:4" in printed
    assert "tools.budget_tokens = none  # default" in printed
    assert "config.toml:2: no_such: there is no such setting" in err
    assert "in Neovim, setup() overrides these values, but the shell cannot see its settings" in err
    *rows, end = objects(capsys, "config")
    problem = "config.toml:2: no_such: there is no such setting"
    assert (rows[0], end["code"]) == ({"type": "note", "message": problem}, 0)
    row = {"type": "setting", "name": "loop.timeout_s", "value": 60.0, "origin": "config.toml:4"}
    assert row in rows


def test_a_missing_settings_file_is_reported(
    capsys: pytest.CaptureFixture[str], config: Path
) -> None:
    assert lines(capsys, "config")[0] == f"# {config}: no such file"


def test_for_a_single_setting_only_the_value_is_printed(
    capsys: pytest.CaptureFixture[str], config: Path
) -> None:
    config.write_text('chat_dir = "/my chats"\n')
    assert main(["config", "chat_dir"]) == 0
    assert capsys.readouterr() == ("/my chats\n", "")
    assert lines(capsys, "config", "loop.parallel") == ["true"]
    assert lines(capsys, "config", "safety.max_tokens_per_request") == ["none"]


def test_a_table_of_settings_is_printed_alone(capsys: pytest.CaptureFixture[str]) -> None:
    printed = lines(capsys, "config", "xml")
    assert printed == ['xml.filter = "single"  # default']


def test_an_unknown_setting_is_an_error_that_names_the_nearest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for key, nearest in (("lop", "loop"), ("loop.paralel", "loop.parallel")):
        assert main(["config", key]) == 1
        assert f"unknown setting {key}; did you mean {nearest}?" in capsys.readouterr().err
