"""`parley replay` works offline, writes no file, prints a diff, and sets the exit code."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from parley.cli import main

CHAT = "💬: one\n\n🤖:[Demo]\n\nYes.\n\n💬: two\n\n🤖:[Demo]\n\nNo.\n"
DECIDED = (
    '❓:[ya] `{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}`\n\n'
    "🛠️: [f][c]\n\n`a`\n\n"
)


@pytest.fixture
def replay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)

    def replay(text: str, *options: str, toml: str = "") -> tuple[int, str, str]:
        config = tmp_path / "home" / "parley" / "config.toml"
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(toml, encoding="utf-8")
        path = tmp_path / "chat.md"
        path.write_text(text, encoding="utf-8")
        code = main(["replay", "chat.md", *options])
        assert path.read_text(encoding="utf-8") == text
        assert not (tmp_path / "home" / "parley" / "ledger.db").exists()
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return replay


def test_an_identical_replay_is_reported_and_loads_no_code_that_could_send(
    replay: Callable[..., tuple[int, str, str]],
) -> None:
    before = {"openai", "anthropic", "mcp"} & sys.modules.keys()
    assert replay(CHAT) == (0, "the replay produced the same chat, in 2 requests\n", "")
    assert {"openai", "anthropic", "mcp"} & sys.modules.keys() == before


def test_a_different_replay_prints_a_diff_and_fails(
    replay: Callable[..., tuple[int, str, str]],
) -> None:
    text = CHAT.replace("Yes.", DECIDED + "Yes.")
    assert replay(text)[0] == 0
    code, out, _ = replay(text, toml='safety.blocked_tool_patterns = ["f*"]')
    assert code == 1
    assert "-`a`\n+`Tool f is blocked by the pattern 'f*'`\n" in out
    assert out.endswith("the replay produced a different chat, in 3 requests\n")


def test_requests_are_lines_in_the_format_of_the_agents_provider(
    replay: Callable[..., tuple[int, str, str]],
) -> None:
    code, out, _ = replay(
        CHAT, "--requests", "--agent", "ChatGPT", toml='system_prompt = "Be kind."'
    )
    lines = [json.loads(line) for line in out.splitlines()]
    assert (code, [line["exchange"] for line in lines]) == (0, [1, 2])
    assert {line["provider"] for line in lines} == {"openai"}
    assert all("Be kind." in json.dumps(line["body"]) for line in lines)


def test_an_unknown_agent_is_an_error(replay: Callable[..., tuple[int, str, str]]) -> None:
    code, out, err = replay(CHAT, "--agent", "Nobody")
    assert (code, out) == (1, "")
    assert "there is no agent 'Nobody'" in err


def test_unreadable_front_matter_is_an_error(replay: Callable[..., tuple[int, str, str]]) -> None:
    assert replay(f"---\n[\n---\n{CHAT}")[0] == 1
