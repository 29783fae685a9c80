"""The table of Parley's own tools holds for each of them."""

from __future__ import annotations

import pytest

from parley.engine import observe
from parley.engine.own_tools import OWN, run_own
from parley.tools.catalogue import Catalogue, Tool
from parley.tools.long_results import READ_RESULT
from parley.tools.resources import reader
from parley.tools.search import FIND_TOOLS
from parley.tools.skill_tool import skill_tool
from tests.chats import tool
from tests.fakes import LoggedTools, ScriptedModel, Turns

READER = reader(tool("search", "docs"))
TOOLS = [READ_RESULT, READER, skill_tool("Skills"), FIND_TOOLS]


def test_the_table_has_each_tool() -> None:
    assert list(OWN) == [each.name for each in TOOLS]


@pytest.mark.parametrize("own", TOOLS, ids=lambda own: own.name)
async def test_arguments_that_cannot_be_decoded_are_an_error(own: Tool) -> None:
    each = Turns("💬: Hi.\n", ScriptedModel(), LoggedTools(Catalogue()))
    seen = await observe(each.ports, each.resolve)
    result = await run_own(each.ports, seen, own, '{"a": 1, "a": 2}')
    assert result is not None
    assert result.status == "error"
    assert result.body == 'Invalid arguments: the key "a" is given twice'


@pytest.mark.parametrize("own", TOOLS, ids=lambda own: own.name)
async def test_a_servers_tool_with_the_same_name_does_not_run_here(own: Tool) -> None:
    each = Turns("💬: Hi.\n", ScriptedModel(), LoggedTools(Catalogue()))
    seen = await observe(each.ports, each.resolve)
    assert await run_own(each.ports, seen, tool(own.name, "parley"), "{}") is None


def test_only_a_tool_without_a_server_runs_unasked() -> None:
    assert [bool(each.unasked) for each in TOOLS] == [True, False, True, True]
