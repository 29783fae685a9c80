"""With too many tools to send in full, Parley sends their names, and the model finds the rest."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.chat.reader import parse
from parley.chat.transcript import Proposal, Result, ToolCall, Transcript
from parley.engine import ChatSettings, End, observe, with_own_tools
from parley.engine.observation import guidance
from parley.models.formats import FORMATS
from parley.models.tool_room import ToolRoom
from parley.policy.rules import Pattern, Rules
from parley.tools.catalogue import Catalogue, Tool
from parley.tools.search import FIND_TOOLS
from tests.chats import OK, TOOLS, answer, chat, ran, tool
from tests.defaults import text_tools
from tests.examples import examples
from tests.fakes import LoggedTools, ScriptedModel, Turns, calls, says
from tests.strategies import transcripts

NAMES = [f"tool_{number}" for number in range(300)]
MANY = Catalogue.of([*map(tool, NAMES), tool("send_mail", description="Sends a letter.")])
SMALL = ToolRoom(100)
QUESTION = "💬: Write to Ada.\n"


def turns(text: str, *replies: Any, room: ToolRoom = SMALL, **more: Any) -> Turns:
    """Turns in a chat whose tools have this much room."""
    each = Turns(text, ScriptedModel(*replies), LoggedTools(MANY), **more)
    plain = each.resolve

    def resolve(transcript: Transcript) -> ChatSettings:
        settings = plain(transcript)
        return replace(settings, request=replace(settings.request, tool_room=room))

    each.resolve = resolve
    return each


def find(query: str) -> ToolCall:
    return ToolCall("call_1", "find_tools", json.dumps({"query": query}), 0)


def send(arguments: str = '{"query":"x"}') -> ToolCall:
    return ToolCall("call_2", "send_mail", arguments, 0)


def tools_in(body: Mapping[str, Any]) -> list[str]:
    """The tool names in a request, in any format."""
    return [each.get("name") or each["function"]["name"] for each in body["tools"]]


def bodies(each: Turns) -> list[dict[str, Any]]:
    return [FORMATS["anthropic"].body(request) for request in each.model.asks]


async def found(query: str = "letter", **more: Any) -> Turns:
    """A chat in which the model has found tools."""
    each = turns(QUESTION, calls(find(query)), says("Found."), **more)
    assert await each.run() == End("complete")
    return each


async def test_names_are_sent_once_and_found_tools_in_full_afterwards() -> None:
    each = await found()
    before, after = bodies(each)
    assert tools_in(before) == ["find_tools"]
    assert tools_in(after) == ["find_tools", "send_mail"]
    for name in (*NAMES, "send_mail"):
        assert json.dumps(before).count(f" {name},") + json.dumps(before).count(f" {name}\\n") == 1
    assert " send_mail" not in after["system"] if isinstance(after["system"], str) else True


async def test_it_runs_without_asking_and_is_written_like_any_call() -> None:
    each = await found()
    (proposal,) = parse(each.text).exchanges[0].answers[0].proposals
    assert (proposal.choice, proposal.result) == (
        "ya",
        Result(
            "ok",
            (
                "These tools can be called now, and are described from here on:\n- send_mail: "
                "Sends "
                "a letter."
            ),
        ),
    )
    (entry,) = each.ledger.view().entries
    assert (entry.key.server, entry.key.tool, entry.rule, entry.state) == (
        "parley",
        "find_tools",
        "auto",
        "used",
    )


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("mode", [None, "json", "xml"])
async def test_the_file_alone_makes_the_same_request_again(name: str, mode: str | None) -> None:
    each = await found()
    again = turns(each.text + "And now?\n")
    each.ask("And now?")
    described = text_tools(mode) if mode else None
    both = [
        FORMATS[name].body(
            replace(
                (await observe(one.ports, one.resolve)).request(tools_on=True), text_tools=described
            )
        )
        for one in (each, replace_text(again, each.text))
    ]
    assert both[0] == both[1]
    assert "Sends a letter." in json.dumps(both[0])
    assert json.dumps(both[0]).count("Search.") == 0


def replace_text(each: Turns, text: str) -> Turns:
    each.edit(lambda _: text)
    return each


async def test_a_found_tool_needs_approval_before_it_runs() -> None:
    each = turns(QUESTION, calls(find("letter")), calls(send()), says("Sent."))
    assert await each.run() == End("waiting")
    assert each.tools.log == []
    await each.press("ya", on="send_mail")
    assert await each.run() == End("complete")
    assert each.tools.log == [("send_mail", '{"query":"x"}')]


async def test_a_valid_call_of_a_tool_known_only_by_name_may_run() -> None:
    each = turns(QUESTION, calls(send()), says("Sent."))
    assert await each.run() == End("waiting")
    await each.press("ya")
    assert await each.run() == End("complete")
    assert each.tools.log == [("send_mail", '{"query":"x"}')]


@pytest.mark.parametrize("mode", [None, "json", "xml"])
async def test_an_invalid_call_to_it_is_answered_with_its_parameters(mode: str | None) -> None:
    each = turns(QUESTION, calls(send("{}")), says("Oh."))
    assert await each.run() == End("complete")
    (proposal,) = parse(each.text).exchanges[0].answers[0].proposals
    assert proposal.result
    assert proposal.result.status == "refused"
    assert proposal.result.body.endswith(
        " You were sent only the name of this tool; its parameters are there now."
    )
    request = replace(each.model.asks[-1], text_tools=text_tools(mode) if mode else None)
    assert "Sends a letter." in json.dumps(FORMATS["anthropic"].body(request))


async def test_the_refusal_for_a_tool_sent_in_full_has_no_hint() -> None:
    each = turns(QUESTION, calls(find("letter")), calls(send("{}")), says("Oh."))
    await each.run()
    assert "only the name" not in each.text


async def test_an_unknown_tool_is_answered_without_hundreds_of_names() -> None:
    each = turns(QUESTION, calls(ToolCall("call_1", "sand_mail", "{}", 0)), says("Oh."))
    await each.run()
    assert (
        "Did you mean send_mail? Available tools: find_tools, and 301 that find_tools finds"
        in each.text
    )


async def test_a_rule_may_deny_it() -> None:
    each = await found(rules=Rules(deny=(Pattern("parley/*"),)))
    (proposal,) = parse(each.text).exchanges[0].answers[0].proposals
    assert proposal.result
    assert proposal.result.status == "refused"
    assert tools_in(bodies(each)[-1]) == ["find_tools"]


async def test_words_without_a_match_find_nothing() -> None:
    each = await found("zzz")
    assert "No tool of 301 fits 'zzz'." in each.text
    assert tools_in(bodies(each)[-1]) == ["find_tools"]


async def test_the_tools_found_last_are_sent_if_not_all_fit() -> None:
    room = ToolRoom(MANY.tools[0][1].size // 2)  # room for two of them
    each = turns(QUESTION, calls(find("tool_1")), calls(find("tool_2")), says("So."), room=room)
    await each.run()
    assert [tools_in(body) for body in bodies(each)] == [
        ["find_tools"],
        ["find_tools", "tool_1"],
        ["find_tools", "tool_1", "tool_2"],
    ]
    each.ask("More?")
    each.model.replies = [calls(find("send_mail")), says("So.")]
    await each.run()
    assert tools_in(bodies(each)[-1]) == ["find_tools", "send_mail", "tool_2"]


def test_no_request_has_more_tools_than_a_provider_accepts() -> None:
    called = answer(*(ran(number, name=name) for number, name in enumerate(NAMES[:200], start=1)))
    catalogue = with_own_tools(MANY, chat(called), ToolRoom(10**6, 128))
    assert len(catalogue.in_full) == 128
    assert catalogue.in_full[0] == ("find_tools", FIND_TOOLS)
    assert {wire for wire, _ in catalogue.in_full[1:]} == set(NAMES[73:200])


names = st.sampled_from(["web_search", "read_file", "x", "find_tools", "tool_1"])
finds = st.builds(
    lambda name, body, is_ok: ran(1, Result("ok", body) if is_ok else OK, name=name),
    names,
    st.sampled_from(["- tool_1: x\n- no_such\n- web_search", "", "-tool_1", "- read_file"]),
    st.booleans(),
)


@pytest.mark.parametrize("fits", [True, False])
@given(data=st.data(), file=transcripts(), more=st.lists(finds, max_size=3))
@examples(30)
def test_a_catalogue_that_fits_is_offered_unchanged(
    fits: bool, data: st.DataObject, file: Transcript, more: list[Proposal]
) -> None:
    long = chat(answer(*more)) if more else file
    whole = with_own_tools(TOOLS, long, None)
    tools = [each for _, each in whole.tools]
    rooms = [
        ToolRoom(tokens, count)
        for tokens in range(0, 400, 20)
        for count in (None, 1, 2, 3, 4, len(tools))
    ]
    room = data.draw(st.sampled_from([each for each in rooms if each.holds(tools) == fits]))
    offered = with_own_tools(TOOLS, long, room)
    if fits:
        assert offered == whole
        assert guidance(offered) == guidance(whole)
    else:
        assert {each for _, each in offered.tools} == {*tools, FIND_TOOLS}
        assert offered.wire(FIND_TOOLS) not in offered.names_only
    assert with_own_tools(TOOLS, long, room) == offered


def test_another_servers_tool_with_the_same_name_is_another_tool() -> None:
    namesake = Tool("demo", "find_tools", description="x" * 999)
    catalogue = with_own_tools(Catalogue.of([namesake]), Transcript(), SMALL)
    assert catalogue.names() == ("demo__find_tools", "parley__find_tools")
    assert "find it with parley__find_tools" in guidance(catalogue)
    assert catalogue.names_only == {"demo__find_tools"}


def test_the_names_are_bounded_too() -> None:
    catalogue = with_own_tools(
        Catalogue.of(Tool("s", f"{'x' * 55}{number:03}") for number in range(900)),
        Transcript(),
        ToolRoom(0),
    )
    text = guidance(catalogue)
    assert text.count("xxx0") == 100
    assert len(text) < 9_000
    assert ", and 767 more\n" in text
