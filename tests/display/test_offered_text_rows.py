"""A project's text as rows: every line is there, nothing hides, and no line leaves the text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from parley.display.offered_text_rows import has_hidden, offered_text_rows
from parley.text import is_hidden

TEXTS = st.text(st.characters() | st.sampled_from("\n\t`#-+ \u202e\u200b\r\x1b"), max_size=60)


def lines(text: str, before: str | None) -> list[str]:
    return ["".join(chunk[0] for chunk in row) for row in offered_text_rows(text, before)]


@given(TEXTS)
def test_each_line_is_a_row_in_which_nothing_hides(text: str) -> None:
    rows = lines(text, None)
    assert len(rows) == text.count("\n") + 1
    assert all(row.startswith("  ") for row in rows)
    assert not any(map(is_hidden, "".join(rows)))


@given(TEXTS, TEXTS)
def test_the_diff_shows_each_changed_line_and_nothing_hides(before: str, text: str) -> None:
    rows = lines(text, before)
    assert (not rows) == (before == text)
    assert all(row.startswith("  ") for row in rows)
    assert not any(map(is_hidden, "".join(rows)))


def test_a_diff_has_both_texts_and_the_context() -> None:
    assert lines("one\n2\nthree", "one\ntwo\nthree") == [
        "  @@ -1,3 +1,3 @@",
        "    one",
        "  - two",
        "  + 2",
        "    three",
    ]


def test_a_changed_end_of_the_text_is_an_empty_line() -> None:
    assert lines("one\n", "one") == ["  @@ -1 +1,2 @@", "    one", "  + "]


def test_hidden_characters_are_noticed_but_emoji_are_not() -> None:
    assert has_hidden("be brief\u200b")
    assert has_hidden("\x1b[2J")
    assert not has_hidden("# Brief \U0001f4ac ⚠️\n\tdone\n")
