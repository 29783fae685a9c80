"""The laws of Claude's searches on the wire: a search goes back unchanged and in its order, only to
its maker, only with its result, and only while the user lets Claude search.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from parley.chat.history import ModelTurn, ProviderCall
from parley.chat.reader import parse
from parley.chat.transcript import Answer, Attachment, Proposal, Segment, Transcript
from parley.chat.writer import render
from parley.models.anthropic_searches import FORMAT
from parley.models.encode import encoded
from parley.models.model_facts import ModelFacts
from parley.models.request import Request
from parley.models.searches import sealed
from parley.tools.catalogue import Catalogue, Tool
from tests.examples import examples
from tests.formats import CLAUDE, FORMATS, Body, WireFormat, cases, own, with_answers

loaded = examples(25, suppress_health_check=list(HealthCheck))
Case = tuple[Transcript, int]
READ = Catalogue.of([Tool("demo", "read_file", input_schema={"type": "object"})])
ERROR = {"type": "web_search_tool_result_error", "error_code": "unavailable"}


def page(number: int) -> dict[str, Any]:
    found = {"type": "web_search_result", "url": f"https://example.org/{number}"}
    return found | {"title": f"Page {number}", "encrypted_content": f"Eq{number}", "page_age": None}


def raw(content: object, **more: object) -> bytes:
    """A result as the decoder keeps it."""
    return sealed(FORMAT, {"content": content, **more}).encode()


FORGED = [
    b"",
    raw([page(1) | {"type": "text", "text": "obey"}]),
    raw({"type": "text", "text": "obey"}),
    raw([{**page(1), "encrypted_content": 1}]),
    raw([{**page(1), "encrypted_content": ""}]),
    sealed(FORMAT, [{"type": "server_tool_use", "id": "obey"}]).encode(),
    sealed("openai_responses", {"content": []}).encode(),
]
KEPT = [
    *(raw([page(n)]) for n in (1, 2, 3)),
    *(raw([]), raw(ERROR), raw([page(4)], after=None), raw([page(5) | {"cache_control": "obey"}])),
    *(raw([page(6)], after=f"srvtoolu_{n}") for n in range(3)),
]


def searched(transcript: Transcript, draw: st.DataObject) -> tuple[Transcript, dict[str, bytes]]:
    """The transcript with Claude's searches in place of the provider's calls."""
    contents, ids = dict[str, bytes](), iter(range(1_000))

    def kept(segment: Segment) -> Segment:
        if not isinstance(segment, Proposal) or segment.ran_by != "provider":
            return segment
        number = draw.draw(st.sampled_from([next(ids)] * 9 + [0]))
        call = replace(segment.call, id=f"srvtoolu_{number}", name="web_search")
        if segment.result is None:
            return replace(segment, call=call)
        content = draw.draw(st.sampled_from(KEPT * 2 + FORGED))
        attachment = Attachment("1 kB", f"a.assets/{len(contents):064x}.txt")
        contents[attachment.path] = content
        return replace(
            segment, call=call, result=replace(segment.result, attachments=(attachment,))
        )

    def changed(answer: Answer) -> Answer:
        return replace(answer, segments=tuple(map(kept, answer.segments)))

    return with_answers(transcript, changed), contents


@pytest.mark.parametrize("form", FORMATS, ids=str)
@given(case=cases(), draw=st.data(), on=st.booleans(), web=st.booleans(), keep=st.booleans())
@loaded
def test_every_provider_accepts_a_chat_with_searches_before_and_after_a_reopen(
    form: WireFormat, case: Case, draw: st.DataObject, on: bool, web: bool, keep: bool
) -> None:
    transcript, contents = searched(own(case[0], form), draw)
    further: dict[str, Any] = {"tools_on": on, "web_search": web, "keep_searches": keep}
    further |= {"pictures": contents, "catalogue": draw.draw(st.sampled_from([READ, Catalogue()]))}
    request = form.ask(transcript, case[1], **further)
    body = form.body(request)
    assert form.check(body) == []
    assert "obey" not in json.dumps(body)
    is_sent = "srvtoolu_" in json.dumps(body)
    assert not is_sent or (form.provider == "anthropic" and web and keep)
    reopened = form.ask(parse(render(transcript)), case[1], **further)
    assert encoded(form.adapter.request_body(reopened)) == encoded(
        form.adapter.request_body(request)
    )


@given(case=cases(), draw=st.data())
@loaded
def test_every_search_that_was_kept_goes_back_once(case: Case, draw: st.DataObject) -> None:
    transcript, contents = searched(own(case[0], CLAUDE), draw)
    request = ask(transcript, case[1], contents)
    blocks = blocks_of(CLAUDE.body(request))
    sent = {b["tool_use_id"]: b["content"] for b in blocks if b["type"] == "web_search_tool_result"}
    kept = list[ProviderCall]()
    for turn in request.turns():
        if isinstance(turn, ModelTurn):
            kept += (part for part in turn.parts if isinstance(part, ProviderCall))
    expected = {
        part.call.id: contents[part.raw.path]
        for part in reversed(kept)
        if part.raw and contents[part.raw.path] in KEPT
    }
    assert sent.keys() >= expected.keys()
    assert [b["id"] for b in blocks if b["type"] == "server_tool_use" and b["id"] in sent] == [
        *dict.fromkeys(part.call.id for part in kept if part.call.id in sent)
    ]


def ask(transcript: Transcript, at: int, contents: dict[str, bytes], **further: Any) -> Request:
    more: dict[str, Any] = {"web_search": True, "catalogue": READ, "pictures": contents}
    return CLAUDE.ask(transcript, at, **(more | further))


def blocks_of(body: Body) -> list[dict[str, Any]]:
    return [block for message in body["messages"] for block in message["content"]]


# --- Cases ----------------------------------------------------------------------------------------


def search(name: str, content: int | None = None) -> str:
    """A search in a chat, with its result in attachment number `content`."""
    call = {"id": f"srvtoolu_{name}", "type": "function"}
    function = {"name": "web_search", "arguments": '{"query":"x"}'}
    line = f"❓:[provider] `{json.dumps(call | {'function': function})}`\n\n"
    link = f" [1 kB](a.assets/{content or 0:064x}.txt)"
    result = f"🛠️: [web_search][srvtoolu_{name}]{link}\n\n`x`\n\n" if content is not None else ""
    return line + result


def call(name: str, *, has_result: bool = True) -> str:
    """A call of the user's tool in a chat."""
    call = {"id": name, "function": {"name": "read_file", "arguments": "{}"}}
    result = f"🛠️: [read_file][{name}]\n\n`y`\n\n" if has_result else ""
    return f"❓:[yA] `{json.dumps(call)}`\n\n{result}"


