"""The model reads resources named in results, from the server that named them, with approval like
any call.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from parley.chat.reader import parse
from parley.chat.transcript import Result, ToolCall
from parley.engine import ChatSettings, End, observe, with_own_tools
from parley.engine.named_resources import readers, resources_of
from parley.engine.observation import guidance
from parley.models.formats import FORMATS
from parley.models.tool_room import ToolRoom
from parley.policy.rules import Pattern, Rules
from parley.tools.catalogue import Catalogue, Tool
from parley.tools.resources import is_reader, reader
from parley.tools.search import FIND_TOOLS
from tests.chats import answer, chat, ran, tool
from tests.defaults import text_tools
from tests.fakes import LoggedTools, ScriptedModel, Turns, calls, says

DOCS = tool(
    "search", "docs", identity='{"url":"https://docs"}', instructions="Be kind.", trusted=True
)
MAIL = tool("inbox", "mail", identity='{"url":"https://mail"}')
BOTH = Catalogue.of([DOCS, MAIL])
TEA, BILL = "note://tea", "mail://bill"
FOUND = Result("ok", f"1 note\n[resource {TEA}, tea]")
IN_MAIL = Result("ok", f"[resource {BILL}]")
READ = "docs__read_resource"


def read(uri: str = TEA, name: str = READ, number: int = 2) -> ToolCall:
    return ToolCall(f"call_{number}", name, json.dumps({"uri": uri}), 0)


def search(number: int = 1, name: str = "search") -> ToolCall:
    return ToolCall(f"call_{number}", name, '{"query":"tea"}', 0)


def turns(
    *replies: Any, catalogue: Catalogue = BOTH, text: str = "💬: What of tea?\n", **more: Any
) -> Turns:
    results = {"search": FOUND, "inbox": IN_MAIL, "read_resource": Result("ok", "Tea is hot.")}
    return Turns(text, ScriptedModel(*replies), LoggedTools(catalogue, results), **more)


async def proposed(
    call: ToolCall, *replies: Any, first: ToolCall | None = None, **more: Any
) -> Turns:
    """A chat in which a result named a resource, and the model wants to read one."""
    each = turns(calls(first or search()), calls(call), *replies, **more)
    assert await each.run() == End("waiting")
    await each.press("ya")
    await each.run()
    return each


def results(each: Turns) -> list[Result | None]:
    return [p.result for a in parse(each.text).exchanges[0].answers for p in a.proposals]


async def test_it_is_offered_when_a_result_names_a_resource_and_needs_approval() -> None:
    each = await proposed(read(), says("Hot."))
    before, after = (request.catalogue.names() for request in each.model.asks)
    assert (before, after) == (("inbox", "search"), (READ, "inbox", "search"))
    assert results(each) == [FOUND, None]
    assert each.tools.log == [("search", '{"query":"tea"}')]
    await each.press("ya")
    assert await each.run() == End("complete")
    assert results(each)[1] == Result("ok", "Tea is hot.")
    assert each.tools.log[1:] == [("read_resource", json.dumps({"uri": TEA}))]
    assert [(e.key.server, e.key.tool, e.rule) for e in each.ledger.view().entries][1:] == [
        ("docs", "read_resource", "key")
    ]


async def test_a_remembered_approval_covers_one_server_and_all_its_named_resources() -> None:
    also = calls(read(number=3))
    each = await proposed(
        read(), also, calls(search(4, "inbox")), calls(read(BILL, "mail__read_resource", 5))
    )
    await each.press("yO")
    assert await each.run() == End("waiting")
    assert each.tools.log[-1] == ("read_resource", json.dumps({"uri": TEA}))
    assert each.ledger.view().entries[-1].rule == "memory"
    await each.press("ya")
    assert await each.run() == End("waiting")
    assert "mail__read_resource" in each.text
    assert results(each)[-1] is None


async def test_a_server_with_the_same_name_from_elsewhere_asks_again() -> None:
    each = await proposed(read(), calls(read(number=3)))
    await each.press("yO")
    other = replace(DOCS, identity='{"url":"https://elsewhere"}')
    each.tools.offered = Catalogue.of([other, MAIL])
    assert await each.run() == End("waiting")
    assert each.tools.log[1:] == []
    assert results(each) == [FOUND, None]


async def test_while_the_server_is_missing_the_call_waits_and_an_approval_says_so() -> None:
    each = await proposed(read(), says("Hot."))
    each.tools.offered = Catalogue.of([MAIL], ["docs"])
    assert await each.run() == End("waiting")
    choice = await each.press("ya")
    assert (choice.decided, choice.message) == (
        False,
        f"{READ} cannot run now: the tools of docs are missing",
    )
    each.tools.offered = BOTH
    await each.press("ya")
    assert await each.run() == End("complete")
    assert results(each)[1] == Result("ok", "Tea is hot.")


@pytest.mark.parametrize(
    "uri", [BILL, "file:///etc/passwd", "note://tea/../secret", "note://tea, tea"]
)
async def test_a_resource_that_no_result_from_its_server_named_is_not_read(uri: str) -> None:
    first = calls(search(), replace(search(3, "inbox"), index=1))
    each = turns(first, calls(read(uri)), says("I cannot."))
    await each.run()
    await each.press("yA")
    assert await each.run() == End("complete")  # no choice is needed
    assert ("resources of docs", "") in each.tools.log
    assert all(name != "read_resource" for name, _ in each.tools.log)
    assert results(each)[-1] == Result(
        "refused", f"The MCP server docs named no resource {uri!r}. It named: {TEA}"
    )


async def test_listed_resources_may_be_read_and_the_error_names_the_first_of_many() -> None:
    listed = [f"note://{number}" for number in range(30)]
    each = turns(
        calls(search()), calls(read("note://7")), calls(read("note://77", number=3)), says("No.")
    )
    each.tools.listed = listed
    await each.run()
    await each.press("ya")
    await each.run()
    await each.press("yo")
    assert await each.run() == End("complete")
    good, bad = results(each)[1:]
    assert good == Result("ok", "Tea is hot.")
    assert bad is not None
    assert bad.body.startswith(
        f"The MCP server docs named no resource 'note://77'. It named: {TEA}, note://0,"
    )
    assert bad.body.endswith("note://18 and 11 more")


async def test_invalid_arguments_are_refused_without_asking() -> None:
    call = ToolCall("call_2", READ, '{"url":"note://tea"}', 0)
    each = turns(calls(search()), calls(call), says("I cannot."))
    await each.run()
    await each.press("ya")
    assert await each.run() == End("complete")
    assert "[refused]" in each.text


@pytest.mark.parametrize(
    ("rules", "status"),
    [
        (Rules(auto_read_only=True), None),
        (Rules(auto=(Pattern("mail/read_resource"),)), None),
        (Rules(auto=(Pattern("docs/read_resource", {"uri": "note://.*"}),)), "ok"),
        (Rules(auto=(Pattern("read_*"),)), "ok"),
        (Rules(deny=(Pattern("docs/read_*"),)), "refused"),
    ],
)
async def test_rules_name_it_by_its_server(rules: Rules, status: str | None) -> None:
    _, result = results(await proposed(read(), says("Done."), rules=rules))
    assert (result.status if result else None) == status


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("mode", [None, "json", "xml"])
async def test_it_is_offered_to_every_model(name: str, mode: str | None) -> None:
    transcript = chat(answer(ran(name="search", result=FOUND)))
    catalogue = with_own_tools(BOTH, transcript, None)
    each = turns(catalogue=BOTH, text="💬: q\n\n🤖:[Demo]\n\nHi.\n\n💬: Tea?\n")
    request = (await observe(each.ports, each.resolve)).request(tools_on=True)
    words = text_tools(mode) if mode else None
    body = FORMATS[name].body(replace(request, catalogue=catalogue, text_tools=words))
    assert READ in json.dumps(body)
    assert "Reads a resource that results of the MCP server docs named" in json.dumps(body)


def test_other_tools_names_stay_unchanged() -> None:
    own = [tool("read_resource", "docs"), tool(READ, "mail"), tool("read_resource", "elsewhere")]
    catalogue = Catalogue.of([DOCS, MAIL, *own])
    transcript = chat(answer(ran(name="search", result=FOUND), ran(2, IN_MAIL, name="inbox")))
    extended = with_own_tools(catalogue, transcript, None)
    added = {wire: tool for wire, tool in extended.tools if (wire, tool) not in catalogue.tools}
    assert set(catalogue.tools) < set(extended.tools)
    assert {tool.server for tool in added.values()} == {"docs", "mail"}
    assert all(map(is_reader, added.values()))
    assert not any(map(is_reader, own))
    assert with_own_tools(extended, transcript, None) is extended


def test_with_too_many_tools_it_is_sent_in_full() -> None:
    many = Catalogue.of([DOCS, *(tool(f"tool_{number}", "docs") for number in range(300))])
    transcript = chat(answer(ran(name="search", result=FOUND)))
    extended = with_own_tools(many, transcript, ToolRoom(10))
    assert {wire for wire, _ in extended.in_full} == {READ, "find_tools", "search"}
    assert extended.wire(FIND_TOOLS) == "find_tools"


def test_a_servers_instructions_are_still_sent() -> None:
    transcript = chat(answer(ran(name="search", result=FOUND)))
    assert "Be kind." in guidance(with_own_tools(BOTH, transcript, None))


@pytest.mark.parametrize(
    ("name", "result"),
    [
        ("search", Result("ok", "see [resource note://tea, tea]")),
        ("search", Result("ok", "\\[resource note://tea, tea]")),
        ("search", Result("ok", "[resource image/png, note://tea, 3 B]")),
        ("search", Result("refused", f"[resource {TEA}]")),
        ("gone", FOUND),
        (READ, FOUND),
    ],
)
def test_results_without_resources_offer_nothing(name: str, result: Result) -> None:
    transcript = chat(answer(ran(name=name, result=result)))
    assert with_own_tools(BOTH, transcript, None) is BOTH


def test_resources_belong_to_the_server_that_named_them() -> None:
    transcript = chat(
        answer(ran(name="search", result=FOUND), ran(2, IN_MAIL, name="inbox")),
        answer(ran(3, FOUND, name="search")),
    )
    assert resources_of("docs", BOTH, transcript) == [TEA]
    assert resources_of("mail", BOTH, transcript) == [BILL]
    assert readers(BOTH, transcript) == [reader(DOCS), reader(MAIL)]


def test_an_approval_is_bound_to_the_servers_origin_and_definition() -> None:
    others: list[Tool] = [
        replace(DOCS, identity='{"url":"https://elsewhere"}'),
        replace(DOCS, instructions="Be quick."),
        MAIL,
    ]
    digests = {reader(each).digest for each in (DOCS, *others)}
    assert len(digests) == 4
    assert reader(replace(DOCS, name="other", description="Other.")).digest == reader(DOCS).digest


async def test_a_chat_whose_settings_exclude_a_server_has_none_of_its_resources() -> None:
    each = await proposed(read())
    plain = each.resolve

    def resolve(transcript: Any) -> ChatSettings:
        return replace(plain(transcript), tools=lambda _: Catalogue.of([MAIL]))

    observation = await observe(each.ports, resolve)
    assert observation.catalogue.names() == ("inbox",)
