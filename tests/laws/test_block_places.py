"""The laws of a code block's place in a file: nothing outside of it changes, and nothing is guessed."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from parley.tools.block_places import block_place
from parley.tools.text_edits import EditError
from tests.examples import examples

LINES = st.lists(st.sampled_from(["a", "b", "c", "  a", "  b", "}", ""]), max_size=8)


@examples(300)
@given(LINES, LINES)
@example(["a", "b"], ["a"])
def test_only_lines_between_the_blocks_first_and_last_line_change(
    lines: list[str], block: list[str]
) -> None:
    filled = [line for line in block if line]
    try:
        place = block_place(lines, block)
    except EditError:
        firsts = [row for row, line in enumerate(lines) if filled and line == filled[0]]
        lasts = [row for row, line in enumerate(lines) if filled and line == filled[-1]]
        is_only = len(firsts) == len(lasts) == 1 and (firsts < lasts or len(filled) == 1)
        assert not is_only or place_is_unchanged(lines, block, firsts[0], lasts[0])
        return
    result = place.applied(lines)
    assert result != lines
    assert result[: place.start] == lines[: place.start]
    assert result[len(result) - (len(lines) - place.end) :] == lines[place.end :]
    assert [line.strip() for line in place.lines] == [
        line.strip() for line in "\n".join(block).strip("\n").split("\n")
    ]
    if any(lines):
        ends = lines[place.start], lines[place.end - 1]
        assert ends == (place.lines[0], place.lines[-1])


def place_is_unchanged(lines: list[str], block: list[str], first: int, last: int) -> bool:
    return lines[first : last + 1] == "\n".join(block).strip("\n").split("\n")


@given(LINES, LINES, LINES, st.sampled_from(["", "    ", "  "]), LINES)
def test_a_block_finds_its_place_in_another_indentation(
    above: list[str], old: list[str], below: list[str], indent: str, new: list[str]
) -> None:
    def indented(lines: list[str]) -> list[str]:
        return [f"{indent}{line}" if line else "" for line in lines]

    assume(old != new)
    block = ["def f():", *new, "return f"]
    lines = [*above, *indented(["def f():", *old, "return f"]), *below]
    wanted = [*above, *indented(block), *below]
    assert block_place(lines, block).applied(lines) == wanted


@given(LINES, LINES.filter(any))
def test_a_whole_file_is_replaced_if_the_user_says_so(lines: list[str], block: list[str]) -> None:
    content = "\n".join(block).strip("\n").split("\n")
    assume(lines != content)
    assert block_place(lines, block, is_whole=True).applied(lines) == content


FILE = """class A:
    def f(self):
        return 1

    def g(self):
        x = 2
        return 1
""".splitlines()


def test_of_several_places_the_one_with_the_fewest_changes_is_taken() -> None:
    block = ["def f(self):", "    # one", "    return 1"]
    place = block_place(FILE, block)
    assert (place.start, place.end) == (1, 3)
    assert place.lines == ("    def f(self):", "        # one", "        return 1")
    assert block_place(FILE, [*FILE[:3], "", "    x = 1", "", *FILE[4:]]).end == len(FILE)


@pytest.mark.parametrize(
    ("block", "why"),
    [
        (["", " "], "the code block is empty"),
        (FILE, "already has the lines"),
        (["def h():", "    return 1"], "its first line is missing: 'def h():'"),
        (["class A:", "    end"], "its last line is missing: 'end'"),
        (["return 1", "class A:"], "its first line is not above its last line"),
        (["        return 1"], "fits 2 places in the file equally well: line 3, line 7"),
        ([*FILE[:4], "    def h(self):", FILE[6]], "lines 1 to 3, lines 1 to 7"),
        (
            ["class A:", "    # ... existing code ...", "        return 1"],
            "leaves out lines: # ...",
        ),
    ],
)
def test_a_block_without_one_place_is_refused_with_the_reason(block: list[str], why: str) -> None:
    with pytest.raises(EditError, match=re.escape(why)):
        block_place(FILE, block)


def test_a_search_that_would_take_too_long_ends() -> None:
    with pytest.raises(EditError, match="too many places"):
        block_place(["a"] * 10_000, ["a", "b", "a"])
