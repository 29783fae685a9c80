"""Where a code block belongs in a file; `tests/laws/test_block_places.py` has the laws."""

from __future__ import annotations

import pytest

from parley.tools.block_places import block_place
from parley.tools.text_edits import EditError

FILE = ["def a():", "    one()", "    two()", "", "def b():", "    one()", "    three()"]


@pytest.mark.parametrize(
    ("block", "title", "lines"),
    [
        (["", "def b():", "    four()", "    three()", ""], "lines 5 to 7", None),
        (["one()", "new()", "two()"], "lines 2 to 3", ("    one()", "    new()", "    two()")),
        (["    one()", "    three()", "    three()"], "lines 6 to 7", None),
    ],
)
def test_a_block_replaces_the_lines_that_begin_and_end_like_it(
    block: list[str], title: str, lines: tuple[str, ...] | None
) -> None:
    place = block_place(FILE, block)
    assert place.title == title
    assert lines in (None, place.lines)


@pytest.mark.parametrize("lines", [[], ["", ""], FILE])
def test_a_whole_file_is_replaced_whole(lines: list[str]) -> None:
    place = block_place(lines, ["x", "y"], is_whole=True)
    assert place.applied(lines) == ["x", "y"]


@pytest.mark.parametrize(
    ("lines", "block", "message"),
    [
        (FILE, ["", ""], "the code block is empty"),
        (FILE, ["def a():", "    # ... existing code ...", "    two()"], "leaves out lines"),
        (FILE, ["no()", "    two()"], "its first line is missing: 'no()'"),
        (FILE, ["def a():", "no()"], "its last line is missing: 'no()'"),
        (FILE, ["    two()", "def a():"], "its first line is not above its last line"),
        (FILE, FILE[:3], "already has the lines"),
        (["a", "b", "a", "b"], ["a", "x", "b"], "fits 2 places"),
        (["a"] * 40, ["a", "x", "a"], "resembles too many places"),
    ],
)
def test_a_block_without_one_certain_place_is_refused(
    lines: list[str], block: list[str], message: str
) -> None:
    with pytest.raises(EditError, match=message.replace("(", r"\(").replace(")", r"\)")):
        block_place(lines, block)
