"""The documents say what is so: examples are read and run, defaults and names compared with the code."""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from nvim.harness import nvim_path
from parley.chat.reader import parse
from parley.chat.writer import render
from parley.cli import _parser
from parley.settings import AGENTS, PROVIDERS, SYSTEM_PROMPT, Settings
from parley.settings_reader import read_settings
from parley.tools.servers import ServerSettings

ROOT = Path(__file__).parent.parent
README, FORMAT, HELP = ROOT / "README.md", ROOT / "doc" / "transcript.md", ROOT / "doc" / "parley.txt"
PAGES = [README, *sorted((ROOT / "doc").glob("*.md")), ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"]

_FENCE = re.compile(
    r"^(?P<in> *)(?P<ticks>`{3,})(?P<info>[^`\n]*)\n(?P<body>.*?)^(?P=in)(?P=ticks)$", re.M | re.S
)


def examples(page: Path, info: str) -> list[str]:
    """The fenced blocks of a page with this info string, without the indentation of their fence."""
    found = _FENCE.finditer(page.read_text(encoding="utf-8"))
    return [re.sub(rf"^{f['in']}", "", f["body"], flags=re.M) for f in found if f["info"] == info]


def table(page: Path, *columns: str) -> Iterator[list[str]]:
    """The rows of the table with these first columns, cell by cell."""
    lines = page.read_text(encoding="utf-8").split("\n")
    head = "| " + " | ".join(columns)
    start = next(number for number, line in enumerate(lines) if line.startswith(head)) + 2
    for line in lines[start:]:
        if not line.startswith("|"):
            return
        yield [cell.strip() for cell in line[1:-1].split("|")]


def without_blank_lines(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.strip()]


# --- Chats ------------------------------------------------------------------------------------------------

CHATS = [example for page in (README, FORMAT) for example in examples(page, "parley")]


@pytest.mark.parametrize("chat", CHATS)
def test_an_example_reads_without_problems_and_round_trips(chat: str) -> None:
    transcript = parse(chat)
    assert transcript.problems == ()
    assert parse(render(transcript)) == transcript
    assert without_blank_lines(render(transcript)) == without_blank_lines(chat)


@pytest.mark.parametrize("chat", examples(FORMAT, "parley problems"))
def test_an_example_of_problems_has_them_and_round_trips(chat: str) -> None:
    transcript = parse(chat)
    assert len(transcript.problems) == 3
    assert all(problem.severity != "error" for problem in transcript.problems)
    assert parse(render(transcript)) == transcript


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_is_no_chat_itself(page: Path) -> None:
    assert parse(page.read_text(encoding="utf-8")).exchanges == ()


# --- Settings ---------------------------------------------------------------------------------------------


def lua(value: object) -> str:
    """A default as the documents write it."""
    match value:
        case None:
            return "nil"
        case bool():
            return "true" if value else "false"
        case str():
            return f'"{value}"'
        case int() | float():
            return f"{value:g}" if isinstance(value, float) else str(value)
        case _:
            assert not value, f"a default that is neither plain nor empty: {value!r}"
            return "{}"


def defaults(value: Any, path: str = "") -> Iterator[tuple[str, object]]:
    """Every setting by its path, with its default."""
    for each in fields(value):
        default = getattr(value, each.name)
        if is_dataclass(default):
            yield from defaults(default, f"{path}{each.name}.")
        else:
            yield f"{path}{each.name}", default


def test_the_readme_names_every_setting_with_its_default() -> None:
    told = {name.strip("`"): default.strip("`") for name, default, *_ in table(README, "setting", "default")}
    assert told.pop("system_prompt") == "*below*"
    assert {name: default for name, default in told.items() if default} == {
        name: lua(default) for name, default in defaults(Settings()) if name != "system_prompt"
    }


def test_the_readme_quotes_the_system_prompt() -> None:
    assert examples(README, "text") == [SYSTEM_PROMPT + "\n"]


def test_the_readme_names_the_fields_of_a_server_with_their_defaults() -> None:
    rows = list(table(README, "field", "default"))
    known = dict(defaults(ServerSettings("")))
    told = {name: default.strip("`") for names, default, *_ in rows for name in re.findall(r"`(\w+)`", names)}
    assert set(told) == set(known) - {"name", "builtin"}
    assert all(lua(known[name]) == default for name, default in told.items() if default)


def test_the_readme_names_every_agent_with_its_key_and_address() -> None:
    told = [[cell.strip("`") for cell in row] for row in table(README, "agent", "provider", "model")]
    assert told == [
        [a.name, a.provider, a.model, p.api_key_env or "", p.base_url_env or ""]
        for a in AGENTS
        for p in (PROVIDERS[a.provider],)
    ]


def test_the_help_quotes_no_other_default() -> None:
    known = dict(defaults(Settings()))
    told = re.findall(r"^`?([a-z_]+(?:\.[a-z_]+)*)`?\s+\(?default:? `?([^`\n)]+)`?\)?$", _help(), re.M)
    assert all(lua(known[name]) == default for name, default in told if name in known)


def _help() -> str:
    return HELP.read_text(encoding="utf-8") if HELP.exists() else ""


@pytest.mark.parametrize("example", examples(README, "toml"))
def test_a_toml_example_is_read_without_complaint(example: str) -> None:
    assert read_settings(tomllib.loads(example))[1] == ()


@pytest.mark.parametrize("example", [e for e in examples(README, "lua") if "setup" in e])
def test_a_lua_example_is_read_without_complaint(example: str, tmp_path: Path) -> None:
    script = tmp_path / "example.lua"
    script.write_text(
        "package.loaded.parley = { setup = function(t) io.write(vim.json.encode(t)) end }\n" + example,
        encoding="utf-8",
    )
    ran = subprocess.run([nvim_path(), "--clean", "-l", script], capture_output=True, text=True, check=True)
    assert read_settings(json.loads(ran.stdout or ran.stderr))[1] == ()


# --- Commands ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", [*PAGES, HELP], ids=lambda page: page.name)
def test_every_command_that_is_named_exists(page: Path) -> None:
    if not page.exists():
        pytest.skip("not written yet")
    defined = re.findall(r"^  (\w+) = \{", (ROOT / "plugin" / "parley.lua").read_text(encoding="utf-8"), re.M)
    named = re.findall(r":Parley([A-Z]\w*)", page.read_text(encoding="utf-8"))
    assert set(named) <= set(defined)


def test_the_readme_names_every_command_of_the_shell() -> None:
    parsers = [a for a in _parser()._actions if isinstance(a, argparse._SubParsersAction)]
    cells = [cell.strip("`").split() for cell, *_ in table(README, "command", "what it does")]
    named = [words[1].strip("`") for words in cells if words[0] == "parley"]
    assert sorted(named) == sorted(parsers[0].choices)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_to_a_file_leads_to_one(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.fixture
def shell(tmp_path: Path) -> dict[str, str]:
    """An environment with nothing of the user's in it."""
    homes = {f"XDG_{name}_HOME": str(tmp_path / name) for name in ("CONFIG", "STATE", "DATA", "CACHE")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**homes, "HOME": str(tmp_path), "PATH": path, "PARLEY_DEMO_PACE": "0", "LC_ALL": "C.UTF-8"}


def test_the_session_in_the_readme_is_what_its_commands_make(tmp_path: Path, shell: dict[str, str]) -> None:
    commands = [line.removeprefix("$ ") for line in examples(README, "console")[0].splitlines()]
    ran = [subprocess.run(["sh", "-c", c], cwd=tmp_path, env=shell, capture_output=True) for c in commands]
    assert [each.returncode for each in ran] == [0, 3, 0, 0]
    assert (tmp_path / "stocks.md").read_text(encoding="utf-8") == examples(README, "parley")[0]


def test_the_library_example_runs(tmp_path: Path, shell: dict[str, str]) -> None:
    code = examples(README, "python")[0]
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=shell, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    assert "GOOGL) is at $911" in ran.stdout
    assert parse(ran.stdout[ran.stdout.index("💬:") :]).problems == ()
