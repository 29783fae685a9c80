"""Claude searches, pauses, searches together with a call that waits for the user, and answers after
a restart: each request contains the blocks as they were sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from parley.chat.transcript import Proposal, Text
from parley.demo.signing import sign
from parley.models.encode import encoded
from parley.settings.values import Approval
from tests.e2e.machine import read
from tests.e2e.test_web_search import app_on, asked, in_a_new_process
from tests.faulty_server import event
from tests.ledgers import open_ledger
from tests.model_servers import Answer, ModelServer
from tests.strict import check_anthropic

Block = dict[str, Any]


def found(name: str) -> Block:
    page = {"type": "web_search_result", "url": f"https://example.org/{name}", "title": name}
    content = [{**page, "encrypted_content": f"Eq{name}", "page_age": None}]
    return {
        "type": "web_search_tool_result",
        "tool_use_id": f"srvtoolu_{name}",
        "content": content,
    }


def use(name: str) -> Block:
    search = {"type": "server_tool_use", "id": f"srvtoolu_{name}", "name": "web_search"}
    return {**search, "input": {"query": name}}


THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": sign("Hm.")}
CITATION = {
    "type": "web_search_result_location",
    "url": "https://example.org/A",
    "title": "A",
    "encrypted_index": "Eo",
    "cited_text": "it is out",
}
LOOK = {"type": "text", "text": "I look."}
CITED = {"type": "text", "text": "It is out", "citations": [CITATION]}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "note", "input": {"text": "out"}}
REPLIES: list[tuple[str, list[Block]]] = [
    ("pause_turn", [THOUGHT, LOOK, use("A")]),
    ("pause_turn", [found("A"), CITED, use("B")]),
    ("tool_use", [found("B"), {"type": "text", "text": "Both."}, THOUGHT, use("C"), CALL]),
    ("end_turn", [found("C"), {"type": "text", "text": "That is all."}]),
    ("end_turn", [{"type": "text", "text": "You are welcome."}]),
]


def stream(reason: str, blocks: list[Block]) -> list[bytes]:
    """A reply whose blocks come in one piece."""
    pieces = [event({"type": "message_start", "message": {"usage": {"input_tokens": 3}}})]
    for at, block in enumerate(blocks):
        pieces += [event({"type": "content_block_start", "index": at, "content_block": block})]
        pieces += [event({"type": "content_block_stop", "index": at})]
    searches = sum(block["type"] == "web_search_tool_result" for block in blocks)
    usage = {"output_tokens": 2, "server_tool_use": {"web_search_requests": searches}}
    end = {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}
    return [*pieces, event(end), event({"type": "message_stop"})]


async def test_a_search_is_paused_then_waits_for_the_user_and_goes_back_unchanged(
    tmp_path: Path,
) -> None:
    path, sent, refused = tmp_path / "chat.md", list[Any](), list[str]()

    def answer(_: str, query: Mapping[str, str], body: Any) -> Answer:
        refused.extend(check_anthropic(body))
        (tmp_path / f"{len(sent)}.copy").write_bytes(path.read_bytes())
        sent.append(body)
        return 200, b"".join(stream(*REPLIES[len(sent) - 1]))

    async with ModelServer(answer) as server:
        ledger = tmp_path / "ledger.db"
        app = app_on(server.url, tmp_path, open_ledger(ledger), Approval())
        try:
            assert (await asked(app, path, "anthropic", "news?")).kind == "waiting"
            assert len(sent) == 3
        finally:
            await app.close()
        app = app_on(server.url, tmp_path, open_ledger(ledger))
        try:
            assert (await asked(app, path, "anthropic")).kind == "complete"
            assert (await asked(app, path, "anthropic", "thanks")).kind == "complete"
        finally:
            await app.close()
        copies = [("anthropic", f"{number}.copy") for number in (3, 4)]
        made = await asyncio.to_thread(in_a_new_process, server.url, tmp_path, copies)
    assert refused == []
    assert made == [encoded(sent[number]) for number in (3, 4)]
    names = [[tool["name"] for tool in body["tools"]] for body in sent]
    assert names == [["failing", "hostile", "note", "other", "web_search"]] * 5
    first, second = REPLIES[0][1], REPLIES[1][1]
    assert [body["messages"][1:] for body in sent[:3]] == [
        [],
        [{"role": "assistant", "content": first}],
        [{"role": "assistant", "content": [*first, *second]}],
    ]
    loop = [
        *(THOUGHT, LOOK, use("A"), found("A"), {"type": "text", "text": "It is out"}),
        *(use("B"), found("B"), {"type": "text", "text": "Both."}, THOUGHT, use("C")),
    ]
    _, reply, results = sent[3]["messages"]
    assert reply["content"] == [*loop, CALL]
    assert [block["type"] for block in results["content"]] == ["tool_result"]
    later = [block for block in sent[4]["messages"][3]["content"] if block["type"] != "text"]
    assert later == [found("C")]
    transcript = read(path)
    assert transcript.problems == ()
    segments = transcript.exchanges[0].answers[0].segments
    searches = [s for s in segments if isinstance(s, Proposal) and s.ran_by]
    assert [s.result and s.result.body for s in searches] == [
        f"{name}: https://example.org/{name}" for name in "ABC"
    ]
    assert [s.text for s in segments if isinstance(s, Text)][-1] == "That is all."
