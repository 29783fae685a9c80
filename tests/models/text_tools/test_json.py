"""Calls written as JSON in a text are found for any cuts, and checked; no prose is lost."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.models.text_tools.json import JsonExtractor
from parley.models.text_tools.prompt import text_call
from parley.models.text_tools.text_calls import Failed, Prose, TextCall, problem_of
from tests.defaults import text_tools
from tests.text_calls_corpus import TOOLS, cases, expected, read

texts = pytest.mark.parametrize(
    "path", [path for kind, path in cases() if kind == "json_tools"], ids=lambda path: path.stem
)


def test_the_corpus_exists() -> None:
    assert len([kind for kind, _ in cases() if kind == "json_tools"]) > 30


@texts
def test_a_text_gives_the_expected_items(path: Path) -> None:
    assert read("json_tools", [path.read_text(encoding="utf-8")]) == expected("json_tools", path)


@texts
def test_a_text_given_letter_by_letter_gives_the_same_items(path: Path) -> None:
    assert read("json_tools", path.read_text(encoding="utf-8")) == expected("json_tools", path)


@pytest.mark.exhaustive
@texts
def test_a_text_cut_anywhere_gives_the_same_items(path: Path) -> None:
    text, lines = path.read_text(encoding="utf-8"), expected("json_tools", path)
    for cut in range(len(text)):
        assert read("json_tools", [text[:cut], text[cut:]]) == lines


PROSE = st.lists(
    st.sampled_from(
        [
            "Let me see.",
            "\n\n",
            "`code`",
            "a < b",
            "{x}",
            "[1]",
            "{}",
            '{"a": 1}',
            "\n```c\nf();\n```\n",
            "…",
            "💬:",
            " ",
        ]
    ),
    max_size=5,
).map("".join)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.sampled_from(["}", '"', "{[", "\n", "“"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
ARGUMENTS = st.dictionaries(st.text(max_size=6), VALUES, max_size=3)
KEYS = st.sampled_from(
    [("tool", "params"), ("name", "parameters"), ("name", "arguments"), ("tool", "args")]
)
FRAMES = st.sampled_from(
    ["\n{}\n", "\n```json\n{}\n```\n", "\n```\n{}\n```\n", "\n[{}]\n", "\n`{}`\n"]
)


@st.composite
def replies(draw: st.DrawFn) -> tuple[str, str, list[dict[str, Any]]]:
    """A text with calls in it, its prose, and the calls' arguments."""
    text, prose, calls = "", "", list[dict[str, Any]]()
    for _ in range(draw(st.integers(0, 3))):
        items, arguments, (name, params) = draw(PROSE), draw(ARGUMENTS), draw(KEYS)
        raw = json.dumps({name: "web_search", params: arguments}, ensure_ascii=draw(st.booleans()))
        text += items + draw(FRAMES).replace("{}", raw)
        prose += items
        calls.append(arguments)
    last = draw(PROSE)
    return text + last, prose + last, calls


@given(reply=replies(), cuts=st.lists(st.integers(0, 400), max_size=6))
def test_all_calls_are_found_and_all_prose_is_kept_for_any_cuts(
    reply: tuple[str, str, list[dict[str, Any]]], cuts: list[int]
) -> None:
    text, prose, calls = reply
    marks = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    items = read("json_tools", [text[a:b] for a, b in pairwise(marks)])
    assert [json.loads(each[2]) for each in items if each[0] == "call"] == calls
    text = "".join(each[1] for each in items if each[0] == "prose")
    assert "".join(text.split()) == "".join(prose.split())


@given(
    text=st.lists(
        st.sampled_from([*'{}[]":,`<\n ', "tool", "x", "```json\n", '{"tool":', "“"]), max_size=25
    )
)
def test_any_text_gives_the_same_items_in_pieces_and_whole(text: list[str]) -> None:
    whole = read("json_tools", ["".join(text)])
    assert read("json_tools", text) == whole
    assert read("json_tools", "".join(text)) == whole


@given(
    text=st.lists(
        st.sampled_from([*'{}[]":,`<\n ', "x", "```json\n", '{"name":', "“", "args"]), max_size=25
    )
)
def test_text_without_any_call_stays_unchanged(text: list[str]) -> None:
    whole = "".join(text)
    assert read("json_tools", text) == ([["prose", whole]] if whole else [])


def test_prose_is_given_at_once_and_the_start_of_a_call_is_held_back() -> None:
    extractor = JsonExtractor(TOOLS.names())
    assert extractor.feed("Let me see. ") == [Prose("Let me see. ")]
    assert extractor.feed('Now {"to') == [Prose("Now ")]
    assert extractor.feed('ol": "web_search", "params": {"query": "x"}') == []
    assert extractor.feed("} Done") == [TextCall("web_search", '{"query": "x"}'), Prose(" Done")]


def test_half_a_call_in_a_cut_reply_is_dropped() -> None:
    extractor = JsonExtractor(TOOLS.names())
    assert extractor.feed('Now {"tool": "web_search", "par') == [Prose("Now ")]
    assert extractor.end(cut=True) == []


def test_a_failed_call_keeps_its_text() -> None:
    extractor = JsonExtractor(TOOLS.names())
    items = extractor.feed('{"tool": "web_search", "params": [1]}')
    assert [item.text for item in items if isinstance(item, Failed)] == [
        '{"tool": "web_search", "params": [1]}'
    ]


@given(
    arguments=ARGUMENTS.map(json.dumps)
    | st.sampled_from(["", "nope", "[1]", '{"a": 1.0, "b": 1e400}'])
)
def test_past_calls_are_written_in_readable_form(arguments: str) -> None:
    items = read("json_tools", [text_call(text_tools("json"), "web_search", arguments)])
    assert [each[:2] for each in items] == [["call", "web_search"]]


AVAILABLE = "Available tools: edit, read_file, web_search"


@pytest.mark.parametrize(
    ("call", "wrong"),
    [
        (TextCall("read_file", '{"path": "x"}'), None),
        (TextCall("read_file", "{}"), "Missing required parameter 'path'"),
        (
            TextCall("read_file", '{"path": "x", "binarry": true}'),
            "Unknown parameter 'binarry', did you mean 'binary'?",
        ),
        (
            TextCall("read_file", '{"path": 5}'),
            "Parameter 'path': expected string, got 5 (integer)",
        ),
        (
            TextCall("read_fiel", "{}"),
            f"Unknown tool 'read_fiel', did you mean 'read_file'? {AVAILABLE}",
        ),
        (TextCall("zzz", "{}"), f"Unknown tool 'zzz'. {AVAILABLE}"),
    ],
)
def test_a_calls_check_is_worded_for_the_model(call: TextCall, wrong: str | None) -> None:
    assert problem_of(call, TOOLS) == wrong
