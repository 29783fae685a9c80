"""An answer on a terminal: each finished block appears once, for any split of the text, and is
complete.
"""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from parley.cli.answer import ShownAnswer
from parley.text import is_hidden

TEXT = """# Title

A paragraph with **bold**, `code` and [a link](https://example.com/a).
Its second line ![a picture](https://example.com/b.png) <b>html</b> &#8238;.

- one
- two
  - nested

7. seven

| a | b |
|---|---|
| 1 | https://example.com/an/address/that/is/longer/than/any/column/of/a/narrow/terminal |

```python
def f(x): return x

```

> a quote

[ref]: https://example.com/c

The end."""
WORDS = (
    "Title|bold|code|a link|example.com/a|second "
    "line|picture|b.png|<b>html</b>|one|two|nested|seven|quote"
)


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def lines(text: str, size: int, width: int = 40) -> str:
    """All output for a text that arrives in pieces of a size."""
    answer = ShownAnswer()
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    return "".join([answer.feed(piece, width) for piece in pieces] + [answer.end(width)])


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_an_answer_looks_the_same_for_any_split_and_loses_nothing(size: int) -> None:
    shown = lines(TEXT, size)
    assert shown == lines(TEXT, len(TEXT))
    text = plain(shown)
    assert all(word in text for word in WORDS.split("|"))
    assert "\\u202e" in text
    assert "[ref]: https://example.com/c" in text
    address = "https://example.com/an/address/that/is/longer/than/any/column/of/a/narrow/terminal"
    assert address in "".join(re.findall(r"(\S+)$", text, re.MULTILINE)) or address in text.replace(
        "\n", ""
    ).replace(" ", "")
    assert "…" not in text
    assert not re.search(r"\n\n\n", text)
    assert max(map(len, text.split("\n"))) <= 40


def test_paragraphs_are_written_when_they_end_and_list_items_when_the_next_begins() -> None:
    answer = ShownAnswer()
    assert answer.feed("One.\n", 40) == ""
    assert answer.tail(40, 5) == ["One."]
    assert answer.feed("\n", 40) == "One.\n"
    assert answer.feed("- a\n", 40) == ""
    assert answer.tail(40, 5) == ["", "- a"]
    assert plain(answer.feed("- b\n", 40)) == "\n • a\n"
    assert answer.tail(40, 5) == ["- b"]
    assert plain(answer.end(40)) == " • b\n"
    assert answer.tail(40, 5) == []


def test_code_waits_for_its_end_and_its_last_rows_are_shown() -> None:
    answer = ShownAnswer()
    code = "".join(f"line = {number}\n" for number in range(100))
    assert answer.feed(f"```python\n{code}", 40) == ""
    assert answer.tail(40, 3) == ["line = 97", "line = 98", "line = 99"]
    shown = plain(answer.feed("```\n", 40))
    assert [row.strip() for row in shown.splitlines()] == code.splitlines()


@pytest.mark.parametrize("text", ["```perl\n" + "s{" * 20_000 + "\n```\n", "**a** " * 7_000 + "\n"])
def test_text_that_would_take_too_long_is_shown_as_written(text: str) -> None:
    shown = lines(text, len(text))
    assert shown == text


@pytest.mark.parametrize(
    "text",
    [
        f"|{'a|' * 30}\n|{'-|' * 30}\n|{'b|' * 30}\n",
        f"{'> ' * 20}words\n",
        "```python main.py\nx = 1\n```\n",
        "```nolanguage\nx = 1\n```\n",
        "```python\n",
    ],
)
def test_text_that_would_lose_characters_is_shown_as_written(text: str) -> None:
    assert lines(text, len(text)) == text


def test_no_colours_are_used_if_the_user_disables_them() -> None:
    answer = ShownAnswer(has_colours=False)
    shown = answer.feed(TEXT, 40) + answer.end(40)
    assert "\x1b[1m" in shown
    assert not re.search(r"\x1b\[(?:\d+;)*(?:3|4|9|10)\d", shown)


@given(
    st.text(st.sampled_from("ab *_`#>-1.|[]()<&\n\t~!:=\\é中"), max_size=120), st.integers(12, 60)
)
@example(text="aaaa\n#b", width=12)
@example(text=">>>a", width=12)
@example(text="```a", width=12)
@example(text="```a\nb\n```\n", width=12)
def test_no_text_breaks_the_formatter_or_loses_a_word(text: str, width: int) -> None:
    text = text.replace("é", "&#8238;é&#27;")
    shown = lines(text, 3, width)
    assert shown == lines(text, max(1, len(text)), width)
    assert not any(is_hidden(c) and c != "\n" for c in plain(shown))
    letters = [c for c in text if c in "abé中"]
    assert [
        c for c in plain(shown).replace("\\x1b", "").replace("\\u202e", "") if c in "abé中"
    ] == letters
