"""The tools and arguments of agents' calls."""

from __future__ import annotations

import json
from typing import Any

import pytest

from parley.policy.permissions import is_destructive, memory_of
from parley.policy.previews import CallPreview, FilePreview
from parley.tools.agent_calls import (
    KINDS,
    MOST_DIFFS,
    AnnouncedDiff,
    agent_catalogue,
    agent_identity,
    call_arguments,
    diffs_of,
    is_of_agent,
    kind_of_call,
    paths_of,
    shown_fields,
    with_existing,
)
from parley.tools.catalogue import Tool
from parley.tools.file_edits import file_edits

CATALOGUE = agent_catalogue("coder", agent_identity(["coder", "--acp"], "project"))


def test_an_agent_has_a_tool_for_each_kind_of_call() -> None:
    assert set(CATALOGUE.names()) == set(KINDS)
    assert all(is_of_agent(tool) and tool.server == "coder" for _, tool in CATALOGUE.tools)
    assert not is_of_agent(Tool("coder", "edit", identity='{"command":["agent"]}'))


def test_an_unknown_kind_is_another_call() -> None:
    assert [kind_of_call(kind) for kind in ("edit", "magic", None, ["edit"])] == [
        "edit", "other", "other", "other",
    ]  # fmt: skip


def test_another_command_is_another_tool() -> None:
    other = agent_catalogue("coder", agent_identity(["coder", "--yolo"], "project"))
    assert CATALOGUE.get("edit") != other.get("edit")


@pytest.mark.parametrize("kind", ["execute", "delete", "move", "other", "switch_mode"])
def test_a_capital_letter_never_remembers_a_call_that_may_destroy(kind: str) -> None:
    tool = CATALOGUE.get(kind)
    assert tool
    assert is_destructive(tool)
    assert memory_of(tool, None) == "nothing"


def test_a_capital_letter_remembers_edits_only_if_a_diff_shows_them() -> None:
    edit = CATALOGUE.get("edit")
    assert edit
    assert memory_of(edit, None) == "nothing"
    shown = CallPreview((FilePreview("a", "a", "b"),), "base", is_binding=True)
    assert memory_of(edit, shown) == "tool"


def test_arguments_alone_are_enough_to_show_the_diff() -> None:
    text = call_arguments(
        "Edit", {"a": 1}, [{"path": "/p/a", "oldText": "a", "newText": "b"},
                           {"path": "/p/new", "oldText": None, "newText": "n"}],
    )  # fmt: skip
    edits = file_edits("edit", json.loads(text))
    assert [(e.path, e.kind) for e in edits] == [("/p/a", "edit"), ("/p/new", "create")]
    assert edits[0].applied("xay") == "xby"
    assert edits[1].applied(None) == "n"
    deletion = file_edits("delete", json.loads(call_arguments("Delete", None, (), ["/p/a"])))
    assert [(e.path, e.kind, e.applied("a")) for e in deletion] == [("/p/a", "delete", None)]


def test_a_diff_without_an_old_text_says_whether_its_file_exists() -> None:
    diffs: list[Any] = [{"path": p, "oldText": None, "newText": "n"} for p in ("/p/a", "/p/b")]
    text = call_arguments("Write", {"x": 1}, diffs)
    marked = with_existing(text, lambda path: path == "/p/a")
    assert [(diff.path, diff.is_over) for diff in diffs_of(marked)] == [
        ("/p/a", True),
        ("/p/b", False),
    ]
    assert json.loads(marked)["rawInput"] == {"x": 1}
    doubts = [[edit.change.doubt("old") != "" for edit in file_edits("edit", json.loads(each))]
              for each in (text, marked)]  # fmt: skip
    assert doubts == [[True, True], [False, True]]
    many = call_arguments("Write", None, diffs * MOST_DIFFS)
    for other in ("{", '{"oldText":null', '{"title":"","diffs":[{"oldText":null}]}', many):
        assert with_existing(other, lambda _: True) == other


@pytest.mark.parametrize(
    ("title", "raw", "paths", "shown"),
    [
        ("ls", {"command": "ls", "about": "x"}, [], {"command": "ls", "about": "x"}),
        ("Read a", {"file": "/p/a"}, ["/p/a"], {"title": "Read a", "file": "/p/a"}),
        ("ls", {"command": "ls"}, ["/p"], {"command": "ls", "paths": ["/p"]}),
        ("x", {"title": "y"}, [], {"title": "x", "rawInput": {"title": "y"}}),
        ("x", {"paths": 1}, ["a"], {"title": "x", "rawInput": {"paths": 1}, "paths": ["a"]}),
        ("x", ["a"], [], {"title": "x", "rawInput": ["a"]}),
    ],
)
def test_a_row_shows_the_agents_own_input_and_nothing_twice(
    title: str, raw: object, paths: list[str], shown: dict[str, object]
) -> None:
    arguments = json.loads(call_arguments(title, raw, (), paths))
    assert shown_fields(arguments) == shown
    assert shown_fields(arguments, is_brief=True) == {"title": title}
    assert shown_fields({"name": title}, is_brief=True) == {"name": title}


def test_a_malformed_diff_shows_none() -> None:
    assert diffs_of('{"title":"","diffs":[{"path":"a","oldText":null,"newText":"b"}]}') == [
        AnnouncedDiff("a", None, "b")
    ]
    for other in ("{", "[]", '{"title":"","diffs":[{"path":1}]}'):
        assert diffs_of(other) == []
    assert file_edits("edit", {"title": "", "diffs": [{"path": 1, "newText": "b"}]}) == ()
    assert file_edits("delete", {"title": "", "paths": [1]}) == ()


def test_half_a_character_can_be_written() -> None:
    text = call_arguments("x", {"a": "\ud800"}, ())
    text.encode()
    assert json.loads(text)["rawInput"] == {"a": "\ud800"}


@pytest.mark.parametrize(
    ("raw", "paths"),
    [
        ({"file_path": "a.txt"}, ["a.txt"]),
        ({"options": [{"filePaths": ["a", "b"]}]}, ["b", "a"]),
        ({"what": "/etc/passwd"}, ["/etc/passwd"]),
        ({"what": "~/x", "pattern": "foo.*bar"}, ["~/x"]),
        ({"what": "a/../../x"}, ["a/../../x"]),
        ("..", [".."]),
        ({"uri": "file:///etc/pass%77d"}, ["/etc/passwd"]),
        ({"uri": "file://["}, ["file://["]),
        ({"url": "https://example.com/a", "prompt": "/a\n../b"}, []),
        ({"path": ""}, []),
        (None, []),
    ],
)
def test_the_files_of_a_call_are_in_its_input(raw: object, paths: list[str]) -> None:
    assert paths_of("read", {"title": "/x", "rawInput": raw}) == paths
    assert paths_of("execute", {"rawInput": raw}) == []


def test_the_files_of_a_call_are_also_its_places_and_those_of_its_diffs() -> None:
    diff = {"path": "b", "oldText": "/x", "newText": "/y"}
    assert set(paths_of("edit", {"paths": ["a"], "diffs": [diff]})) == {"a", "b"}


def test_a_text_counts_as_a_path_only_if_asked() -> None:
    raw = {"file_path": "c", "new_string": "/d"}
    assert set(paths_of("edit", {"rawInput": raw})) == {"c", "/d"}
    assert paths_of("edit", {"rawInput": raw}, with_texts=False) == ["c"]
