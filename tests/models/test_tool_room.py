"""The room for tools in a request."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from parley.models.tool_room import ToolRoom, tokens_of
from parley.tools.catalogue import Tool

sizes = st.lists(st.integers(0, 400), max_size=12)


def tools_of(lengths: list[int]) -> list[Tool]:
    return [
        Tool("s", f"t{number}", description="x" * length) for number, length in enumerate(lengths)
    ]


@given(sizes, st.integers(0, 400), st.none() | st.integers(1, 12), st.integers(0, 3))
def test_only_fitting_tools_are_chosen_except_for_the_first(
    lengths: list[int], tokens: int, count: int | None, others: int
) -> None:
    room, tools = ToolRoom(tokens, count), tools_of(lengths)
    fitting = room.fitting(tools, others)
    assert fitting == [tool for tool in tools if tool in fitting]
    assert count is None or len(fitting) <= max(0, count - others)
    assert len(fitting) <= 1 or tokens_of(fitting) <= tokens


@given(sizes, st.integers(0, 400), st.none() | st.integers(1, 12))
@example(lengths=[0, 38, 400], tokens=149, count=None)
def test_if_all_tools_fit_all_are_chosen(
    lengths: list[int], tokens: int, count: int | None
) -> None:
    room, tools = ToolRoom(tokens, count), tools_of(lengths)
    assert not room.holds(tools) or room.fitting(tools) == tools


def test_the_estimate_counts_name_description_and_schema() -> None:
    assert tokens_of([]) == 0
    assert tokens_of([Tool("s", "t")]) == 13
    assert tokens_of([Tool("s", "t", description="x" * 400)]) == 113
    assert tokens_of([Tool("s", "t", description="é" * 200)]) == 113
    assert tokens_of([Tool("s", "t", input_schema={"type": "object"})]) == 17
