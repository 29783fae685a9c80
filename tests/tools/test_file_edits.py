"""Calls as models write them: the files after each call of the corpus, or the error for the model."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from parley.tools.file_edits import file_edits
from parley.tools.file_text import FileText, FileTextError, decoded
from parley.tools.text_edits import EditError
from tests.edits_corpus import EditCase, edit_cases
from tests.examples import examples

CASES = list(edit_cases())


def outcome(case: EditCase) -> tuple[dict[str, bytes], str, str]:
    """The files after a call, the error, and the doubts about a preview."""
    files, doubts = dict(case.before), set[str]()
    try:
        for edit in file_edits(case.tool, case.arguments, is_own=case.is_own):
            file = decoded(files.pop(edit.path)) if edit.path in files else None
            before = file.text if file else None
            doubts.add(edit.doubt(before))
            after = edit.applied(before)
            if after is not None:
                files[edit.to or edit.path] = (file or FileText()).encoded(after)
    except (EditError, FileTextError) as error:
        return {}, str(error), ""
    return files, "", "; ".join(sorted(doubts - {""}))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_call_changes_files_as_its_server_does_or_has_an_error(case: EditCase) -> None:
    edits = file_edits(case.tool, case.arguments, is_own=case.is_own)
    assert bool(edits) == case.is_known
    if case.is_known:
        assert outcome(case) == (case.after, case.error, case.doubt)


def test_the_corpus_has_each_kind_of_edit_and_enough_of_them() -> None:
    kinds = {
        edit.kind
        for case in CASES
        for edit in file_edits(case.tool, case.arguments, is_own=case.is_own)
    }
    assert kinds == {"edit", "write", "create", "insert", "delete", "move"}
    assert len(CASES) >= 100
    assert len({case.name for case in CASES}) == len(CASES)


TOOLS = sorted({case.tool for case in CASES})
KEYS = sorted(
    {key for case in CASES for key in case.arguments} | {"old", "new", "oldText", "newText"}
)
WORDS = st.sampled_from(["a", "", "a\nb\n", "\ud800", "\0", "create", "insert", "str_replace", "^"])
PATCH_LINES = [
    *("*** Update File: f", "*** Add File: g", "*** Delete File: f", "*** Move to: h"),
    *("@@", "@@ a", " a", "-a", "+b", "", " ", "x", "*** End of File", "*** End Patch", "*"),
]
PATCHES = st.lists(st.sampled_from(PATCH_LINES)).map(
    lambda lines: "\n".join(["*** Begin Patch", *lines, "*** End Patch"])
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 3) | st.floats() | WORDS | PATCHES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner),
    max_leaves=8,
)


@examples(300)
@given(st.sampled_from(TOOLS), VALUES, st.booleans(), st.none() | WORDS)
@example("edit_file", {"path": "f", "edits": [{"old": "\ud800", "new": "a"}]}, True, "a")
def test_arguments_of_any_type_cause_no_other_error(
    tool: str, arguments: Any, is_own: bool, text: str | None
) -> None:
    def results() -> list[object]:
        return [
            (edit, edit.doubt(text), applied(edit))
            for edit in file_edits(tool, arguments, is_own=is_own)
        ]

    def applied(edit: Any) -> object:
        try:
            return edit.applied(text)
        except EditError as error:
            return f"error: {error}"

    assert results() == results()


@examples(200)
@given(st.sampled_from(CASES), st.data())
def test_a_call_with_one_other_value_causes_no_other_error(
    case: EditCase, data: st.DataObject
) -> None:
    arguments = dict(case.arguments)
    key = data.draw(st.sampled_from(sorted(arguments)))
    arguments[key] = data.draw(VALUES)
    for edit in file_edits(case.tool, arguments, is_own=case.is_own):
        for text in (None, "", "a\nb\n"):
            with suppress(EditError):
                assert isinstance(edit.applied(text), str | None)
