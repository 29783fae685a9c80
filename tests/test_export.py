"""A chat as an HTML page: all that was said is in it, nothing in it runs or is fetched."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import example, given

from parley.chat.reader import parse
from parley.chat.transcript import Transcript
from parley.cli import main
from parley.export import html_page
from tests.examples import examples
from tests.strategies import transcripts

CHAT = """---
topic: Stocks & <prices>
---

💬: What is **GOOGL**?
🔒: my own note

🤖:[Claude]

🧠:[anthropic:m sig]
> I should look.

I look.

❓:[ya] `{"id":"c","function":{"name":"web_search","arguments":"{\\"q\\": \\"<b>\\"}"}}`

🛠️: [web_search][c]

`it is $911 <script>alert(1)</script>`

| a | b |
|---|---|
| 1 | 2 |

<img src="http://evil/x.png"> ![pixel](http://evil/y.png) [link](http://fine/) [bad](javascript:alert(1))

🔒: [Stopped: by the user]
"""


class Tags(HTMLParser):
    """All elements of a page, those left open, and its text."""

    VOID = frozenset(
        ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"]
    )
    """All there are: https://html.spec.whatwg.org/multipage/syntax.html#void-elements, 2026-11-22."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.all = list[tuple[str, dict[str, str | None]]]()
        self.open = list[str]()
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.all.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """`<hr />` is `<hr>`, and `<p />` is `<p>`: a browser does not heed the slash."""
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def page() -> Tags:
    return Tags(html_page(parse(CHAT), "a.md"))


def test_all_that_was_said_is_on_the_page() -> None:
    text = page().text
    for said in ("Stocks & <prices>", "What is GOOGL?", "I should look.", "I look.", '{"q": "<b>"}', "$911"):
        assert said in text
    assert "Answer of Claude" in text
    assert "[Stopped: by the user]" in text
    assert ("strong", {}) in page().all
    assert ("table", {}) in page().all


def test_the_users_notes_are_left_out() -> None:
    assert "my own note" not in html_page(parse(CHAT), "a.md")


def test_nothing_on_the_page_runs_or_is_fetched() -> None:
    tags = page().all
    assert {tag for tag, _ in tags} & {"script", "img", "iframe", "link", "object", "form"} == set()
    assert [attrs["href"] for _, attrs in tags if "href" in attrs] == ["http://evil/y.png", "http://fine/"]
    assert {name for _, attrs in tags for name in attrs} <= {
        *("href", "class", "dir", "charset", "name", "content", "http-equiv", "style")
    }
    assert "<script>alert(1)</script>" in page().text


def test_a_chat_without_a_topic_has_the_name_that_is_given() -> None:
    assert re.search("<title>(.*)</title>", html_page(Transcript(), "a.md")).group(1) == "a.md"  # type: ignore[union-attr]


@given(transcripts())
@example(parse("💬: above\n\n---\n\nbelow\n\n🤖:[A]\n\n***\n\na\\\nb ![c](d)\n"))
@examples(20)
def test_every_chat_makes_a_page_whose_elements_are_closed(transcript: Transcript) -> None:
    tags = Tags(html_page(transcript, "a.md"))
    assert tags.open == []
    assert "script" not in {tag for tag, _ in tags.all}


def test_the_command_prints_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.md"
    path.write_text(CHAT, encoding="utf-8")
    assert main(["export", str(path)]) == 0
    assert capsys.readouterr().out == html_page(parse(CHAT), "a")
