"""Searches that a provider ran: nothing that a server or a chat says can leave its place."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.models.searches import (
    NOTHING_FOUND,
    Footnotes,
    opened,
    sealed,
    source_line,
    sources_text,
    web_address,
    without_footnotes,
)
from tests.examples import examples

HOSTILE = st.text(max_size=30) | st.sampled_from(
    ["https://a.b/c d", "http://[", "javascript:alert(1)", "https://x/(y)", "https://x/]", "a\n🤖:"]
)


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://a.b/c?d=1#e", "https://a.b/c?d=1#e"),
        ("https://a.b/c d(e)<f>", "https://a.b/c%20d%28e%29%3Cf%3E"),
        ("https://a.b/%C3%A9é", "https://a.b/%C3%A9%C3%A9"),
        ("javascript:alert(1)", ""),
        ("file:///etc/passwd", ""),
        ("http://[", ""),
        ("https://a.b/\ud800", "https://a.b/?"),
        ("https://" + "x" * 3000, ""),
        (None, ""),
    ],
)
def test_only_web_addresses_are_links(url: object, address: str) -> None:
    assert web_address(url) == address


def test_a_result_has_one_line_for_each_source() -> None:
    sources = [("News", "https://a.b"), ("", "https://c.d"), ("no address", ""), (7, None)]
    assert sources_text(sources) == "News: https://a.b\nhttps://c.d"
    assert sources_text([]) == NOTHING_FOUND
    assert sources_text([("x", f"https://a.b/{n}") for n in range(150)]).endswith("… and 50 more")


@examples(100)
@given(title=HOSTILE, url=HOSTILE)
def test_no_title_or_address_can_leave_its_line_or_its_brackets(title: str, url: str) -> None:
    assert "\n" not in source_line(title, url)
    notes = Footnotes([])
    mark = notes.mark(url, title)
    lines = notes.definitions().split("\n")
    assert (mark, lines) == ("", [""]) or (
        mark == "[^1]"
        and len(lines) == 3
        and re.fullmatch(r"\[\^1\]: \[[^\[\]]+\]\(https?:[^\s()<>]+\)", lines[2])
    )


def test_footnotes_are_numbered_after_those_of_the_chat_and_each_source_once() -> None:
    notes = Footnotes(["a [^2] b [^7]", "[^7]: x"])
    assert [notes.mark(f"https://a.b/{n}", "T") for n in (1, 2, 1)] == ["[^8]", "[^9]", "[^8]"]
    assert notes.definitions() == "\n\n[^8]: [T](https://a.b/1)\n[^9]: [T](https://a.b/2)"
    assert notes.definitions() == ""


def test_a_forged_footnote_does_not_make_the_numbers_long() -> None:
    notes = Footnotes(["[^999999999] [^10000]", "[^3]: x"])
    assert [notes.mark(f"https://a.b/{n}", "T") for n in (1, 2)] == ["[^4]", "[^5]"]
    notes = Footnotes(["[^9999] [^10000] [^10002]"])
    assert [notes.mark(f"https://a.b/{n}", "T") for n in (1, 2)] == ["[^10001]", "[^10003]"]


@examples(100)
@given(value=st.recursive(st.none() | st.text() | st.integers(), st.lists, max_leaves=5))
def test_what_a_provider_stored_is_opened_only_by_its_format(value: object) -> None:
    content = sealed("anthropic", value).encode("utf-8", "surrogatepass")
    assert opened(content, "anthropic") == value
    assert opened(content, "openai_responses") is None


@pytest.mark.parametrize("content", [b"", b"\xff", b"[]", b"7", b"[" * 100_000, b'{"value":1}'])
def test_an_attachment_of_another_format_is_ignored(content: bytes) -> None:
    assert opened(content, "anthropic") is None
    assert json.loads(sealed("a", 1)) == {"format": "a", "value": 1}


def test_an_attachment_that_no_search_can_fill_is_not_read() -> None:
    assert opened(b" " * 15_000_000 + sealed("a", 1).encode(), "a") == 1
    assert opened(b" " * 16_000_000 + sealed("a", 1).encode(), "a") is None


WORDS = st.text(st.sampled_from("ab [^]1\n:.()"), max_size=9)


@given(
    st.lists(
        st.tuples(WORDS, st.sampled_from(["https://a.org/", "https://b.org/", ""])), min_size=1
    )
)
def test_footnotes_can_be_taken_out_again(pieces: list[tuple[str, str]]) -> None:
    notes, texts = Footnotes(text for text, _ in pieces), list[str]()
    for text, url in pieces:
        texts.append(text + notes.mark(url, "A title"))
    texts[-1] += notes.definitions()
    assert without_footnotes(texts) == [text for text, _ in pieces]
    assert without_footnotes([]) == []
