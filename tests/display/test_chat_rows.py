"""The texts of a chat's row: escaped, and short enough for a narrow window."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.chat.heading import ChatHeading
from parley.display.chat_rows import chat_row, left_out, moment, plain_line, short_folder
from parley.display.summary import shown_line

HOME = "/home/me"


@pytest.mark.parametrize(
    ("folder", "shown"),
    [
        ("/home/me/notes", "~/notes"),
        ("/home/me", "~"),
        ("/home/meadow", "/home/meadow"),
        ("/srv/a", "/srv/a"),
        ("/home/me/" + "deep/" * 9 + "notes", "…/deep/deep/deep/deep/notes"),
        ("/" + "x" * 40, "…" + "x" * 27),
    ],
)
def test_a_folder_is_shortened_from_its_start(folder: str, shown: str) -> None:
    assert short_folder(folder, HOME) == shown


def test_a_row_has_the_details_in_order_and_leaves_out_the_chat_folder() -> None:
    heading = ChatHeading("a topic", "Claude", ("a", "b", "c", "d"))
    path = "/home/me/notes/chat.md"
    row = chat_row(path, 1e9, heading, "", HOME)
    assert (row.when, row.topic) == (moment(1e9), "a topic")
    assert row.details == "~/notes  #a #b #c +1  Claude"
    assert chat_row(path, 1e9, ChatHeading("a"), "", HOME, "/home/me/notes").details == ""


def test_nothing_hides_in_a_row() -> None:
    heading = ChatHeading("\x1b[31mred\u202e", "\u200bA", ("t\x07",))
    row = chat_row("/a\x1b/b.md", 1e9, heading, "", HOME)
    assert (row.topic, row.details) == (
        "\\u001b[31mred\\u202e",
        "/a\\u001b  #t\\u0007  \\u200bA",
    )


def test_an_unreadable_file_shows_why() -> None:
    row = chat_row("/a/b.md", 1e9, ChatHeading(""), "Permission denied", HOME)
    assert row.topic == "cannot read b.md: Permission denied"


def test_chats_that_a_list_lacks_are_named() -> None:
    assert list(left_out(None, ())) == []
    assert list(left_out(1e9, ("/mnt/a", "/mnt/b", "/mnt/c"))) == [
        f"the search took too long: chats changed at or before {moment(1e9)} are missing",
        "/mnt/a and 2 other folders: no reply from the disk, so these chats are missing",
    ]


@given(st.one_of(st.text(), st.text(st.characters(max_codepoint=127))))
def test_a_plain_line_is_shown_like_any_other(text: str) -> None:
    assert plain_line(text) == shown_line(text, None)
