"""Every stream of the corpus says what stands beside it, however its bytes are cut."""

from __future__ import annotations

from pathlib import Path

import pytest

from parley.errors import ModelError
from parley.models import anthropic, openai_chat, openai_responses
from parley.models.decoder import Decoder
from parley.models.sse import SSE
from tests.streams_corpus import STREAMS, decoded, expected

streams = pytest.mark.parametrize(
    "path", sorted(STREAMS.glob("*/*.sse")), ids=lambda path: f"{path.parent.name}/{path.stem}"
)


@streams
def test_a_stream_says_what_is_expected(path: Path) -> None:
    assert decoded(path, [path.read_bytes()]) == expected(path)


@streams
def test_a_stream_that_comes_byte_by_byte_says_the_same(path: Path) -> None:
    raw = path.read_bytes()
    assert decoded(path, (raw[n : n + 1] for n in range(len(raw)))) == expected(path)


@streams
def test_a_stream_that_is_cut_anywhere_has_the_same_payloads(path: Path) -> None:
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


def test_nothing_comes_after_the_end() -> None:
    decoder = anthropic.Decoder("anthropic", "a-model")
    decoder.feed({"type": "message_delta", "delta": {"stop_reason": "end_turn"}})
    assert decoder.feed({"type": "message_stop"})
    assert decoder.feed({"type": "ping"}) == []
    assert decoder.end() == []


def test_a_signature_that_the_file_cannot_hold_is_no_signature() -> None:
    decoder = anthropic.Decoder("anthropic", "a-model")
    block = {"type": "thinking", "thinking": "hm", "signature": "two\nlines"}
    decoder.feed({"type": "content_block_start", "index": 0, "content_block": block})
    (end,) = decoder.feed({"type": "content_block_stop", "index": 0})
    assert getattr(end, "signature", None) == ""
