"""Every fault in every wire format, from the server to the file: nothing is lost, and the chat can
continue.

For each fault, a real HTTP server answers the real SDK client, through the loop, into a file on
disk.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from parley.chat.reader import parse
from parley.chat.transcript import Note, Text
from parley.engine import End
from parley.errors import ModelError
from parley.storage.chat_file import FileDocument
from tests.chats import TOOLS
from tests.fakes import LoggedTools, ScriptedModel, Turns
from tests.faulty_providers import (
    FORMATS,
    HTML,
    KEY,
    FaultyProviders,
    ProviderModel,
    begun,
    check_message,
    refusal,
)
from tests.faulty_server import BEGUN, SAYS, STREAM, Part, Response, event


@dataclass(frozen=True)
class Fault:
    """A server's behaviour; the reported cause and remedy, and the notice in the file.

    `half`: half a sentence comes first. `tries`: the number of requests. `url`: the server's
    address.
    """

    response: Response
    cause: str
    action: str
    notice: str
    half: bool = False
    tries: int = 1
    url: str | None = None


AGAIN = ":ParleyRespond asks again"
OTHERWISE = f"rephrase the question; {AGAIN}"
WAIT = "then try :ParleyRespond again"
ASK_AGAIN = "wait, then try :ParleyRespond again"
RETRY = "try :ParleyRespond again"
SEE = ":ParleyRequest shows"
TOO_LONG = "the chat is larger than the model's context window"

LOST = ("faulty broke off the connection", AGAIN, "faulty broke off the connection")
SILENT = ("faulty did not answer in time", ASK_AGAIN, "faulty did not answer in time")
EARLY = ("faulty ended the stream before the reply was complete", AGAIN, "the stream ended early")
UNREADABLE = ("not JSON", AGAIN, "an unreadable event")
PACKED = (
    "faulty sent an unreadable response (it cannot be decompressed",
    "check the base URL",
    "faulty sent an unreadable response",
)
AWAY = (
    "faulty cannot be reached",
    "check the network and the base URL",
    "faulty cannot be reached",
)
CUT = (
    "the reply was cut off at max_tokens",
    "raise max_tokens",
    "the reply was cut off at max_tokens",
)


def refused(status: int, action: str, tries: int = 1, **headers: str) -> Fault:
    """A refusal with a JSON body in which the provider repeats the key."""
    cause = f"faulty answered {status}: it was … that failed"
    return Fault(
        refusal(status, **headers), cause, action, f"faulty answered {status}", tries=tries
    )


def page(status: int, body: bytes, cause: str, action: str, notice: str, tries: int = 1) -> Fault:
    """An answer from a server that is not a provider."""
    parts = [body] if body else []
    return Fault(
        Response(parts, status, {"content-type": "text/html"}), cause, action, notice, tries=tries
    )


def instead(parts: Sequence[Part], told: tuple[str, str, str], tries: int = 1) -> Fault:
    """A fault instead of a stream."""
    return Fault(Response(parts), *told, tries=tries)


def in_mid_text(kind: str, parts: Sequence[Part], told: tuple[str, str, str]) -> Fault:
    """A fault instead of the rest of a stream."""
    return Fault(Response([*begun(kind, "after"), *parts]), *told, half=True)


def packed(parts: Sequence[Part], told: tuple[str, str, str], tries: int = 1) -> Fault:
    """A fault in a response that claims to be compressed."""
    return Fault(
        Response(parts, headers={**STREAM, "content-encoding": "gzip"}), *told, tries=tries
    )


def elsewhere(url: str, told: tuple[str, str, str], tries: int) -> Fault:
    """An address without a provider."""
    return Fault(Response(), *told, tries=tries, url=url)


def own(kind: str, **payloads: Sequence[Any]) -> list[bytes]:
    """This format's own events."""
    return [event(each) for each in payloads[kind]]


