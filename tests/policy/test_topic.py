"""A chat's title: its first summary, cut at a word, or a model's reply."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.chat.edits import apply_edits
from parley.chat.front_matter import read_front_matter
from parley.chat.reader import parse, split_lines
from parley.policy.topic import fill_topic, shortened, title, title_prompt

EMPTY = '---\ntopic: ""\n---\n\n'
ANSWER = "💬: why?\n\n🤖:[Demo]\n\nSo.\n\n📝: asked why, said so.\n\n💬: \n"


def filled(text: str) -> str:
    lines = split_lines(text)
    return "".join(f"{line}\n" for line in apply_edits(lines, fill_topic(lines, parse(text))))


@pytest.mark.parametrize(
    "empty", ['topic: ""', "topic: ''", "topic:", "topic: ~", "topic: null", "topic:  "]
)
def test_an_empty_topic_is_filled_in_from_the_first_summary(empty: str) -> None:
    before = f"---\ntags: [a]\n{empty}\nagent: Demo\n---\n\n{ANSWER}"
    assert filled(before) == before.replace(f"\n{empty}\n", "\ntopic: Asked why, said so\n")


@pytest.mark.parametrize(
    "head",
    [
        "",
        "---\nagent: Demo\n---\n\n",
        "---\ntopic: mine\n---\n\n",
        '---\ntopic: "" # later\n---\n\n',
        "---\ntopic: 3\n---\n\n",
        "---\ntopic:\n  - x\n---\n\n",
        "---\nsystem_prompt: '\ntopic:\n'\n---\n\n",
        "---\ntopic:\ntopic:\n---\n\n",
        "---\ntopic:\nagent: [\n---\n\n",
    ],
    ids=[
        "no head",
        "no key",
        "the user's",
        "a remark",
        "a number",
        "a list",
        "in a text",
        "two",
        "no YAML",
    ],
)
def test_anything_but_an_empty_topic_stays_unchanged(head: str) -> None:
    assert filled(head + ANSWER) == head + ANSWER


@pytest.mark.parametrize(
    "chat", ["💬: why?\n", "💬: why?\n\n🤖:\n\nSo.\n", "💬: why?\n\n🤖:\n\n📝:\n"]
)
def test_without_a_summary_nothing_is_written(chat: str) -> None:
    assert filled(EMPTY + chat) == EMPTY + chat


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1, max_size=90))
def test_any_summary_becomes_a_topic_and_nothing_else(text: str) -> None:
    line = " ".join(text.replace("\0", "").split()) or "x"
    chat = f"{EMPTY}💬: why?\n\n🤖:\n\n📝: {line}\n"
    after = parse(filled(chat))
    expected = shortened(line)
    read = read_front_matter(after.front_matter)
    assert read.keys in ({"topic": expected}, {"topic": ""})
    assert read.problems == ()
    assert after.exchanges == parse(chat).exchanges


@pytest.mark.parametrize(
    "text",
    [
        "a: b",
        "# no",
        "yes",
        "12",
        "1:30",
        "- x",
        'he said "x"',
        "it's",
        "{a}",
        "2001-99-99",
        "!!x",
        "*a",
        "é 💬:",
    ],
)
def test_a_topic_that_yaml_would_misread_is_quoted(text: str) -> None:
    after = parse(filled(f"{EMPTY}💬: why?\n\n🤖:\n\n📝: {text}\n"))
    assert read_front_matter(after.front_matter).keys == {"topic": shortened(text)}


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("one.", "One"),
        ("a " * 40, "A" + " a" * 29 + "…"),
        ("word " * 11 + "longer,  longer", "Word" + " word" * 10 + "…"),
        ("x" * 61, "X" + "x" * 59 + "…"),
        ("a\x1bb\u202ec", "A\\x1bb\\u202ec"),
    ],
)
def test_a_title_ends_at_a_word_without_hidden_characters(text: str, short: str) -> None:
    assert shortened(text) == short


@pytest.mark.parametrize(
    ("reply", "short"),
    [
        ('"Stock prices."', "Stock prices."),
        ("# **Stock prices**\n\nIs that good?", "Stock prices"),
        ("\n\nTitle: Stock prices", "Stock prices"),
        ("", ""),
        ("\n** **\n", ""),
    ],
)
def test_a_models_decoration_of_a_title_is_removed(reply: str, short: str) -> None:
    assert title(reply) == short.removesuffix(".")


def test_a_model_sees_the_beginning_but_not_the_whole_chat() -> None:
    prompt = title_prompt(
        parse(f"💬: {'q' * 5000}\n\n🤖:\n\n{'a' * 5000}\n\n💬: secret\n\n🤖:\n\nz\n")
    )
    assert "q" * 1000 in prompt
    assert "a" * 1000 in prompt
    assert len(prompt) < 2500
    assert "secret" not in prompt
    assert title_prompt(parse("💬: why?\n")) == ""


def test_the_title_prompt_has_the_users_words_without_quoted_text() -> None:
    quote = "`a.py:1-900` (900 lines)\n\n```python\n" + "x = 1\n" * 900 + "```"
    prompt = title_prompt(parse(f"💬: {quote}\n\nWhat is x?\n\n🤖:[Demo]\n\nOne.\n\n💬: \n"))
    assert "What is x?" in prompt
    assert "900 lines" not in prompt
