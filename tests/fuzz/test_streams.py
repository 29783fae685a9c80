"""What models write, cut anywhere: a reader makes of the pieces what it makes of the whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.models.sse import SSE
from parley.models.think_tags import ThinkTags
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
    *["<tool:web_search>", "</tool:web_search>", "<param:query>", "</param:query>", "<tool:", "</", "<", ">"],
    *["<think>", "</think>", "<thinking>", "</thinking>", " ", "\n", "\r\n", "\t", "\u00a0", "x", "“", "💬:"],
]
texts = st.lists(st.sampled_from(CALLISH), max_size=14).map("".join)
sizes = st.lists(st.integers(1, 4), min_size=1, max_size=8)


def cut(text: str, sizes: list[int]) -> list[str]:
    """The text in pieces whose sizes go round."""
    pieces, at = list[str](), 0
    while at < len(text):
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(text[at : at + size])
        at += size
    return pieces


@pytest.mark.parametrize("kind", ["json_tools", "xml_tools.single", "xml_tools.unlimited"])
@given(text=texts, sizes=sizes)
def test_calls_in_a_text_are_the_same_however_it_is_cut(kind: str, text: str, sizes: list[int]) -> None:
    assert read(kind, cut(text, sizes)) == read(kind, [text])


@given(texts, sizes)
def test_thinking_in_a_text_is_the_same_however_it_is_cut(text: str, sizes: list[int]) -> None:
    def heard(pieces: list[str]) -> list[str]:
        tags = ThinkTags()
        found = [each for piece in pieces for each in tags.feed(piece)] + tags.end()
        return ["".join(said for kind, said in found if kind == which) for which in ("text", "thinking")]

    assert heard(cut(text, sizes)) == heard([text])


@given(st.lists(st.sampled_from(["data:", " ", "\n", "\r", "{}", "x", "[DONE]", ":", "\ufeff"])), sizes)
def test_events_are_the_same_however_their_bytes_are_cut(parts: list[str], sizes: list[int]) -> None:
    text = "".join(parts)

    def payloads(pieces: list[str]) -> list[str]:
        sse = SSE()
        return [payload for piece in pieces for payload in sse.feed(piece.encode())] + sse.end()

    assert payloads(cut(text, sizes)) == payloads([text])
