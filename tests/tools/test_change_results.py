"""The first line of a file tool's result, which says what a call changed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.tools.change_results import MadeChange, made_change

PATHS = st.text(st.characters(exclude_characters="\n"), min_size=1)
CHANGES = st.one_of(
    st.builds(MadeChange, PATHS, st.integers(0, 10**6), st.integers(0, 10**6)),
    st.builds(MadeChange, PATHS, st.integers(0, 10**6), is_new=st.just(True)),
    st.builds(MadeChange, PATHS, is_deleted=st.just(True)),
)


@given(CHANGES, st.text(), st.booleans())
def test_the_screen_reads_each_line_that_the_tools_write(
    change: MadeChange, rest: str, is_edited: bool
) -> None:
    note = "The user edited this change.\n" if is_edited else ""
    assert made_change(f"{note}{change.head}\n{rest}") == change


@pytest.mark.parametrize(
    "text", ["", "changed", "a\nb\ndeleted a", "moved a to b", "changed a: +1"]
)
def test_other_results_report_no_such_change(text: str) -> None:
    assert made_change(text) is None
