"""A result's body has a clear end, regardless of its content."""

from __future__ import annotations

import pytest

from parley.chat.result_bodies import quote_body, read_body


@pytest.mark.parametrize(
    "body", ["a`", "`a", "a ", " a", "`", "``", "a`b", "a``b`c", "a\n```\nb", "```", "a\n", ""]
)
def test_a_body_is_read_back_as_it_was_quoted(body: str) -> None:
    lines = quote_body(body)
    assert read_body([*lines, "", "after"]) == (body, len(lines), None)


@pytest.mark.parametrize(
    ("body", "first"), [("a`", "```"), ("`a", "```"), ("a ", "```"), ("a`b", "``a`b``")]
)
def test_a_body_that_a_span_cannot_hold_is_fenced(body: str, first: str) -> None:
    assert quote_body(body)[0] == first


@pytest.mark.parametrize("other", ["````", "``", "~~~", "```text", "``` `"])
def test_a_fence_is_closed_only_by_a_line_of_as_many_backticks(other: str) -> None:
    assert read_body(["```", "a", other, "b", "```", "c"]) == (f"a\n{other}\nb", 5, None)
    assert read_body(["```", "a", other])[2] == "no ``` line closes this result's fence"