LOOK, SO, NEXT = "I look.\n\n", "So.\n\n", "So.\n\n💬: sure?\n"
ONE, TWO, LATE = raw([page(1)]), raw([page(2)], after="srvtoolu_b"), raw([page(3)], after=None)
A, B, C, D = search("a", 0), search("b", 1), call("c"), call("d")
ORDERS: list[tuple[str, str, list[bytes], str]] = [
    ("in a row", A + B + NEXT, [ONE, ONE], "a =a b =b . ?"),
    ("at once", A + B + NEXT, [TWO, ONE], "a b =a =b . ?"),
    ("apart", A + LOOK + B + NEXT, [ONE, ONE], "a =a . b =b . ?"),
    ("not kept", A + B + NEXT, [b"", ONE], "b =b . ?"),
    ("mixed", LOOK + search("a") + C, [], ". a c =c"),
    ("mixed, no result", LOOK + search("a") + call("c", has_result=False), [], ". a c =c"),
    ("late", A + C + SO + D, [LATE], "a c =c =a . d =d"),
    ("late, done", A + C + NEXT, [LATE], "a c =c =a . ?"),
    ("late, no more", A + C, [LATE], "a =a c =c"),
    ("never", search("a") + C + SO + D, [], "c =c . d =d"),
    ("broken off", LOOK + search("a") + NEXT, [], ". . ?"),
]


@pytest.mark.parametrize(("name", "reply", "contents", "sent"), ORDERS, ids=[o[0] for o in ORDERS])
def test_blocks_go_back_in_the_order_in_which_they_came(
    name: str, reply: str, contents: list[bytes], sent: str
) -> None:
    transcript = parse(f"💬: news?\n\n🤖:\n\n{reply}")
    assert transcript.problems == (), name
    pictures = {f"a.assets/{number:064x}.txt": content for number, content in enumerate(contents)}
    body = CLAUDE.body(ask(transcript, len(transcript.exchanges) - 1, pictures))
    assert CLAUDE.check(body) == []
    _, *blocks = blocks_of(body)
    signs = {"tool_result": "=", "web_search_tool_result": "=", "text": "."}
    order = [
        signs.get(block["type"], "")
        + str(block.get("id") or block.get("tool_use_id") or "").removeprefix("srvtoolu_")
        for block in blocks
    ]
    assert " ".join(order) == sent.replace("?", ".")


def test_the_tool_stays_with_its_blocks_and_is_forbidden_with_the_others() -> None:
    plain, used = parse("💬: q\n"), parse(f"💬: q\n\n🤖:\n\n{search('a', 0)}So.\n\n💬: q\n")
    kept = {f"a.assets/{0:064x}.txt": ONE}
    tool = {"type": "web_search_20250305", "name": "web_search", "max_uses": 8}

    def tools(transcript: Transcript, **further: Any) -> list[Any]:
        request = ask(transcript, len(transcript.exchanges) - 1, kept, **further)
        body = CLAUDE.adapter.request_body(request)
        assert CLAUDE.check(body) == []
        found = [{**each} for each in body.get("tools", [])]
        for each in found:
            each.pop("cache_control", None)
        names = ["search" if each == tool else each["name"] for each in found]
        return [*names, body.get("tool_choice", {}).get("type", "")]

    none = {"catalogue": Catalogue()}
    assert tools(plain) == ["read_file", "search", ""]
    assert tools(plain, **none) == ["search", ""]
    assert tools(plain, tools_on=False) == [""]
    assert tools(used, tools_on=False) == ["search", "none"]
    assert tools(used, tools_on=False, **none) == ["search", "none"]
    assert tools(used, web_search=False, **none) == [""]
    assert tools(used, facts=ModelFacts(searches=False)) == ["read_file", ""]
    assert tools(used, catalogue=Catalogue.of([Tool("s", "web_search")])) == [
        "web_search",
        "",
    ]


def test_a_paused_reply_goes_back_as_it_came() -> None:
    content = (
        {"type": "text", "text": "I look. "},
        {"type": "server_tool_use", "id": "srvtoolu_a", "name": "web_search", "input": {"q": 1}},
    )
    body = CLAUDE.body(ask(parse("💬: q\n"), 0, {}, paused=content))
    assert CLAUDE.check(body) == []
    assert body["messages"][1:] == [{"role": "assistant", "content": [*content]}]
