"""The help: its tags are there, its commands are those there are, its defaults those of the settings."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from nvim.harness import ROOT, Child
from parley.settings import Settings

HELP = (ROOT / "doc" / "parley.txt").read_text(encoding="utf-8")


def test_helptags_are_made_without_complaint(plain: Child, tmp_path: Path) -> None:
    (tmp_path / "parley.txt").write_text(HELP, encoding="utf-8")
    plain.command(f"helptags {tmp_path}")
    tags = {line.split("\t")[0] for line in (tmp_path / "tags").read_text(encoding="utf-8").splitlines()}
    linked = set(re.findall(r"\|((?:parley|:Parley|b:parley|g:parley)[^|\s]*)\|", HELP))
    assert linked - tags == set()


def test_every_command_and_no_other_is_in_the_help(plain: Child) -> None:
    commands = {f":{name}" for name in plain.nvim.api.get_commands({}) if name.startswith("Parley")}
    assert set(re.findall(r"\*(:Parley\w+)\*", HELP)) == commands


def test_the_defaults_are_those_of_the_settings(plain: Child) -> None:
    shown = re.search(r">lua\n    \{\n      chat_dir.*?\n    \}\n<", HELP, re.DOTALL)
    assert shown
    table = plain.lua(
        "return loadstring(...)()", "return " + shown[0].removeprefix(">lua\n").removesuffix("<")
    )
    table["system_prompt"] = Settings().system_prompt
    assert table == _plain(Settings())


def _plain(value: Any) -> Any:
    """As Lua has it: without what is nil; nothing in a table is an empty list."""
    if is_dataclass(value):
        named = {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
        return {name: each for name, each in named.items() if each is not None} or []
    if isinstance(value, tuple) or hasattr(value, "items"):
        return []
    return int(value) if isinstance(value, float) and value == int(value) else value


def test_no_line_is_wider_than_help_is() -> None:
    assert [line for line in HELP.splitlines() if len(line) > 84] == []
