"""Requests of agents as calls: each becomes exactly one call, or an error."""

from __future__ import annotations

import json
import shlex
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.tools import client_calls
from parley.tools.client_calls import (
    ApprovedCommand,
    ApprovedWork,
    ClientParamsError,
    approved_command,
    arguments_text,
    client_arguments,
    output_limit,
)

ROOT = Path("/p")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner),
    max_leaves=3,
)


@given(
    st.sampled_from(["fs/read_text_file", "fs/write_text_file"]),
    st.dictionaries(st.sampled_from(["path", "content", "line", "limit"]), JSON),
)
def test_any_parameters_become_arguments_or_an_error(method: str, params: dict[str, Any]) -> None:
    try:
        arguments = client_arguments(method, params, ROOT, ROOT)
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
    arguments = client_arguments("fs/read_text_file", {"path": "/p/a", **lines}, ROOT, ROOT)
    assert arguments == {"path": "a", **expected}


def test_a_path_outside_of_the_root_stays_as_it_is() -> None:
    for path in ("/q/a", "/", "/pa/b"):
        assert client_arguments("fs/read_text_file", {"path": path}, ROOT, ROOT)["path"] == path


@given(
    st.dictionaries(st.sampled_from(["command", "args", "env", "cwd", "outputByteLimit"]), JSON)
    | st.fixed_dictionaries(
        {"command": st.text(min_size=1)},
        optional={
            "args": st.lists(st.text()),
            "env": st.lists(st.fixed_dictionaries({"name": st.text(), "value": st.text()})),
            "cwd": st.sampled_from(["/p", "/p/sub", "/q", "sub"]),
        },
    )
)
def test_any_command_is_one_call_that_shows_all_of_it(params: dict[str, Any]) -> None:
    with suppress(ClientParamsError):
        output_limit(params)
    try:
        arguments = client_arguments("terminal/create", params, ROOT, ROOT)
    except ClientParamsError:
        return
    line, words = arguments["command"], params.get("args") or []
    assert arguments.keys() <= {"command", "directory"}
    assert line.endswith(shlex.join([params["command"], *words]) if words else params["command"])
    for variable in params.get("env") or ():
        assert f"export {variable['name']}={shlex.quote(variable['value'])}; " in line
    assert (params.get("cwd") or "/p") in ("/p", arguments.get("directory"), "/p/sub")


def test_the_arguments_of_a_command_stay_words() -> None:
    params = {"command": "echo", "args": ["a b", "$(x)"], "env": [{"name": "A", "value": "1 2"}]}
    assert client_arguments("terminal/create", {**params, "cwd": "/p/sub"}, ROOT, ROOT) == {
        "command": "export A='1 2'; echo 'a b' '$(x)'",
        "directory": "sub",
    }


@pytest.mark.parametrize(
    ("tool", "given_input", "is_known"),
    [
        ("execute", {"command": "make", "description": "Build"}, True),
        ("execute", {"command": "make", "cwd": "/"}, False),
        ("execute", {"command": ["make"]}, False),
        ("execute", "make", False),
        ("other", {"command": "make"}, False),
    ],
)
def test_a_command_is_approved_only_if_the_call_shows_nothing_else(
    tool: str, given_input: object, is_known: bool
) -> None:
    found = approved_command("1", tool, {"title": "make", "rawInput": given_input})
    assert found == ([ApprovedCommand("1", "make")] if is_known else [])


def test_texts_are_forgotten_before_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_calls, "_MOST_TEXTS", 2)
    work = ApprovedWork()
    for name in "abc":
        work.note_text(Path(name), "\ud800")
    assert [work.has_text(Path(name), "\ud800") for name in "abc"] == [False, False, True]
    assert not work.has_text(Path("c"), "")
