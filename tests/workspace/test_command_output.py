"""A command's output is bounded and safe, however it is cut into pieces."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.text import visible
from parley.workspace.command_output import OutputBuffer, head_and_tail, readable

GAP = re.compile(r"\[… ([\d,]+) (?:bytes|characters) left out …\]\n")


def number(gap: re.Match[str]) -> int:
    return int(gap[1].replace(",", ""))


def buffer(output: bytes, most: int, step: int) -> OutputBuffer:
    """A buffer that received an output in pieces."""
    kept = OutputBuffer(most)
    for at in range(0, len(output), step):
        kept.feed(output[at : at + step])
    return kept


@given(st.text("aé😀\n", max_size=300), st.integers(8, 100), st.integers(1, 40))
def test_the_first_and_last_bytes_are_kept_and_the_others_counted(
    text: str, most: int, step: int
) -> None:
    output = text.encode()
    kept = buffer(output, most, step)
    assert kept.size == len(output)
    if (gap := GAP.search(kept.text())) is None:
        assert kept.text() == text
        assert len(output) <= most
        return
    head, tail = kept.text()[: gap.start()], kept.text()[gap.end() :]
    assert text.endswith(tail)
    assert text.startswith((head, head.removesuffix("\n")))
    in_head = len((head if text.startswith(head) else head[:-1]).encode())
    assert number(gap) in (len(output) - in_head - len(tail.encode()) + extra for extra in (0, 1))
    assert len(head.encode()) + len(tail.encode()) <= most + 1


@given(st.binary(max_size=300), st.integers(2, 60), st.integers(1, 40))
def test_any_bytes_are_shown_safely_and_within_the_bound(
    output: bytes, most: int, step: int
) -> None:
    shown = buffer(output, most, step).text()
    assert visible(shown) == shown
    assert len(shown) <= 4 * most + 40  # an escape has at most four characters for each byte
    assert shown == buffer(output, most, len(output) or 1).text()
    assert "\n" not in buffer(output, most, step).last_line()


@given(st.text("ab\n", max_size=400), st.integers(2, 200))
def test_a_long_text_keeps_its_beginning_and_its_end(text: str, most: int) -> None:
    shown = head_and_tail(text, most)
    gap = GAP.search(shown)
    if gap is None:
        assert shown == text
        return
    head, tail = shown[: gap.start()], shown[gap.end() :]
    assert len(head) + len(tail) <= most + 1
    assert text.endswith(tail)
    assert text.startswith(head.removesuffix("\n"))
    assert number(gap) in (len(text) - len(head) - len(tail) + extra for extra in (0, 1))


def test_a_long_text_is_cut_between_lines() -> None:
    text = "".join(f"line {number}\n" for number in range(1000))
    assert head_and_tail(text, 40) == (
        "line 0\nline 1\n[… 8,858 characters left out …]\nline 998\nline 999\n"
    )


@pytest.mark.parametrize(
    ("output", "text"),
    [
        (b"\x1b[1;31mred\x1b[0m\r\n", "red\n"),
        (b"\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\", "link"),
        (b"10 %\r20 %\r\n", "10 %\n20 %\n"),
        (b"\xff\x00\x1b[", "\ufffd\\x00\\x1b["),
        ("a\u202eb".encode(), "a\\u202eb"),
    ],
)
def test_styles_are_removed_and_controls_are_escaped(output: bytes, text: str) -> None:
    assert readable(output) == text


@pytest.mark.parametrize(
    ("output", "line"),
    [
        (b"", ""),
        (b"one\ntwo\n\n", "two"),
        (b"10 %\r20 %", "20 %"),
        (b"x" * 5000, "x" * 199 + "…"),
    ],
)
def test_the_last_line_is_for_the_row(output: bytes, line: str) -> None:
    assert buffer(output, 4000, 7).last_line() == line
