"""A project's instructions: which files, which imports, and the text for the system prompt."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.instructions.project import (
    Instruction,
    folders,
    imported_paths,
    instruction_block,
    is_plain_name,
    selected,
)
from tests.work import ALLOWED, growth

NAMES = st.lists(
    st.sampled_from(["AGENTS.md", "CLAUDE.md", "x/GEMINI.md", "../out.md"]), max_size=4
)


@given(NAMES, st.none() | NAMES)
def test_a_chat_can_only_leave_names_out(names: list[str], wanted: list[str] | None) -> None:
    chosen = selected(names, wanted)
    assert [name for name in names if name in chosen] == list(chosen)
    assert wanted is None or set(chosen) <= set(wanted)
    assert wanted is not None or list(chosen) == names
    assert selected(names, ()) == ()


def test_a_block_names_each_file_above_its_text() -> None:
    both = (
        Instruction("AGENTS.md", "Be brief."),
        Instruction("docs/style.md", "Use tabs.\n\nAlways."),
    )
    assert instruction_block(both) == (
        "# Instructions from AGENTS.md\n\nBe brief.\n\n"
        "# Instructions from docs/style.md\n\nUse tabs.\n\nAlways."
    )
    assert instruction_block(()) == ""


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("@docs/style.md", ["docs/style.md"]),
        ("Read @README and @package.json.", ["README", "package.json"]),
        ("- @./a.md, (@b.md)\n@c.md", ["./a.md", "c.md"]),
        ("@~/notes.md @/etc/passwd @../up.md", ["~/notes.md", "/etc/passwd", "../up.md"]),
        ("@a.md @a.md", ["a.md"]),
        ("mail me@example.org", []),
        ("run `npm i @scope/x` or `` a ` @b ``, then @c", ["c"]),
        ("an unclosed ` before @d", ["d"]),
        ("```sh\n@e\n```\n@f", ["f"]),
        ("~~~\n```\n@g\n~~~ x\n@h\n~~~~\n@i", ["i"]),
        ("@ alone, @@double@@", []),
    ],
)
def test_imports_are_paths_after_an_at_sign_outside_of_code(text: str, paths: list[str]) -> None:
    assert imported_paths(text) == paths


def test_looking_for_imports_takes_linear_time() -> None:
    def run(size: int) -> None:
        runs = " ".join("`" * (1 + n % 50) for n in range(size))
        imported_paths(f"{runs} @a" + " @" * size + "@" * size + "`" * size)

    assert growth(run, 2_000) < ALLOWED


def test_the_nearest_folder_comes_last() -> None:
    assert folders(Path("/w"), Path("/w/a/b")) == [Path("/w"), Path("/w/a"), Path("/w/a/b")]
    assert folders(Path("/w"), Path("/w")) == [Path("/w")]


@pytest.mark.parametrize("name", ["AGENTS.md", ".github/copilot-instructions.md", "a..b"])
def test_a_setting_names_a_file_in_the_folder(name: str) -> None:
    assert is_plain_name(name)


@pytest.mark.parametrize("name", ["", "/etc/passwd", "../up.md", "a/../../b", ".", "x\0y"])
def test_a_setting_names_no_file_elsewhere(name: str) -> None:
    assert not is_plain_name(name)
