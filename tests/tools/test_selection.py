"""Lists of globs select a chat's tools; switching a tool or server changes the list."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.tools.selection import may_take, switched, takes


@pytest.mark.parametrize(
    ("globs", "names"),
    [
        ([], []),
        (["files/*"], ["files/read", "files/write"]),
        (["!files/*"], ["web/read"]),
        (["!files/*", "files/read"], ["files/read", "web/read"]),
        (["*/read", "!web/*"], ["files/read"]),
        (["*"], ["files/read", "files/write", "web/read"]),
    ],
)
def test_the_last_matching_glob_decides(globs: list[str], names: list[str]) -> None:
    tools = ["files/read", "files/write", "web/read"]
    assert [tool for tool in tools if takes(globs, (tool, tool.split("/")[1]))] == names


@pytest.mark.parametrize(
    ("globs", "server", "tool", "on", "after"),
    [
        (None, "files", "read", False, ("!files/read",)),
        (("!files/read",), "files", "read", True, None),
        (None, "files", None, False, ("!files/*",)),
        (("!files/*",), "files", "read", True, ("!files/*", "files/read")),
        (("!files/*", "files/read"), "files", None, True, None),
        (("files/*",), "files", None, False, ()),
        (("files/*",), "web", "get", True, ("files/*", "web/get")),
        (None, "od[d]*", None, False, ("!od[[]d][*]/*",)),
    ],
)
def test_switching_writes_the_same_as_a_person_would(
    globs: tuple[str, ...] | None,
    server: str,
    tool: str | None,
    on: bool,
    after: tuple[str, ...] | None,
) -> None:
    assert switched(globs, server, tool, on) == after


SERVERS, TOOLS = ("files", "web", "a[b"), ("read", "write", "*")
GLOBS = st.lists(
    st.sampled_from(
        [f"{sign}{s}/{t}" for sign in ("", "!") for s in ("files", "web", "*") for t in TOOLS]
    )
)


@given(
    globs=st.none() | GLOBS.map(tuple),
    server=st.sampled_from(SERVERS),
    tool=st.none() | st.sampled_from(("read", "write")),
    on=st.booleans(),
)
def test_only_the_switched_tool_or_server_changes(
    globs: tuple[str, ...] | None, server: str, tool: str | None, on: bool
) -> None:
    after = switched(globs, server, tool, on)

    def is_in(selection: tuple[str, ...] | None, name: str) -> bool:
        return selection is None or takes(selection, (name,))

    for other in SERVERS:
        for each in ("read", "write"):
            name = f"{other}/{each}"
            meant = other == server and tool in (None, each)
            assert is_in(after, name) == (on if meant else is_in(globs, name)), (after, name)


@pytest.mark.parametrize(
    ("globs", "may"),
    [
        (["web_search"], True),
        (["slow/*"], True),
        (["s*/get_*"], True),
        (["other/*"], False),
        (["!slow/*"], False),
        (["!*"], False),
        (["!slow/echo"], True),
        (["!other/*"], True),
        (["*", "!slow/*"], False),
        (["!slow/*", "slow/echo"], True),
        ([], False),
    ],
)
def test_a_server_with_unknown_tools_may_have_a_selected_one(globs: list[str], may: bool) -> None:
    assert may_take(globs, "slow") is may
