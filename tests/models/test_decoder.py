"""Every stream in the corpus gives the recorded events, for any cuts in its bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from parley.errors import ModelError
from parley.models import anthropic, openai_chat, openai_responses
from parley.models.accumulate import PendingCall
from parley.models.decoder import Decoder, stream_failed
from parley.models.events import TextDelta, joined
from parley.models.redact import Redacting
from parley.models.sse import SSE
from tests.streams_corpus import STREAMS, decoded, expected

Raw: TypeAlias = Mapping[str, Any]

streams = pytest.mark.parametrize(
    "path", sorted(STREAMS.glob("*/*.sse")), ids=lambda path: f"{path.parent.name}/{path.stem}"
)


@streams
def test_a_stream_gives_the_expected_events(path: Path) -> None:
    assert decoded(path, [path.read_bytes()]) == expected(path)


@pytest.mark.exhaustive
@streams
def test_a_stream_byte_by_byte_gives_the_same_events(path: Path) -> None:
    raw = path.read_bytes()
    assert decoded(path, (raw[n : n + 1] for n in range(len(raw)))) == expected(path)


@pytest.mark.exhaustive
@streams
def test_a_stream_cut_anywhere_has_the_same_payloads(path: Path) -> None:
    raw = path.read_bytes()
    whole = _payloads([raw])
    for cut in range(len(raw)):
        assert _payloads([raw[:cut], raw[cut:]]) == whole


def _payloads(chunks: list[bytes]) -> list[str]:
    sse = SSE()
    return [payload for chunk in chunks for payload in sse.feed(chunk)] + sse.end()


@pytest.mark.parametrize("kind", [anthropic.Decoder, openai_chat.Decoder, openai_responses.Decoder])
def test_a_decoder_that_has_failed_only_fails_again(kind: type[Decoder]) -> None:
    decoder = kind("somebody", "a-model")
    with pytest.raises(ModelError) as first:
        decoder.feed({"type": "error", "error": {"message": "No."}})
    with pytest.raises(ModelError) as again:
        decoder.feed({"type": "ping"})
    with pytest.raises(ModelError) as at_the_end:
        decoder.end()
    assert again.value is first.value is at_the_end.value
    assert str(first.value) == "somebody broke off the reply: No."


@pytest.mark.parametrize(
    ("error", "retryable", "is_broken"),
    [
        ({"type": "api_error"}, True, True),
        ({"type": "internal_server_error", "code": "500"}, True, True),  # LiteLLM
        ({"code": 502, "message": "Provider returned error"}, True, True),  # OpenRouter
        ({"type": "overloaded_error", "code": "server_error"}, True, False),
        ({"type": "server_error", "code": 429}, True, False),
        ({"code": "503"}, True, False),
        ({"type": "invalid_request_error", "code": None}, False, False),
        ({"message": "api_error"}, False, False),
        ("api_error", False, False),
        (None, False, False),
    ],
)
def test_a_servers_own_failure_counts_as_a_broken_reply_and_a_busy_server_as_a_reason_to_wait(
    error: object, retryable: bool, is_broken: bool
) -> None:
    failure = stream_failed("somebody", error)
    assert (failure.retryable, failure.is_broken) == (retryable, is_broken)


@pytest.mark.parametrize("lost", range(4))
def test_a_response_without_a_piece_of_its_text_is_broken(lost: int) -> None:
    pieces = ["Let ", "me ", "look", "."]
    delta = {"type": "response.output_text.delta", "output_index": 0}
    content = [{"type": "output_text", "text": "".join(pieces)}]
    done = {"type": "message", "content": content}
    events: list[Raw] = [
        *({**delta, "delta": piece} for piece in pieces),
        {"type": "response.output_item.done", "output_index": 0, "item": done},
        {"type": "response.completed", "response": {"status": "completed"}},
    ]
    whole = openai_responses.Decoder("openai", "a-model")
    assert next(joined(whole.read(events))) == TextDelta("Let me look.")
    with pytest.raises(ModelError) as caught:
        list(openai_responses.Decoder("openai", "a-model").read(events[:lost] + events[lost + 1 :]))
    assert caught.value.is_broken


def test_nothing_comes_after_the_end() -> None:
    decoder = anthropic.Decoder("anthropic", "a-model")
    decoder.feed({"type": "message_delta", "delta": {"stop_reason": "end_turn"}})
    assert decoder.feed({"type": "message_stop"})
    assert decoder.feed({"type": "ping"}) == []
    assert decoder.end() == []


def test_a_signature_that_the_file_cannot_hold_is_dropped() -> None:
    decoder = anthropic.Decoder("anthropic", "a-model")
    block = {"type": "thinking", "thinking": "hm", "signature": "two\nlines"}
    decoder.feed({"type": "content_block_start", "index": 0, "content_block": block})
    (end,) = decoder.feed({"type": "content_block_stop", "index": 0})
    assert getattr(end, "signature", None) == ""


_PIECE = "x" * 500
_ANTHROPIC: Sequence[Raw] = (
    {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "tool_use", "id": "1", "name": "write"},
    },
    {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "input_json_delta", "partial_json": _PIECE},
    },
    {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "input_json_delta", "partial_json": _PIECE},
    },
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "words"}},
)
_CHAT: Sequence[Raw] = (
    {
        "choices": [
            {"delta": {"tool_calls": [{"index": 0, "id": "1", "function": {"name": "write"}}]}}
        ]
    },
    {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": _PIECE}}]}}]},
    {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": _PIECE}}]}}]},
    {"choices": [{"delta": {"content": ""}}]},
    {"choices": [{"delta": {"content": "words"}}]},
)
_RESPONSES: Sequence[Raw] = (
    {
        "type": "response.output_item.added",
        "output_index": 0,
        "item": {"type": "function_call", "name": "write"},
    },
    {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": _PIECE},
    {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": _PIECE},
    {"type": "response.output_item.added", "output_index": 1, "item": {"type": "message"}},
    {"type": "response.output_text.delta", "output_index": 1, "delta": "words"},
)


@pytest.mark.parametrize(
    ("kind", "payloads"),
    [
        (anthropic.Decoder, _ANTHROPIC),
        (openai_chat.Decoder, _CHAT),
        (openai_responses.Decoder, _RESPONSES),
    ],
)
def test_an_arriving_call_is_reported_until_something_else_arrives(
    kind: type[Decoder], payloads: Sequence[Raw]
) -> None:
    decoder = Redacting(kind("somebody", "a-model"), "a-secret-key")
    pending = list[PendingCall | None]()
    for payload in payloads:
        list(decoder.read([payload]))
        pending.append(decoder.pending_call)
    first, second, third, *_, last = pending
    assert (first, second, third) == tuple(PendingCall("write", size) for size in (0, 500, 1000))
    assert last is None


def test_a_search_by_openai_is_reported_while_it_runs() -> None:
    decoder, pending = openai_responses.Decoder("openai", "a-model"), list[PendingCall | None]()
    item = {"type": "web_search_call", "id": "ws_1"}
    for payload in (
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.web_search_call.searching", "output_index": 0, "item_id": "ws_1"},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
    ):
        list(decoder.read([payload]))
        pending.append(decoder.pending_call)
    assert pending == [*[PendingCall("web_search", 0, is_running=True)] * 2, None]
