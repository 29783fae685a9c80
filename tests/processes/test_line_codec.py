"""Lines arrive whole for any cuts, in linear time, and no line fills the memory."""

import codecs
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from parley.processes.line_codec import LONG_LINE, NAME, LineDecoder


@given(st.binary(max_size=60), st.lists(st.integers(0, 60), max_size=5))
def test_any_cuts_give_the_same_text_and_only_whole_lines(text: bytes, cuts: list[int]) -> None:
    decoder, places = (
        LineDecoder("replace"),
        [0, *sorted(cut for cut in cuts if cut <= len(text)), len(text)],
    )
    pieces = [decoder.decode(text[a:b]) for a, b in pairwise(places)]
    assert all(piece.endswith("\n") for piece in pieces if piece)
    whole = "".join((*pieces, decoder.decode(b"", True)))
    assert whole == b"\n".join(text.split(b"\n")).decode("utf-8", "replace")


def test_a_line_that_would_fill_the_memory_is_dropped_and_reported_once() -> None:
    decoder = LineDecoder("strict", most=10)
    pieces = [
        decoder.decode(piece) for piece in (b"abc", b"defghij", b"k" * 100, b"l\nnext", b" one\n")
    ]
    assert pieces == ["", "", f"{LONG_LINE}\n", "", "next one\n"]
    assert decoder.decode(b"x" * 11 + b"\ny") == f"{LONG_LINE}\n"


def test_the_codec_writes_utf_8() -> None:
    assert "grün\n".encode(NAME) == "grün\n".encode()
    assert codecs.getincrementaldecoder(NAME) is LineDecoder
