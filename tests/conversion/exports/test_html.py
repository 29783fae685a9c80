"""A chat as an HTML page: it contains the whole conversation; no part of it runs or is fetched."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from parley.chat.reader import parse
from parley.chat.transcript import Transcript
from parley.cli import main
from parley.conversion.exports.html import html_page
from tests.examples import examples
from tests.pictures import png
from tests.strategies import DIGEST, transcripts
from tests.test_transcripts import corpus

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
    """All elements of a page, the elements left open, and the page's text."""

    VOID = frozenset(
        [
            "area",
            "base",
            "br",
            "col",
            "embed",
            "hr",
            "img",
            "input",
            "link",
            "meta",
            "source",
            "track",
            "wbr",
        ]
    )
    """The full list: https://html.spec.whatwg.org/multipage/syntax.html#void-elements, 2026-11-22.
    """

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
        """`<hr />` is `<hr>`, and `<p />` is `<p>`: browsers ignore the slash."""
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def page() -> Tags:
    return Tags(html_page(parse(CHAT), "a.md"))


def test_the_page_has_the_whole_conversation() -> None:
    text = page().text
    for said in (
        "Stocks & <prices>",
        "What is GOOGL?",
        "I should look.",
        "I look.",
        '{"q": "<b>"}',
        "$911",
    ):
        assert said in text
    assert "Answer of Claude" in text
    assert "[Stopped: by the user]" in text
    assert ("strong", {}) in page().all
    assert ("table", {}) in page().all


def test_calls_that_others_ran_say_so_and_hide_what_only_a_provider_understands() -> None:
    searched = Tags(html_page(corpus("provider_search"), "a.md")).text
    assert "Tool call web_search, run by the provider" in searched
    assert "Neovim news: https://neovim.io/news/" in searched
    assert "text/plain" not in searched
    assert "Tool call Bash, run by the agent" in Tags(html_page(corpus("agent_calls"), "a.md")).text


CODE = """\
💬: show me

🤖:

```python title="a"
def f(x_y): return "<b>" + 1  # why
```

~~~nonsense
let x
~~~

```diff
-a
+b
```

    indented()
"""


def test_code_has_the_colours_of_its_language() -> None:
    page = html_page(parse(CODE), "a")
    for piece in (
        '<span class="keyword">def</span> <span class="name">f</span>(x_y): ',
        '<span class="string">&quot;&lt;b&gt;&quot;</span> + <span class="number">1</span>',
        '<span class="comment"># why</span>',
        '<span class="minus">-a</span>',
        '<span class="plus">+b</span>',
        "let x",
        "indented()",
    ):
        assert piece in page


@given(
    st.text(st.characters(codec="utf-8", exclude_characters="\0\r")),
    st.sampled_from(
        ["python", "json", "html", "html+php", "c++", "diff", "sh", "tex", "nonsense", '"<b>&']
    ),
)
@examples(100)
def test_colours_change_no_text_and_let_no_html_through(code: str, language: str) -> None:
    fence = "~" * (3 + len(code))
    tags = Tags(html_page(parse(f"💬: q\n\n🤖:\n\n{fence}{language}\n{code}\n{fence}\n"), "a"))
    plain = Tags(html_page(parse(f"💬: q\n\n🤖:\n\n{fence}\n{code}\n{fence}\n"), "a"))
    assert tags.text == plain.text
    assert tags.open == []
    assert {tag for tag, _ in tags.all} - {tag for tag, _ in plain.all} <= {"span"}
    assert {
        attribute for tag, attributes in tags.all if tag == "span" for attribute in attributes
    } <= {"class"}


def test_long_or_slow_code_has_no_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    long = CODE.replace("def f", "#" * 70_000 + "\ndef f")
    assert 'class="name"' not in html_page(parse(long), "a")
    assert 'class="plus"' in html_page(parse(long), "a")
    monkeypatch.setattr("parley.conversion.exports.html._SECONDS", -1.0)
    page = html_page(parse(CODE), "a")
    assert "<span" not in page
    assert "def f(x_y): return &quot;&lt;b&gt;&quot; + 1  # why" in page


