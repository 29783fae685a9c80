"""Reading more of a long text: every part can be read, and none is too large."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.tools.long_results import READ_RESULT, excerpt, head_of
from parley.tools.results import cut
from parley.tools.schema import check_arguments

TAIL = re.compile(
    r"\n\[Characters (\d+) to (\d+) of (\d+); (?:\d+ are left: go on with offset \d+|.* end)\]$"
)


@given(st.text(max_size=60), st.integers(0, 40))
def test_the_head_in_a_body_is_the_beginning_of_the_text(text: str, max_bytes: int) -> None:
    body = cut(text, max_bytes)
    assert text.startswith(head_of(body)) or "… [truncated: " in text


@given(st.text(min_size=1, max_size=80), st.integers(1, 20), st.none() | st.integers(1, 30))
def test_the_whole_text_can_be_read_part_by_part(
    text: str, max_bytes: int, length: int | None
) -> None:
    offset, pieces = 0, list[str]()
    while offset < len(text):
        arguments = {"call": "c", "offset": offset} | ({"length": length} if length else {})
        part = excerpt(text, arguments, 0, max_bytes)
        match = TAIL.search(part)
        assert match
        assert [int(match[1]), int(match[3])] == [offset, len(text)]
        pieces.append(part[: match.start()])
        assert len(pieces[-1].encode()) <= max(max_bytes, 4)
        assert int(match[2]) > offset
        offset = int(match[2])
    assert "".join(pieces) == text


def test_without_an_offset_a_part_begins_after_the_head() -> None:
    part = excerpt("0123456789", {"call": "c"}, 4, 3)
    assert part == "456\n[Characters 4 to 7 of 10; 3 are left: go on with offset 7]"
    assert excerpt("0123456789", {"call": "c", "offset": 7}, 4, 9).endswith(
        "to 10 of 10; this is the end]"
    )


def test_an_offset_beyond_the_end_says_so() -> None:
    assert excerpt("0123", {"call": "c", "offset": 9}, 0, 3) == (
        "[This result has 4 characters: there are none from 9 on]"
    )


@pytest.mark.parametrize(
    ("arguments", "is_fit"),
    [
        ({"call": "c"}, True),
        ({"call": "c", "offset": 0, "length": 1}, True),
        ({}, False),
        ({"call": 1}, False),
        ({"call": "c", "offset": -1}, False),
        ({"call": "c", "length": 0}, False),
        ({"call": "c", "path": "/etc/passwd"}, False),
    ],
)
def test_the_tool_takes_only_a_call_an_offset_and_a_length(
    arguments: dict[str, object], is_fit: bool
) -> None:
    assert (check_arguments(json.dumps(arguments), READ_RESULT.input_schema) is None) == is_fit
