"""Server-sent events by the WHATWG rules, cut anywhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.errors import ModelError
from parley.models.sse import SSE, decode_payload


def payloads(*chunks: bytes) -> list[str]:
    sse = SSE()
    return [payload for chunk in chunks for payload in sse.feed(chunk)] + sse.end()


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"", []),
        (b"data: a\n\n", ["a"]),
        (b"data:a\n\ndata:  b\n\n", ["a", " b"]),
        (b"data: a\r\n\r\ndata: b\r\rdata: c\n\n", ["a", "b", "c"]),
        (b"\xef\xbb\xbfdata: a\n\n", ["a"]),
        (b"data: \xef\xbb\xbfa\n\n", ["\ufeffa"]),
        (b": comment\n\ndata: a\n\n: more\n\n", ["a"]),
        (b"event: x\nid: 1\nretry: 5\ndata: a\nnonsense\n\n", ["a"]),
        (b"data: {\ndata: }\n\n", ["{\n}"]),
        (b"data\n\ndata:\n\n", []),
        (b"data: a\n\ndata: [DONE]\n\ndata: b\n\n", ["a"]),
        (b"data: a\n\ndata: [DONE]", ["a"]),
        (b"data: a\ndata: [DONE]", ["a"]),
        (b"data: a\n", ["a"]),
        (b"data: a\n\ndata: {half", ["a"]),
        ("data: é👩\n\n".encode(), ["é👩"]),
        (b"data: \xff\n\n", ["\ufffd"]),
    ],
)
def test_payloads_are_found_for_any_cuts(raw: bytes, expected: list[str]) -> None:
    assert payloads(raw) == expected
    assert payloads(*(raw[n : n + 1] for n in range(len(raw)))) == expected
    for cut in range(len(raw)):
        assert payloads(raw[:cut], raw[cut:]) == expected
        assert payloads(raw[:cut], b"", raw[cut:]) == expected


LINE_ENDS = [b"\n", b"\r", b"\r\n"]
pieces = st.sampled_from(
    [*LINE_ENDS, b"data:", b"data: ", b"a", b"\xc3", b"\xa9", b":", b"[DONE]", b"\xef\xbb\xbf"]
)


@given(st.lists(pieces, max_size=12))
def test_any_bytes_give_the_same_payloads_for_any_cuts(parts: list[bytes]) -> None:
    raw = b"".join(parts)
    assert payloads(*parts) == payloads(raw) == payloads(*(raw[n : n + 1] for n in range(len(raw))))


def test_done_is_remembered() -> None:
    sse = SSE()
    assert not sse.is_over
    sse.feed(b"data: [DONE]\n\n")
    assert sse.is_over


@pytest.mark.parametrize("raw", [b"data: 123456789012345", b"data: 12345678\ndata: 12345678\n"])
def test_an_oversized_event_is_refused(raw: bytes) -> None:
    for chunks in ([raw], [raw[n : n + 1] for n in range(len(raw))]):
        with pytest.raises(ModelError, match="more than 15 bytes"):
            _fed(SSE(max_event_bytes=15), chunks)


def _fed(sse: SSE, chunks: list[bytes]) -> None:
    for chunk in chunks:
        sse.feed(chunk)


@pytest.mark.parametrize("payload", ["<html>", "[1]", '"text"', "null", "{", "[" * 100_000])
def test_a_payload_that_is_not_an_object_is_refused(payload: str) -> None:
    with pytest.raises(ModelError) as refused:
        decode_payload(payload)
    assert refused.value.reason == "an unreadable event"


def test_a_number_that_is_not_json_counts_as_absent() -> None:
    assert decode_payload('{"logprob": -Infinity, "x": 1}') == {"logprob": None, "x": 1}
