"""A diff's rows on a screen: none can hide."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from parley.display.diff_rows import changed_file, diff_chunks, rows_of
from parley.display.summary import shown_line
from parley.policy.previews import FilePreview
from parley.text import is_hidden
from parley.tools.line_diff import DiffRow


@given(st.text(max_size=30))
@example("\u202etxt.exe")
@example("safe\rrm -rf /")
@example("\x1b[2J")
@example("a" + "\u0301" * 50)
def test_no_line_can_hide_or_look_like_another_row(line: str) -> None:
    line = line.replace("\n", "")
    chunks = diff_chunks(DiffRow("+", line, 1))
    text = "".join(chunk[0] for chunk in chunks)
    assert text == f"  + {shown_line(line, None)}"
    assert not any(map(is_hidden, text))


def test_a_cut_line_is_marked() -> None:
    assert diff_chunks(DiffRow("+", "x" * 700, 1), 600)[1][0] == "x" * 600 + "…"


def test_a_files_change_is_summed_up() -> None:
    kinds = {
        "new file": FilePreview("a", None, "x\ny\n"),
        "deletes the file": FilePreview("a", "x\ny\n", None),
        "": FilePreview("a", "x\n", "y\nz\n"),
    }
    files = {kind: changed_file(change) for kind, change in kinds.items()}
    assert {kind: file.kind for kind, file in files.items()} == {kind: kind for kind in kinds}
    assert [(file.added, file.removed) for file in files.values()] == [(2, 0), (0, 2), (2, 1)]


def test_a_file_is_compared_once_for_all_its_drawings() -> None:
    change = FilePreview("a", "1\n2\n3\n", "1\nx\n3\n")
    assert [row.sign for row in rows_of(change)] == ["@", " ", "-", "+", " "]
    (first,) = change.derived.values()
    assert [row.sign for row in rows_of(change, context=0)] == ["@", "-", "+"]
    assert changed_file(change).added == 1
    (last,) = change.derived.values()
    assert last is first