def call_begun(kind: str) -> list[bytes]:
    """A tool call without the end of its arguments."""
    block = {"type": "tool_use", "id": "toolu_1", "name": "web_search", "input": {}}
    piece = {"type": "input_json_delta", "partial_json": '{"que'}
    call = {"index": 0, "id": "call_1", "function": {"name": "web_search", "arguments": '{"que'}}
    item = {"type": "function_call", "call_id": "call_1", "name": "web_search", "arguments": ""}
    return own(
        kind,
        anthropic=[
            {"type": "content_block_stop", "index": 0},
            {"type": "content_block_start", "index": 1, "content_block": block},
            {"type": "content_block_delta", "index": 1, "delta": piece},
        ],
        chat=[{"choices": [{"delta": {"tool_calls": [call]}}]}],
        responses=[
            {"type": "response.output_item.added", "output_index": 1, "item": item},
            {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": '{"que'},
        ],
    )


def ended(kind: str, anthropic: str, chat: str, responses: str) -> list[bytes]:
    """The end of a stream, for the reason that the format gives this name."""
    incomplete = {"status": "incomplete", "incomplete_details": {"reason": responses}}
    return own(
        kind,
        anthropic=[
            {"type": "message_delta", "delta": {"stop_reason": anthropic}},
            {"type": "message_stop"},
        ],
        chat=[{"choices": [{"delta": {}, "finish_reason": chat}]}],
        responses=[{"type": "response.incomplete", "response": incomplete}],
    )


def at_the_bound(kind: str) -> list[bytes]:
    return ended(kind, "max_tokens", "length", "max_output_tokens")


def model_refuses(kind: str) -> Fault:
    """Claude refuses at the end of its text, OpenAI's models in a separate field."""
    piece = {"type": "response.refusal.delta", "output_index": 0, "delta": "Half"}
    parts = own(
        kind,
        anthropic=[
            {"type": "message_delta", "delta": {"stop_reason": "refusal"}},
            {"type": "message_stop"},
        ],
        chat=[{"choices": [{"delta": {"refusal": "Half"}, "finish_reason": "stop"}]}],
        responses=[piece, {"type": "response.completed", "response": {"status": "completed"}}],
    )
    before = begun(kind, "after") if kind == "anthropic" else []
    cause = "the model refused to answer"
    return Fault(Response([*before, *parts]), cause, OTHERWISE, cause, half=True)


def filtered(kind: str) -> Fault:
    """Anthropic's filter ends the stream with an error."""
    blocked = "Output blocked by content filtering policy"
    if kind == "anthropic":
        error = {"type": "error", "error": {"type": "invalid_request_error", "message": blocked}}
        return in_mid_text(
            kind, [event(error)], (f"faulty broke off the reply: {blocked}", AGAIN, blocked)
        )
    cause = "the provider's content filter cut off the reply"
    parts = ended(kind, "", "content_filter", "content_filter")
    return in_mid_text(kind, parts, (cause, OTHERWISE, cause))


def overloaded(kind: str) -> Fault:
    error = {"type": "overloaded_error", "code": "server_error", "message": f"too busy, {KEY}"}
    told = ("faulty broke off the reply: too busy, …", ASK_AGAIN, "too busy, …")
    return in_mid_text(kind, [event({"type": "error", "error": error})], told)


def too_long(kind: str) -> Fault:
    words = {
        "anthropic": "prompt is too long: 213462 tokens > 200000 maximum",
        "chat": (
            "This model's maximum context length is 128000 tokens. However, your messages "
            "are longer"
        ),
        "responses": "Your input exceeds the context window of this model",
    }
    body = event({"error": {"message": words[kind]}}).removeprefix(b"data: ")
    response = Response([body], 400, {"content-type": "application/json"})
    return Fault(response, f"faulty answered 400: {words[kind]}", "shorten the question", TOO_LONG)


def empty(kind: str) -> list[bytes]:
    """A stream that ends normally without content."""
    return SAYS[kind]()


def faults(kind: str) -> Mapping[str, Fault]:
    """All faults in a format."""
    piece = SAYS[kind]("Hälf")[BEGUN[kind] - 1]
    in_character = piece[: piece.index("ä".encode()) + 1]
    strange = event(
        {"type": "content_block_start", "index": "x", "output_index": "x", "choices": 7}
    )
    torn = gzip.compress(b"".join(SAYS[kind]("never seen")))[:15]
    tomorrow = {"retry-after": "86400"}
    no_stream = "faulty did not send an event stream"
    return {
        "400 wrong request": refused(400, SEE),
        "401 wrong key": refused(401, "check FAULTY_KEY (the key was not accepted)"),
        "402 no credit": refused(402, "check the account (no credit is left)"),
        "403 not allowed": refused(403, "check FAULTY_KEY and the account"),
        "404 unknown model": refused(404, "check the agent's model 'some-model'"),
        "407 the proxy requires a password": refused(407, "check HTTPS_PROXY"),
        "408 too slow": refused(408, RETRY, tries=4),
        "409 conflict": refused(409, RETRY, tries=4),
        "413 too large": refused(413, "shorten the question"),
        "422 not understood": refused(422, SEE),
        "429 slow down": refused(429, WAIT, tries=4),
        "429 for a while": refused(429, WAIT, 4, **{"retry-after": "7"}),
        "429 till tomorrow": refused(429, WAIT, 1, **tomorrow),
        "500 broken": refused(500, RETRY, tries=4),
        "502 a page": page(
            502,
            HTML.encode(),
            "faulty answered 502: Bad gateway sorry",
            RETRY,
            "faulty answered 502",
            tries=4,
        ),
        "503 away": refused(503, RETRY, tries=4),
        "504 nothing": page(
            504, b"", "faulty answered 504. What to do", RETRY, "faulty answered 504", tries=4
        ),
        "529 overloaded": refused(529, f"wait, {WAIT} (the provider is overloaded)", tries=4),
        "too long for the model": too_long(kind),
        "a proxy's page": page(
            200,
            HTML.encode(),
            "answered with text/html instead of an event stream",
            "check the base URL",
            no_stream,
        ),
        "a page in the place of events": instead([HTML.encode()], EARLY),
        "nothing": instead([], EARLY),
        "nobody listens": elsewhere("http://127.0.0.1:9/v1", AWAY, tries=4),
        "no such host": elsewhere("http://no-such-host.invalid/v1", AWAY, tries=4),
        "reset before the reply": instead(["reset"], LOST, tries=4),
        "cut before the reply": instead(["cut"], LOST, tries=4),
        "silence before the reply": instead(["silence"], SILENT, tries=4),
        "packed garbage": packed([b"this is not gzip at all"], PACKED),
        "packed and torn": packed([torn, "cut"], LOST, tries=4),
        "reset in mid-text": in_mid_text(kind, ["reset"], LOST),
        "cut in mid-text": in_mid_text(kind, ["cut"], LOST),
        "cut in mid-event": in_mid_text(kind, [piece[:-5], "cut"], LOST),
        "cut in mid-character": in_mid_text(kind, [in_character, "cut"], LOST),
        "cut in mid-call": in_mid_text(kind, [*call_begun(kind), "cut"], LOST),
        "silence in mid-text": in_mid_text(kind, ["silence"], SILENT),
        "silence in mid-call": in_mid_text(kind, [*call_begun(kind), "silence"], SILENT),
        "end in mid-text": in_mid_text(kind, [], EARLY),
        "end in mid-call": in_mid_text(kind, call_begun(kind), EARLY),
        "half a character": in_mid_text(kind, [in_character, b"\n\n"], UNREADABLE),
        "no JSON": in_mid_text(kind, [b"data: {nope}\n\n"], UNREADABLE),
        "no object": in_mid_text(
            kind, [b"data: [1]\n\n"], ("not a JSON object", AGAIN, "an unreadable event")
        ),
        "strange values": in_mid_text(
            kind, [strange], ("cannot be read", AGAIN, "a malformed event")
        ),
        "an error event": overloaded(kind),
        "an empty reply": instead(
            empty(kind), ("the model's reply was empty", AGAIN, "the model's reply was empty")
        ),
        "a filtered reply": filtered(kind),
        "a refusal": model_refuses(kind),
        "max_tokens in mid-text": in_mid_text(kind, at_the_bound(kind), CUT),
        "max_tokens in mid-call": in_mid_text(kind, [*call_begun(kind), *at_the_bound(kind)], CUT),
    }


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", faults("chat"))
@pytest.mark.parametrize("kind", FORMATS)
async def test_after_any_fault_the_file_is_valid_and_the_next_turn_completes_it(
    faulty: FaultyProviders, tmp_path: Path, kind: str, name: str
) -> None:
    fault = faults(kind)[name]
    path = tmp_path / "chat.md"
    path.write_text("💬: hi\n\n💬: later\n", encoding="utf-8")
    turns = Turns(
        "", ScriptedModel(), LoggedTools(TOOLS), provider="faulty", model_name="some-model"
    )
    good = faulty.provider(kind)
    bad = replace(good, base_url=fault.url) if fault.url else good
    model = ProviderModel(faulty, bad, turns)
    turns.ports = replace(turns.ports, model=model, document=FileDocument(path, 0))

    faulty.plan(fault.response)
    end = await turns.run()
    assert end.kind == "interrupted"
    check_message(ModelError(end.message, reason="x"), fault.cause, fault.action)
    retries = [status for status in turns.observer.statuses if "retry" in status]
    assert len(retries) == fault.tries - 1
    assert len(faulty.server.requests) == (0 if fault.url else fault.tries)
    written = path.read_text(encoding="utf-8")
    transcript = parse(written)
    assert not transcript.problems
    half = [Text("Half")] if fault.half else []
    notice = Note(f"[Interrupted: {fault.notice}]")
    assert list(transcript.exchanges[0].answers[0].segments) == [*half, notice]
    assert KEY not in written
    assert written.endswith("]\n\n💬: later\n")

    faulty.plan(Response(SAYS[kind]("Half", " of it")))
    model.provider = good
    assert await turns.run() == End("complete")
    assert path.read_text(encoding="utf-8") == "💬: hi\n\n🤖:[Demo]\n\nHalf of it\n\n💬: later\n"


def test_the_matrix_is_large_enough() -> None:
    assert all(len(faults(kind)) >= 25 for kind in FORMATS)


STRANGE = [
    {"type": "response.some_news.delta", "delta": "x"},
    {"type": "ping"},
    {"type": None},
    {"a": [1]},
]


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("kind", FORMATS)
async def test_unknown_kinds_of_events_are_not_faults(faulty: FaultyProviders, kind: str) -> None:
    strange = [
        b": a comment\n\n",
        b"event: news\nid: 7\nretry: 3\ndata: {}\n\n",
        *map(event, STRANGE),
    ]
    first, *rest = SAYS[kind]("Whole")
    faulty.plan(Response([first, *strange, *rest]))
    turns = Turns("💬: hi\n", ScriptedModel(), LoggedTools(TOOLS), provider="faulty")
    turns.ports = replace(turns.ports, model=ProviderModel(faulty, faulty.provider(kind), turns))
    assert await turns.run() == End("complete")
    assert "\n\nWhole\n\n" in turns.text
