"""An edit that the user has changed: its arguments make exactly the text that the user approved."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from parley.tools.edited_calls import edited_arguments
from parley.tools.file_edits import file_edits

_TEXTS = st.lists(st.sampled_from(["a\n", "b\n", "b\r\n", "\n", "  c\n", "end"]), max_size=8).map(
    "".join
)


@given(_TEXTS, _TEXTS)
@example("a\na\na\n", "a\nb\na\n")
@example("a\nb\n", "")
@example("b\n", "a\nb\n")
@example("a\n", "b\r\n")
def test_the_arguments_make_the_users_text_or_there_are_none(before: str, after: str) -> None:
    for tool in ("edit_file", "write_file"):
        edited = edited_arguments(tool, {"path": "x"}, before, after)
        if edited is None:
            assert before == after or "\r\n" in before + after or not before
        else:
            (edit,) = file_edits(tool, edited, is_own=True)
            assert edit.applied(before) == after


def test_a_new_file_may_be_edited() -> None:
    for tool in ("edit_file", "write_file"):
        edited = edited_arguments(tool, {"path": "x"}, None, "a\n")
        assert edited is not None
        assert file_edits(tool, edited, is_own=True)[0].applied(None) == "a\n"


def test_only_the_changed_lines_are_sent() -> None:
    before = "".join(f"line {n}\n" for n in range(100))
    after = before.replace("line 50\n", "line fifty\n")
    edited = edited_arguments("edit_file", {"path": "x", "edits": []}, before, after)
    assert edited == {"path": "x", "edits": [{"old": "line 50\n", "new": "line fifty\n"}]}


def test_other_tools_are_not_edited() -> None:
    assert edited_arguments("delete_file", {"path": "x"}, "a", "b") is None


CHANGED = {
    "one of several equal lines": ("a\nb\na\nc\n", "a\nb\nx\nc\n", 1),
    "two places": ("a\nb\nc\nd\n", "x\nb\nc\ny\n", 2),
    "an added line": ("a\nb\n", "a\nnew\nb\n", 1),
    "lines that repeat": ("a\na\na\na\n", "a\nb\na\na\n", 1),
    "changes around a repetition": ("a\na\nb\na\na\n", "a\nx\nb\ny\na\n", 2),
}


@pytest.mark.parametrize(("before", "after", "parts"), CHANGED.values(), ids=CHANGED)
def test_a_changed_part_has_enough_lines_around_it(before: str, after: str, parts: int) -> None:
    edited = edited_arguments("edit_file", {"path": "x"}, before, after)
    assert edited is not None
    assert len(edited["edits"]) == parts
    (edit,) = file_edits("edit_file", edited, is_own=True)
    assert edit.applied(before) == after
