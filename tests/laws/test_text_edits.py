"""The laws of text edits: an edit changes only the region that its old text matches, and does it the
same way each time.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from parley.tools.text_edits import EditError, Replacement, apply, rewritten
from tests.examples import examples

PIECES = [
    "a",
    "b",
    " ",
    "  ",
    "\t",
    "\n",
    "\n",
    "\r\n",
    "'",
    "\u2019",
    "-",
    "\u2014",
    "\u00a0",
    "x y",
]
TEXT = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)
PLAIN = TEXT.map(lambda text: text.replace("\r", ""))
MARK = "@@"
TYPOGRAPHIC = str.maketrans({"\u2019": "'", "\u2014": "-", "\u00a0": " "})


def loose(text: str) -> str:
    """All that an old text has in common with the place that it matches."""
    return re.sub(r"\s", "", text.translate(TYPOGRAPHIC))


@examples(300)
@given(TEXT, TEXT)
@example("a\r\nb", "\nb")
@example("b\n\ta", "a\n")
def test_only_the_region_that_resembles_the_old_text_changes(text: str, old: str) -> None:
    try:
        result = apply(text, [Replacement(old, MARK)])
    except EditError:
        assume(bool(old))
        assert text.count(old) != 1 or text[text.index(old) + 1 :].count(old)
        return
    before, after = result.split(MARK)
    assert text.startswith(before)
    assert text.endswith(after)
    assert loose(text[len(before) : len(text) - len(after)]) == loose(old)
    if text.count(old) == 1 and "\r" not in text:
        assert result == text.replace(old, MARK)


@examples(200)
@given(PLAIN, PLAIN, PLAIN, PLAIN)
def test_a_unique_exact_match_is_replaced_exactly(
    before: str, old: str, after: str, new: str
) -> None:
    text = before + old + after
    assume(old and old != new and text.find(old) == text.rfind(old))
    assert apply(text, [Replacement(old, new)]) == before + new + after


@examples(200)
@given(st.lists(PLAIN, min_size=2, max_size=4), PLAIN.filter(bool), PLAIN)
@example(["", "a"], "aa", "b")
def test_all_replaces_every_exact_match(parts: list[str], old: str, new: str) -> None:
    text = old.join(parts)
    assume(text.replace(old, new) != text)
    assert apply(text, [Replacement(old, new, all=True)]) == text.replace(old, new)


@given(TEXT, st.lists(st.builds(Replacement, TEXT, TEXT, st.booleans()), max_size=3))
def test_the_same_edits_have_the_same_result(text: str, edits: list[Replacement]) -> None:
    def outcome() -> str:
        try:
            return apply(text, edits)
        except EditError as error:
            return f"error: {error}"

    assert outcome() == outcome()


Lines = list[tuple[int, str]]
"""Levels of indentation, and the lines' text without it."""


def written(lines: Lines, indent: str, ending: str, base: str = "", blanks: str = "") -> str:
    return "".join(
        f"{base + indent * level + text if text else ''}{blanks}{ending}" for level, text in lines
    )


WORDS = st.sampled_from(["if x:", "return 1", "y = 'a'", "", "z - 1"])
BLOCKS = st.lists(st.tuples(st.integers(0, 3), WORDS), min_size=1, max_size=5)


@examples(200)
@given(
    BLOCKS,
    BLOCKS,
    st.sampled_from(["    ", "  ", "\t"]),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["", "  ", "\t"]),
    st.booleans(),
)
def test_a_block_matches_with_other_line_endings_and_blanks(
    old: Lines, new: Lines, indent: str, ending: str, blanks: str, has_end: bool
) -> None:
    old = [(0, "def f():"), *old, (1, "pass # end")]
    text = written(old, indent, ending, blanks=blanks)
    head, tail = f"head{ending}", f"tail{ending}"
    tail = tail if has_end else ""
    text = text if has_end else text.removesuffix(ending)
    result = apply(
        head + text + tail,
        [Replacement(written(old, indent, "\n"), f"{MARK}\n{written(new, indent, chr(10))}")],
    )
    wanted = f"{MARK}{ending}{written(new, indent, ending)}"
    assert result == head + (wanted if has_end else wanted.removesuffix(ending)) + tail


