"""The catalogue: the meaning of names, and the definitions to which approvals are bound."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.tools.catalogue import Catalogue, Tool

SEARCH = Tool(
    server="web",
    name="search",
    title="Search",
    description="Searches.",
    input_schema={"type": "object", "properties": {"query": {"type": "string"}}},
    annotations={"readOnlyHint": True},
    identity='{"command":"web"}',
)
OTHER = replace(SEARCH, server="code")
READ = Tool(server="files", name="files.read")


@pytest.mark.parametrize(
    "change",
    [
        {"name": "find"},
        {"title": "Find"},
        {"description": "Searches!"},
        {"input_schema": {"type": "object"}},
        {"annotations": {"readOnlyHint": False}},
        {"identity": '{"command":"evil"}'},
    ],
)
def test_any_change_to_the_definition_changes_the_digest(change: dict[str, object]) -> None:
    assert replace(SEARCH, **change).digest != SEARCH.digest  # type: ignore[arg-type]


def test_the_digest_ignores_the_order_of_keys() -> None:
    schema = {"properties": {"query": {"type": "string"}}, "type": "object"}
    assert replace(SEARCH, input_schema=schema).digest == SEARCH.digest
    assert len(SEARCH.digest) == 64


def test_equal_tools_are_one_key_although_their_schemas_are_dicts() -> None:
    assert len({SEARCH, replace(SEARCH), OTHER}) == 2


@given(st.permutations([SEARCH, OTHER, READ]))
def test_the_same_tools_are_the_same_catalogue_in_every_order(tools: list[Tool]) -> None:
    assert Catalogue.of(tools) == Catalogue.of([SEARCH, OTHER, READ])
    assert Catalogue.of(tools).names() == ("code__search", "files_read", "web__search")


def test_a_tool_is_found_by_its_wire_name_and_its_own_name() -> None:
    catalogue = Catalogue.of([SEARCH, READ])
    assert catalogue.get("files_read") == READ
    assert catalogue.get("files.read") == READ
    assert catalogue.get("files__files.read") == READ
    assert catalogue.get("search") == SEARCH
    assert catalogue.get("web__search") == SEARCH
    assert catalogue.get("nope") is None


def test_a_plain_name_of_two_servers_means_no_tool() -> None:
    catalogue = Catalogue.of([SEARCH, OTHER])
    assert catalogue.get("search") is None
    assert catalogue.get("web__search") == SEARCH
    assert catalogue.get("code__search") == OTHER
    assert catalogue.wire(OTHER) == "code__search"
    assert catalogue.wire(READ) is None


def test_the_nearest_name_is_proposed_only_if_it_is_similar() -> None:
    catalogue = Catalogue.of([SEARCH, READ])
    assert catalogue.nearest("Serch") == "search"
    assert catalogue.nearest("quantum") is None
    assert catalogue.nearest("x" * 100_000) is None
    assert Catalogue().nearest("search") is None


@pytest.mark.parametrize(
    ("tool", "label"),
    [
        (SEARCH, "Search"),
        (READ, "files.read"),
        (replace(READ, annotations={"title": "Read"}), "Read"),
    ],
)
def test_the_label_is_the_title_or_the_name(tool: Tool, label: str) -> None:
    assert tool.label == label
