"""Requests of agents as calls: each becomes exactly one call, or an error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.tools import client_calls
from parley.tools.client_calls import (
    CLIENT_TOOLS,
    ApprovedWork,
    ClientParamsError,
    arguments_text,
    client_arguments,
)

ROOT = Path("/p")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner),
    max_leaves=3,
)


@given(
    st.sampled_from(sorted(CLIENT_TOOLS)),
    st.dictionaries(st.sampled_from(["path", "content", "line", "limit"]), JSON),
)
def test_any_parameters_become_arguments_or_an_error(method: str, params: dict[str, Any]) -> None:
    try:
        arguments = client_arguments(method, params, ROOT)
    except ClientParamsError:
        return
    assert params["path"] in (arguments["path"], f"{ROOT}/{arguments['path']}")
    assert arguments.get("content") == (params["content"] if "write" in method else None)
    assert all(arguments[key] > 0 for key in ("first_line",) if key in arguments)
    assert json.loads(arguments_text(arguments)) == arguments


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ({}, {}),
        ({"line": 3}, {"first_line": 3}),
        ({"limit": 2}, {"last_line": 2}),
        ({"line": 3, "limit": 2}, {"first_line": 3, "last_line": 4}),
    ],
)
def test_lines_are_counted_from_one(lines: dict[str, int], expected: dict[str, int]) -> None:
    arguments = client_arguments("fs/read_text_file", {"path": "/p/a", **lines}, ROOT)
    assert arguments == {"path": "a", **expected}


def test_a_path_outside_of_the_root_stays_as_it_is() -> None:
    for path in ("/q/a", "/", "/pa/b"):
        assert client_arguments("fs/read_text_file", {"path": path}, ROOT)["path"] == path


def test_texts_are_forgotten_before_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_calls, "_MOST_TEXTS", 2)
    work = ApprovedWork()
    for name in "abc":
        work.note_text(Path(name), "\ud800")
    assert [work.has_text(Path(name), "\ud800") for name in "abc"] == [False, False, True]
    assert not work.has_text(Path("c"), "")
