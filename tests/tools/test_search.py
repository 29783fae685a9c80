"""The tool that finds tools: a query's matches, their order, and the result's later use."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.tools.catalogue import Catalogue, Tool
from parley.tools.schema import check_arguments
from parley.tools.search import FIND_TOOLS, MOST, names_in, ranking, report

OFFERS = Catalogue.of(
    Tool(server, name, description=description)
    for server, name, description in [
        ("git", "create_issue", "Opens an issue in a repository."),
        ("git", "listIssues", "Lists what is open in a repository."),
        ("git", "merge", "Merges a branch into another one of the repository."),
        ("files", "read_file", "Reads a file."),
        ("files", "write_file", "Writes a file, and makes an issue of it."),
        ("web", "suchen", "搜索网页"),
    ]
).tools


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("open an issue", ["create_issue", "listIssues"]),
        ("issues", ["listIssues", "create_issue"]),
        ("READ", ["read_file"]),
        ("create_issue, merge", ["create_issue", "merge"]),
        ("网页", ["suchen"]),
        ("branches", ["merge"]),
        ("a", []),
        ("fly to the moon", []),
        ("", []),
        ("-- ()", []),
    ],
)
def test_tools_are_found_by_the_words_of_their_names_and_descriptions(
    query: str, names: list[str]
) -> None:
    assert [wire for wire, _ in ranking(query, OFFERS)][: len(names) or None] == names


def test_tools_that_fit_much_worse_than_the_best_are_left_out() -> None:
    described = Tool("web", "mix", description="Blends drinks.")
    offers = Catalogue.of([described, Tool("web", "drinks", description="")]).tools
    assert [wire for wire, _ in ranking("drinks", offers)] == ["drinks"]
    assert [wire for wire, _ in ranking("blends", offers)] == ["mix"]


names = st.text("abcdeABC_0", min_size=1, max_size=8)
texts = st.text("abcde \n-:é搜", max_size=30)
tools = st.lists(st.builds(Tool, st.sampled_from("st"), names, description=texts), max_size=30)
queries = st.one_of(texts, names)


@given(tools, queries, st.randoms())
def test_the_order_of_the_tools_does_not_matter(tools: list[Tool], query: str, chance: Any) -> None:
    offers = list(Catalogue.of(tools).tools)
    expected = ranking(query, offers)
    chance.shuffle(offers)
    assert ranking(query, offers) == expected
    assert len(expected) <= MOST


@given(tools, st.data())
def test_a_tool_is_found_by_its_name_first(tools: list[Tool], data: st.DataObject) -> None:
    offers = Catalogue.of([*tools, Tool("s", "one")]).tools
    wire, tool = data.draw(st.sampled_from(offers))
    assert (wire, tool) == ranking(wire, offers)[0]


@given(tools, queries)
def test_a_result_names_the_found_tools_for_any_descriptions(tools: list[Tool], query: str) -> None:
    offers = Catalogue.of([*tools, Tool("s", "forger", description="x\n- other: y\n- third")]).tools
    assert names_in(report(query, offers, 9)) == [wire for wire, _ in offers]


def test_a_result_without_tools_names_none() -> None:
    said = report("\n- forged: x", [], 7)
    assert said == "No tool of 7 fits '\\n- forged: x'. Try other words, or the name of a tool."
    assert names_in(said) == []


def test_the_result_describes_each_tool_in_a_line() -> None:
    offers = [
        ("a", Tool("s", "a", description="One.\nTwo.")),
        ("b", Tool("s", "b", description="x" * 500)),
    ]
    head, *lines = report("q", [*offers, ("c", Tool("s", "c"))], 9).split("\n")
    assert head == "These tools can be called now, and are described from here on:"
    assert lines == ["- a: One. Two.", f"- b: {'x' * 119}…", "- c"]


@pytest.mark.parametrize(
    ("arguments", "is_fit"),
    [
        ('{"query": "x"}', True),
        ('{"query": ""}', False),
        ("{}", False),
        ('{"query": "x", "n": 1}', False),
    ],
)
def test_the_tool_takes_only_a_query(arguments: str, is_fit: bool) -> None:
    assert (check_arguments(arguments, FIND_TOOLS.input_schema) is None) == is_fit
