"""A command's program, as shown to people."""

from __future__ import annotations

import pytest

from parley.programs import program_name


@pytest.mark.parametrize("name", ["pass", "secret-tool", "/usr/bin/x Y", "~/bin/Key", "./keys"])
def test_a_program_is_shown(name: str) -> None:
    assert program_name((name, "-v")) == name


@pytest.mark.parametrize(
    "name", ["sk-ant-api03-Ab12", "ghp_ABCD1234", "Hunter2", "hunter2", "a b", ""]
)
def test_a_word_that_may_be_a_key_is_hidden(name: str) -> None:
    assert program_name((name,)) == "…"
