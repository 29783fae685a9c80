"""The help: its tags exist, and its commands are Parley's."""

from __future__ import annotations

import re
from pathlib import Path

from tests.nvim.harness import ROOT, Child

HELP = (ROOT / "doc" / "parley.txt").read_text(encoding="utf-8")


def test_helptags_are_generated_without_complaint(plain: Child, tmp_path: Path) -> None:
    (tmp_path / "parley.txt").write_text(HELP, encoding="utf-8")
    plain.command(f"helptags {tmp_path}")
    tags = {
        line.split("\t")[0] for line in (tmp_path / "tags").read_text(encoding="utf-8").splitlines()
    }
    linked = set(re.findall(r"\|((?:parley|:Parley|b:parley|g:parley)[^|\s]*)\|", HELP))
    assert linked - tags == set()


def test_the_help_has_exactly_parleys_commands(plain: Child) -> None:
    commands = {f":{name}" for name in plain.nvim.api.get_commands({}) if name.startswith("Parley")}
    assert set(re.findall(r"\*(:Parley\w+)\*", HELP)) == commands


def test_no_line_is_wider_than_a_help_page() -> None:
    assert [line for line in HELP.splitlines() if len(line) > 78] == []
