"""Text that waits for a reader: nothing is lost, and a run of blanks or backticks can grow."""

from __future__ import annotations

import pytest

from parley.models.pending_text import PendingText, portions


@pytest.mark.parametrize("length", [0, 1, 63, 64, 65, 1_000])
def test_portions_are_small_and_lose_nothing(length: int) -> None:
    piece = "".join(chr(0x4E00 + number) for number in range(length))
    assert "".join(portions(piece)) == piece
    assert all(0 < len(portion) <= 64 for portion in portions(piece))


def test_waiting_text_is_taken_once_and_in_order() -> None:
    pending = PendingText()
    for piece in "one", " ", "two":
        pending.add(piece)
    assert pending.take() == "one two"
    assert pending.take() == ""


@pytest.mark.parametrize(
    ("before", "piece", "goes_on"),
    [
        ("`", "``", True),
        ("`", "`x", False),
        ("`", " ", False),
        (" ", "\n\t", True),
        ("a ", "b", False),
        ("a", " ", False),
        ("", " ", False),
    ],
)
def test_a_piece_goes_on_with_the_run_at_the_end_of_the_waiting_text(
    before: str, piece: str, goes_on: bool
) -> None:
    pending = PendingText()
    assert pending.goes_on(before, piece) is goes_on
    pending.add(before)
    assert pending.goes_on("", piece) is goes_on