@examples(200)
@given(
    BLOCKS,
    BLOCKS,
    st.sampled_from(["    ", "  ", "\t"]),
    st.integers(0, 2),
    st.sampled_from(["    ", "  ", "\t"]),
    st.integers(0, 2),
)
@example([(1, "x")], [(2, "y")], "\t", 0, "    ", 1)
def test_a_block_matches_with_another_indentation(
    old: Lines, new: Lines, indent: str, level: int, other: str, other_level: int
) -> None:
    """The model may write spaces instead of tabs or the reverse, and begin at another level."""
    assume(indent == other or "\t" in (indent, other))
    old = [(0, "def f():"), (1, "unique"), *old]
    new = [(0, "def g():"), (1, "other"), *new, (0, "last")]
    result = apply(
        "head\n" + written(old, indent, "\n", indent * level) + "tail\n",
        [
            Replacement(
                written(old, other, "\n", other * other_level),
                written(new, other, "\n", other * other_level),
            )
        ],
    )
    assert result == "head\n" + written(new, indent, "\n", indent * level) + "tail\n"


@given(TEXT, TEXT, TEXT, st.sampled_from(["\n", "\r\n"]))
def test_new_lines_get_the_endings_of_the_file(text: str, old: str, new: str, ending: str) -> None:
    text = f"begin\n{text}\n".replace("\r\n", "\n").replace("\n", ending)
    if old.replace("\r\n", "\n") == new.replace("\r\n", "\n"):
        return  # the edit is about line endings
    try:
        result = apply(text, [Replacement(old, new)])
    except EditError:
        return
    assert result == result.replace("\r\n", "\n").replace("\n", ending)


@given(PLAIN, PLAIN, st.booleans())
def test_a_rewritten_file_keeps_its_line_endings(before: str, after: str, has_crlf: bool) -> None:
    text = before.replace("\n", "\r\n") if has_crlf else before
    wanted = after.replace("\n", "\r\n") if "\r" in text else after
    assert rewritten(text, after) == wanted
    assert rewritten(text, after.replace("\n", "\r\n")) == after.replace("\n", "\r\n")


def steps(run: Callable[[], object]) -> int:
    """The function calls, including C functions, and executed lines while something runs."""
    count = 0

    def counting(_frame: FrameType, _event: str, _of: Any) -> Any:
        nonlocal count
        count += 1
        return counting

    before = sys.gettrace()
    sys.settrace(counting)
    try:
        run()
    finally:
        sys.settrace(before)
    return count


def numbered(count: int) -> str:
    return "".join(f"line {number} of the text\n" for number in range(count))


HOSTILE: dict[str, Callable[[int], tuple[str, Replacement]]] = {
    "an exact match": lambda n: (numbered(n), Replacement(f"line {n - 1} of", "x")),
    "no match": lambda n: (numbered(n), Replacement("line of text\n" * 20, "x")),
    "the same lines": lambda n: (" x\n" * n, Replacement("  x\n" * (n // 2), "x")),
    "the same lines but one": lambda n: (" x\n" * n, Replacement("  x\n" * (n // 2) + "y", "x")),
    "blank lines": lambda n: (" \n" * n, Replacement("\n" * (n // 2) + "y\n", "x")),
    "all in CRLF": lambda n: ("x y\r\n" * n, Replacement("y\n", "z\nw\n", all=True)),
    "all with indentation": lambda n: ("\tx\n" * n, Replacement("    x\n", "    y\n", all=True)),
    "a long line": lambda n: ("x y " * n, Replacement("y  x", "z")),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_work_grows_linearly_with_the_text(name: str) -> None:
    def measured(size: int) -> int:
        text, edit = HOSTILE[name](size)

        def run() -> None:
            with suppress(EditError):
                apply(text, [edit])

        return steps(run)

    assert measured(2000) <= 2.5 * measured(1000) + 500
