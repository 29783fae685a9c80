"""The first line of a command's result, which says how the command ended."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.tools.command_results import command_failure, command_head


@given(
    st.none() | st.integers(-64, 255),
    st.none() | st.floats(1, 3600),
    st.floats(0, 10_000),
    st.booleans(),
    st.text(),
)
def test_the_screen_reads_each_line_that_the_tool_writes(
    exit_code: int | None, late_s: float | None, seconds: float, is_sandboxed: bool, rest: str
) -> None:
    text = f"{command_head(exit_code, late_s, seconds, is_sandboxed=is_sandboxed)}\n{rest}"
    if late_s is not None:
        assert command_failure(text) == "time limit"
    elif exit_code is None:
        assert command_failure(text) == "no end"
    else:
        assert command_failure(text) == (f"exit {exit_code}" if exit_code else "")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "exit code 1",
        "[exit code 1]",
        "out\n[exit code 1, 0.1 s, sandboxed]",
        "[exit code 1, 0.1 s",
    ],
)
def test_other_results_are_no_failed_commands(text: str) -> None:
    assert command_failure(text) == ""
