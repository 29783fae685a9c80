"""Models' output, cut anywhere: a reader gets the same from the pieces as from the whole."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.chat.transcript import ToolCall
from parley.errors import ModelError, ParleyError
from parley.models import package
from parley.models.accumulate import PendingCall
from parley.models.decoder import Decoder
from parley.models.events import Call, Event, Finished, TextDelta, ThinkingDelta, ThinkingEnd, Usage
from parley.models.quirks import Quirk
from parley.models.redact import Redacting
from parley.models.sse import SSE, decode_payload
from parley.models.text_tools.adapter import TextToolDecoder
from parley.models.think_tags import ThinkTags
from tests.chats import TOOLS
from tests.defaults import text_tools
from tests.examples import examples
from tests.streams_corpus import DECODERS, STREAMS, merged
from tests.text_calls_corpus import read

CALLISH = [
    *[
        '{"tool": "web_search", "params": {"query": "x"}}',
        '{"tool": ',
        '"name": "read_file"',
        "{",
        "}",
        "[",
        "]",
    ],
    *[
        "```json\n",
        "```\n",
        "```",
        "``",
        "`",
        "[TOOL_CALLS]",
        "<tool_call>",
        "</tool_call>",
        '"',
        "\\",
        ",",
        ":",
    ],
    *[
        "<tool:web_search>",
        "</tool:web_search>",
        "<param:query>",
        "</param:query>",
        "<tool:",
        "</",
        "<",
        ">",
    ],
    *[
        "<think>",
        "</think>",
        "<thinking>",
        "</thinking>",
        " ",
        "\n",
        "\r\n",
        "\t",
        "\u00a0",
        "x",
        "“",
        "💬:",
    ],
]
texts = st.lists(st.sampled_from(CALLISH), max_size=14).map("".join)
sizes = st.lists(st.integers(1, 4), min_size=1, max_size=8)


def cut(text: str, sizes: list[int]) -> list[str]:
    """The text in pieces whose sizes repeat in a cycle."""
    pieces, at = list[str](), 0
    while at < len(text):
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(text[at : at + size])
        at += size
    return pieces


@pytest.mark.parametrize("kind", ["json_tools", "xml_tools.single", "xml_tools.unlimited"])
@given(text=texts, sizes=sizes)
def test_calls_in_a_text_are_the_same_for_any_cuts(kind: str, text: str, sizes: list[int]) -> None:
    assert read(kind, cut(text, sizes)) == read(kind, [text])


@given(texts, sizes)
def test_thinking_in_a_text_is_the_same_for_any_cuts(text: str, sizes: list[int]) -> None:
    def heard(pieces: list[str]) -> list[str]:
        tags = ThinkTags()
        found = [each for piece in pieces for each in tags.feed(piece)] + tags.end()
        return [
            "".join(said for kind, said in found if kind == which) for which in ("text", "thinking")
        ]

    assert heard(cut(text, sizes)) == heard([text])


@given(
    st.lists(st.sampled_from(["data:", " ", "\n", "\r", "{}", "x", "[DONE]", ":", "\ufeff"])), sizes
)
def test_events_are_the_same_for_any_cuts_of_their_bytes(
    parts: list[str], sizes: list[int]
) -> None:
    text = "".join(parts)

    def payloads(pieces: list[str]) -> list[str]:
        sse = SSE()
        return [payload for piece in pieces for payload in sse.feed(piece.encode())] + sse.end()

    assert payloads(cut(text, sizes)) == payloads([text])


# --- Single and joined payloads -------------------------------------------------------------------

QUIRKS: tuple[Quirk, ...] = ("think_tags",)
SECRET = "sk-secret"
ODD: list[Any] = [
    None,
    True,
    False,
    0,
    1,
    -1,
    0.0,
    1.5,
    10**30,
    "",
    "x",
    "<think>",
    "</think>",
    SECRET,
]
ODD += [
    "sk-",
    "\ud83d",
    "\ude00",
    '{"tool": "web_search", "params": {}}',
    [],
    [1],
    [{}],
    {},
    {"x": "y"},
]
ODD += ["error", "stop", "length", "text_delta", "thinking", "message_stop", "response.completed"]
EVENTS: list[Any] = [
    *map(TextDelta, ["", "a", "sk-", "secret", "\ud83d", "\ude00"]),
    *[
        ThinkingDelta(""),
        ThinkingDelta("hm"),
        ThinkingEnd(),
        ThinkingEnd("signed"),
        Usage(1, 2),
        None,
        5,
    ],
    *[Call(ToolCall("c", "web_search", "{}")), Finished("complete"), Finished("length", "cut")],
]
KINDS: dict[str, Callable[[], Decoder]] = {
    **{kind: lambda make=make: make("p", "m") for kind, make in DECODERS.items()},  # type: ignore[misc]
    "openai_chat with tags": lambda: DECODERS["openai_chat"]("p", "m", QUIRKS),
    "package": lambda: package.EventDecoder("p", "m"),
}
AROUND: dict[str, Callable[[Decoder], Decoder]] = {
    "alone": lambda inner: inner,
    "redacted": lambda inner: Redacting(inner, SECRET),
    "json": lambda inner: TextToolDecoder(inner, text_tools("json"), TOOLS),
    "xml": lambda inner: TextToolDecoder(inner, text_tools("xml"), TOOLS),
    "redacted xml": lambda inner: AROUND["xml"](Redacting(inner, SECRET)),
}


def recorded(kind: str) -> list[list[Any]]:
    """The corpus's payloads, a list for each stream."""
    streams = list[list[Any]]()
    for path in sorted((STREAMS / kind.partition(" ")[0]).glob("*.sse")):
        sse = SSE()
        try:
            streams.append(
                [decode_payload(each) for each in [*sse.feed(path.read_bytes()), *sse.end()]]
            )
        except ModelError:
            continue
    return streams


