"""A diff's rows: together with the text before, they give the text after, and `patch` agrees."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from parley.tools.line_diff import DiffRow, changed_lines, counts, diff_rows, lines_of, unified_diff

_LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n", "\tc\r\n", "ü\n"]), max_size=12)
TEXTS = st.builds(
    lambda lines, end: "".join(lines) + end, _LINES, st.sampled_from(["", "", "x", "y"])
)
_PLACE = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def patched(before: str, rows: list[DiffRow]) -> str:
    """The text after, from the text before and the rows alone; fails if a row does not fit."""
    old, new, at = lines_of(before), list[str](), 0
    for number, row in enumerate(rows):
        has_end = number + 1 == len(rows) or rows[number + 1].sign != "\\"
        line = row.text + ("\n" if has_end else "")
        if row.sign == "@":
            place = _PLACE.fullmatch(row.text)
            assert place
            start = int(place[1]) - (place[2] != "0")
            new += old[at:start]
            at = start
            assert int(place[3]) - (place[4] != "0") == len(new)
        elif row.sign in " -":
            assert old[at] == line
            at += 1
        if row.sign in " +":
            new.append(line)
            assert row.number == len(new)
    return "".join(new + old[at:])


@given(TEXTS, TEXTS)
@example("a\n", "a")
@example("", "a")
@example("a\nb\n", "")
def test_the_rows_turn_the_text_before_into_the_text_after(before: str, after: str) -> None:
    rows = diff_rows(before, after)
    assert patched(before, rows) == after
    assert rows == diff_rows(before, after)
    added, removed = counts(rows)
    assert len(lines_of(after)) - len(lines_of(before)) == added - removed
    assert bool(rows) == (before != after)


@given(TEXTS, TEXTS)
def test_the_changes_cover_exactly_the_lines_that_differ(before: str, after: str) -> None:
    old, new, made, at = lines_of(before), lines_of(after), list[str](), 0
    for a, b, c, d in changed_lines(old, new):
        assert at <= a <= b
        made += [*old[at:a], *new[c:d]]
        at = b
    assert made + old[at:] == new


@pytest.mark.parametrize(("before", "after"), [(None, "a\nb\n"), ("a\nb\n", None)])
def test_a_new_or_deleted_file_is_shown_whole(before: str | None, after: str | None) -> None:
    signs = [row.sign for row in diff_rows(before, after)]
    assert signs == ["@", *("-" if before else "+") * 2]


def test_changes_far_apart_are_separate_hunks_with_context() -> None:
    before = [f"{n}\n" for n in range(40)]
    after = [*before[:5], "new\n", *before[5:30], "other\n", *before[31:]]
    rows = diff_rows("".join(before), "".join(after))
    assert [row.text for row in rows if row.sign == "@"] == ["@@ -3,6 +3,7 @@", "@@ -28,7 +29,7 @@"]


def test_a_large_change_without_common_lines_is_one_replacement() -> None:
    before, after = [f"{n}\n" for n in range(30_000)], [f"x{n}\n" for n in range(30_000)]
    assert changed_lines(before, after) == [(0, 30_000, 0, 30_000)]


def test_unchanged_lines_stay_fixed_points_in_a_large_change() -> None:
    before = [f"{n}\n" for n in range(9_000)]
    after = [line if at % 3 else f"  {line}" for at, line in enumerate(before)]
    assert counts(diff_rows("".join(before), "".join(after))) == (3_000, 3_000)


@given(TEXTS, TEXTS)
def test_a_unified_diff_has_a_head_and_the_rows(before: str, after: str) -> None:
    lines = unified_diff(before, after, "a.py")
    assert lines[:2] == (["--- a/a.py", "+++ b/a.py"] if before != after else [])
    assert len(lines) == len(diff_rows(before, after)) + 2 * (before != after)


def test_patch_understands_a_unified_diff(tmp_path: Path) -> None:
    if (patch := shutil.which("patch")) is None:
        pytest.skip("patch is not installed")
    before, after = "a\nb\nc", "a\nB\nc\nd\n"
    (tmp_path / "f").write_text(before)
    diff = "\n".join([*unified_diff(before, after, "f"), ""])
    subprocess.run([patch, "-p1", "-s"], cwd=tmp_path, input=diff, text=True, check=True)
    assert (tmp_path / "f").read_text() == after