@pytest.mark.parametrize("code", ["#" * 2000, "# a\n" * 5000])
def test_no_lexers_expression_sees_a_long_line_or_a_long_text(code: str) -> None:
    page = html_page(parse(CODE.replace("def f", f"{code}\ndef f")), "a")
    assert 'class="name"' not in page
    assert 'class="plus"' in page


def test_no_lexer_begins_after_the_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = list[str]()
    monkeypatch.setattr("parley.conversion.exports.html._SECONDS", -1.0)

    def tokens(_: str, language: str) -> Iterator[tuple[str, str]]:
        begun.append(language)
        return iter(())

    monkeypatch.setattr("parley.conversion.exports.markdown_html._tokens", tokens)
    html_page(parse(CODE), "a")
    assert begun == []


@pytest.mark.parametrize(("part", "ground"), [(0, 0xF7F7F7), (1, 0x202020)], ids=["light", "dark"])
def test_colours_are_readable(part: int, ground: int) -> None:
    """A contrast of at least 4.5: https://www.w3.org/TR/WCAG22/#contrast-minimum, 2026-11-23."""
    style = html_page(Transcript(), "a").partition("<style>")[2]
    colours = re.findall(r"light-dark\(#(\w{6}), #(\w{6})\)", style)
    assert len(colours) == 7
    for colour in (both[part] for both in colours):
        dark, light = sorted((_luminance(int(colour, 16)), _luminance(ground)))
        assert (light + 0.05) / (dark + 0.05) >= 4.5, colour


def _luminance(colour: int) -> float:
    parts = ((colour >> shift & 0xFF) / 255 for shift in (16, 8, 0))
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_the_users_notes_are_left_out() -> None:
    assert "my own note" not in html_page(parse(CHAT), "a.md")


def test_nothing_on_the_page_runs_or_is_fetched() -> None:
    tags = page().all
    assert {tag for tag, _ in tags} & {"script", "img", "iframe", "link", "object", "form"} == set()
    assert [attrs["href"] for _, attrs in tags if "href" in attrs] == [
        "http://evil/y.png",
        "http://fine/",
    ]
    assert {name for _, attrs in tags for name in attrs} <= {
        *("href", "class", "dir", "charset", "name", "content", "http-equiv", "style")
    }
    assert "<script>alert(1)</script>" in page().text


def test_a_chat_without_a_topic_has_the_given_name() -> None:
    assert re.search("<title>(.*)</title>", html_page(Transcript(), "a.md")).group(1) == "a.md"  # type: ignore[union-attr]


@given(transcripts())
@example(parse("💬: above\n\n---\n\nbelow\n\n🤖:[A]\n\n***\n\na\\\nb ![c](d)\n"))
@examples(20)
def test_every_chat_makes_a_page_whose_elements_are_closed(transcript: Transcript) -> None:
    tags = Tags(html_page(transcript, "a.md"))
    assert tags.open == []
    assert "script" not in {tag for tag, _ in tags.all}


@given(transcripts())
@examples(20)
def test_stored_pictures_are_embedded_and_none_is_fetched(transcript: Transcript) -> None:
    picture = f"stocks.assets/{DIGEST}.png"
    tags = Tags(html_page(transcript, "a.md", {picture: png()}))
    assert tags.open == []
    pictures = [attrs for tag, attrs in tags.all if tag == "img"]
    assert all(set(attrs) == {"src", "alt"} for attrs in pictures)
    assert {attrs["src"] for attrs in pictures} <= {
        f"data:image/png;base64,{b64encode(png()).decode()}"
    }
    assert "img" not in {tag for tag, _ in Tags(html_page(transcript, "a.md")).all}


def test_the_command_prints_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.md"
    path.write_text(CHAT, encoding="utf-8")
    assert main(["export", str(path)]) == 0
    assert capsys.readouterr().out == html_page(parse(CHAT), "a")
