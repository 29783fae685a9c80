"""Any text is complete in a terminal's rows, and is cut into rows for any width."""

from __future__ import annotations

import json

from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from parley.cli.terminal_rows import fit, markdown_rows, note_rows, rows
from parley.display.summary import arguments
from parley.text import contained
from tests.strategies import any_text

INDENT = "    "
TITLES = st.sampled_from(["**name** x", "`**a**`", "日本語 テキスト", "👩‍👩‍👧", "```"])
TEXTS = st.one_of(any_text, st.text(), TITLES)
LEAST = len(INDENT) + 2
"""The cells in an indented row with a wide character."""


@given(st.lists(TEXTS, max_size=3), st.integers(1, 12))
def test_rows_contain_all_of_any_text_at_any_width(texts: list[str], width: int) -> None:
    chunks = [(contained(text), "") for text in texts]
    lines = rows(chunks, width)
    first, *further = ["".join(chunk[0] for chunk in line) for line in lines]
    assert first + "".join(line.removeprefix(INDENT) for line in further) == "".join(
        c[0] for c in chunks
    )
    assert all(cell_len(line) <= max(width, LEAST) for line in (first, *further))


@given(st.lists(TEXTS, max_size=3), st.integers(1, 12))
@example(texts=["000", "", "0"], width=3)
def test_pages_notes_and_cut_rows_end_at_any_width(texts: list[str], width: int) -> None:
    assert len(list(markdown_rows(["```", *texts, "```", *texts], width))) >= len(texts)
    assert 1 <= len(note_rows([(text, "") for text in texts], width)) <= 4
    assert (
        cell_len("".join(chunk[0] for chunk in fit([(text, "", "") for text in texts], width)))
        <= width
    )


def test_a_path_keeps_its_end_and_a_size_is_dropped_first() -> None:
    path = "/home/user/projects/shop/src/inventory/readers/csv_reader.py"
    row = arguments(json.dumps({"path": path, "content": "import csv\nimport io\n"}))
    assert "".join(chunk[0] for chunk in fit(row, 100)) == f'path: "{path}", content: 2 lines, 21 B'
    assert "".join(chunk[0] for chunk in fit(row, 40)).endswith('readers/csv_reader.py", content')
    assert cell_len("".join(chunk[0] for chunk in fit(row, 40))) <= 40
