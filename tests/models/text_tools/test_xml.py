"""Calls written between tags: the same for any cuts, one or many, with exact values."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.models.text_tools.prompt import text_call
from parley.models.text_tools.text_calls import Failed, Prose, TextCall, ToolLimitReached
from parley.models.text_tools.xml import XmlParser
from tests.defaults import text_tools
from tests.text_calls_corpus import TOOLS, cases, expected, read

texts = pytest.mark.parametrize(
    ("kind", "path"),
    [case for case in cases() if case[0] != "json_tools"],
    ids=lambda each: each.stem if isinstance(each, Path) else each.partition(".")[2],
)
CALL = "<tool:web_search>\n<param:query>x</param:query>\n</tool:web_search>"


def test_the_corpus_exists() -> None:
    assert len([kind for kind, _ in cases() if kind != "json_tools"]) > 60


@texts
def test_a_text_gives_the_expected_items(kind: str, path: Path) -> None:
    assert read(kind, [path.read_text(encoding="utf-8")]) == expected(kind, path)


@texts
def test_a_text_given_letter_by_letter_gives_the_same_items(kind: str, path: Path) -> None:
    assert read(kind, path.read_text(encoding="utf-8")) == expected(kind, path)


@pytest.mark.exhaustive
@texts
def test_a_text_cut_anywhere_gives_the_same_items(kind: str, path: Path) -> None:
    text, lines = path.read_text(encoding="utf-8"), expected(kind, path)
    for cut in range(len(text)):
        assert read(kind, [text[:cut], text[cut:]]) == lines


TAGS = [
    "<tool:edit>",
    "</tool:edit>",
    "<param:diff>",
    "</param:diff>",
    "<think>",
    "</think>",
    "<thinking>",
]
HALVES = ["<", "</", ">", "`", "```xml\n", "```", "\n", " ", "a", "<tool:", "tool:edit>", CALL]
PIECES = st.lists(st.sampled_from([*TAGS, *HALVES]), max_size=12)


@given(pieces=PIECES, kind=st.sampled_from(["xml_tools.single", "xml_tools.unlimited"]))
def test_any_text_gives_the_same_items_in_pieces_and_whole(pieces: list[str], kind: str) -> None:
    whole = read(kind, ["".join(pieces)])
    assert read(kind, pieces) == whole
    assert read(kind, "".join(pieces)) == whole


@given(arguments=st.dictionaries(st.sampled_from(["diff", "anything"]), st.text(max_size=20)))
def test_past_calls_are_written_in_readable_form(arguments: dict[str, str]) -> None:
    items = read("xml_tools.single", [text_call(text_tools("xml"), "edit", json.dumps(arguments))])
    assert [each[0] for each in items] == ["call"]
    if "\0" not in "".join(arguments.values()):
        assert json.loads(items[0][2]) == arguments


def test_arguments_that_cannot_be_tagged_are_written_as_json() -> None:
    text = text_call(text_tools("xml"), "edit", '{"a b": "</param:_raw>"}')
    assert text == '<tool:edit>\n<param:_raw>{"a b": "<\\/param:_raw>"}</param:_raw>\n</tool:edit>'


def test_the_limit_keeps_all_complete_items() -> None:
    parser = XmlParser(TOOLS)
    items = parser.feed(f"Look: {CALL}\n\n<tool:read_file>")
    assert items == [Prose("Look: "), TextCall("web_search", '{"query": "x"}')]
    assert isinstance(parser.limit, ToolLimitReached)
    assert str(parser.limit) == "Tool limit reached - only one tool per message allowed"


def test_after_the_limit_only_the_limit_is_raised_again() -> None:
    parser = XmlParser(TOOLS)
    assert parser.feed(f"{CALL} x") == [TextCall("web_search", '{"query": "x"}')]
    with pytest.raises(ToolLimitReached):
        parser.feed("y")
    assert parser.end() == []


def test_the_limit_is_logged_with_its_tool_and_the_kept_blocks(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "parley.models.text_tools.xml")
    parser = XmlParser(TOOLS)
    parser.feed(f"<think>hm</think>\nLook.\n{CALL}\n{CALL}")
    assert isinstance(parser.limit, ToolLimitReached)
    assert [record.message for record in caplog.records] == [
        "Tool limit reached at tool #1, stopping generation",
        "Collected 3 content blocks before tool limit",
    ]


def test_prose_is_given_at_once_and_a_call_when_it_is_complete() -> None:
    parser = XmlParser(TOOLS)
    assert parser.feed("Look <") == [Prose("Look ")]
    assert parser.feed("b> and <tool:web") == [Prose("<b> and ")]
    assert parser.feed("_search><param:query>x</param:query></tool:web_") == []
    assert parser.feed("search>") == [TextCall("web_search", '{"query": "x"}')]


@pytest.mark.parametrize("text", ["<tool:edit>", "<tool:edit><param:diff>a", "<tool:ed"])
def test_half_a_call_in_a_cut_reply_is_dropped(text: str) -> None:
    parser = XmlParser(TOOLS)
    assert parser.feed(f"a {text}") == [Prose("a ")]
    assert parser.end(cut=True) == []


def test_nothing_is_read_after_a_failure() -> None:
    parser = XmlParser(TOOLS)
    assert [type(item) for item in parser.feed("</tool:edit>")] == [Failed]
    assert parser.feed(CALL) + parser.end() == []