RECORDED = {kind: recorded(kind) for kind in KINDS}


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each object or list within a value, with each of its keys."""
    keys = (
        list(value)
        if isinstance(value, dict)
        else range(len(value) if isinstance(value, list) else 0)
    )
    for key in keys:
        yield value, key
        yield from places(value[key])


@st.composite
def payloads(draw: st.DrawFn, kind: str) -> list[Any]:
    """A stream from the corpus with a few payloads dropped, doubled or moved, and a few odd values."""
    if kind == "package":
        return [
            {package.EVENT: event} for event in draw(st.lists(st.sampled_from(EVENTS), max_size=8))
        ]
    stream: list[Any] = copy.deepcopy(draw(st.sampled_from(RECORDED[kind]))[:12])
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(stream)))
        stream[at:at] = copy.deepcopy(
            draw(st.sampled_from([[], stream[-1:], stream[:1], stream[at : at + 1]]))
        )
        holder, key = draw(st.sampled_from(list(places(stream))))
        if holder is not stream:
            holder[key] = copy.deepcopy(draw(st.sampled_from(ODD)))
    return stream


Heard = tuple[list[Event], tuple[str, str] | None, tuple[bool, bool, PendingCall | None]]


def heard(decoder: Decoder, batches: list[list[Any]], *, together: bool) -> Heard:
    """The events from payloads, their error, and the decoder's state afterwards."""
    events, failure = list[Event](), None
    try:
        for batch in batches:
            for found in [decoder.read(batch)] if together else map(decoder.feed, batch):
                events.extend(found)
        events += decoder.end()
    except ParleyError as error:
        failure = type(error).__name__, str(error)
    return merged(events), failure, (decoder.is_over, decoder.wants_no_more, decoder.pending_call)


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("kind", KINDS)
@examples(60)
@given(data=st.data(), sizes=sizes)
def test_joined_payloads_give_the_same_events_as_single_ones(
    kind: str, around: str, data: st.DataObject, sizes: list[int]
) -> None:
    stream = data.draw(payloads(kind))
    same_time(kind, around, stream, sizes)


def same_time(kind: str, around: str, stream: list[Any], sizes: list[int]) -> None:
    """Both ways of reading agree, also after the decoder has failed or ended."""
    batches, at = list[list[Any]](), 0
    while at < len(stream):
        size = sizes[len(batches) % len(sizes)]
        batches.append(stream[at : at + size])
        at += size
    one, other = (AROUND[around](KINDS[kind]()) for _ in range(2))
    for _ in range(2):
        assert heard(one, batches, together=True) == heard(other, batches, together=False)


BEGUN = {"type": "content_block_start", "index": 1, "content_block": {"type": "text"}}
SAID = {"type": "response.output_text.delta", "output_index": 1, "delta": "a"}
FINDS: dict[str, list[dict[str, Any]]] = {
    "anthropic": [
        BEGUN,
        {
            "type": "content_block_delta",
            "index": True,
            "delta": {"type": "text_delta", "text": "a"},
        },
    ],
    "openai_chat": [{"choices": [{"delta": {"content": "a"}, "finish_reason": False}]}],
    "openai_responses": [SAID, {**SAID, "output_index": True}],
}


@pytest.mark.parametrize("kind", FINDS)
def test_a_value_of_a_wrong_type_is_refused_even_next_to_prose(kind: str) -> None:
    same_time(kind, "alone", FINDS[kind], [1])
    _, failure, _ = heard(KINDS[kind](), [FINDS[kind]], together=True)
    assert failure
    assert "sent an event that cannot be read" in failure[1]
