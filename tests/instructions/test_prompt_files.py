"""Prompt files: front matter, arguments, placeholders, and `/name` in a question."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.errors import ParleyError
from parley.instructions.prompt_files import (
    Placeholder,
    PromptFile,
    SlashCommand,
    prompt_name,
    read_prompt,
    slash_command,
)

REVIEW = """\
---
description: Reviews a file
agent: Claude
arguments:
  - file
  - name: focus
    description: What to look at
    required: false
mode: agent
---

Review @@{{file}}@@.{{ focus }} ${input:depth:How deep?} {{other}}
"""


def test_a_prompt_is_read_with_its_arguments() -> None:
    prompt = read_prompt("review", REVIEW.encode())
    assert prompt == PromptFile(
        "review",
        "Reviews a file",
        "Claude",
        (
            Placeholder("file"),
            Placeholder("focus", "What to look at", False),
            Placeholder("depth", "How deep?"),
        ),
        "Review @@{{file}}@@.{{ focus }} ${input:depth:How deep?} {{other}}",
    )
    filled = prompt.text({"file": "{{depth}}", "depth": "very"})
    assert filled == "Review @@{{depth}}@@. very {{other}}"


def test_a_file_without_front_matter_is_its_text() -> None:
    assert read_prompt("p", "\ufeffone\r\ntwo\r\n".encode()) == PromptFile("p", body="one\ntwo")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"---\na: [\n---\n", "line 2: front matter is not valid YAML"),
        (b"---\n- a\n---\n", "expected keys with values"),
        (b"---\na: &a [*a]\n---\n", "aliases"),
        (b"---\narguments: 5\n---\n", "front matter arguments: expected"),
        (b"---\narguments: [a b]\n---\n", "expected names such as focus, got 'a b'"),
        (b"---\ndescription: [a]\n---\n", "front matter description: expected a text"),
        (b"---\n{[a]: b}\n---\n", "front matter"),
        (b"\xff", "it is not UTF-8 text"),
        (b"a\0b", "it is not text"),
    ],
)
def test_a_flawed_file_is_refused_with_the_reason(content: bytes, problem: str) -> None:
    with pytest.raises(ParleyError) as error:
        read_prompt("p", content)
    assert problem in str(error.value)


@given(st.binary(max_size=200))
def test_any_content_is_read_or_refused(content: bytes) -> None:
    for text in (content, b"---\n" + content + b"\n---\n"):
        try:
            shown = read_prompt("p", text).description
        except ParleyError as error:
            shown = str(error)
        assert shown.isprintable()


def test_hidden_characters_become_escapes() -> None:
    hidden = "a\u202eb\x1b[31m\U000e0041"
    prompt = read_prompt("p", f"---\ndescription: {hidden[:3]}\n---\n{hidden}".encode())
    assert prompt.body.isprintable()
    assert prompt.description == "a\\u202eb"


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("review.md", "review"),
        ("review.prompt.md", "review"),
        ("größe.md", "größe"),
        ("a.b.md", "a.b"),
        *((file, "") for file in ("a.txt", ".md", ".x.md", "a b.md", "../a.md", "a/b.md", "-a.md")),
        *((file, "") for file in ("a\n.md", "a\x1b.md", "a\u202eb.md", f"{'a' * 65}.md")),
    ],
)
def test_a_files_name_determines_the_prompts_name(file: str, name: str) -> None:
    assert prompt_name(file) == name


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("/review", SlashCommand("review")),
        ("/fake/greet  whom=Ada ", SlashCommand("fake/greet", "whom=Ada")),
        *((line, None) for line in ("", "/", "//", " /review", "/ review", "a /review", "/-x")),
    ],
)
def test_a_line_may_name_a_prompt(line: str, command: SlashCommand | None) -> None:
    assert slash_command(line) == command


def test_arguments_come_before_the_rest_of_a_line() -> None:
    command = SlashCommand("p", 'a=1 b="two words" c=3 a=4 and more=5')
    assert command.values(["a", "b"]) == ({"a": "1", "b": "two words"}, "c=3 a=4 and more=5")
    assert command.values([]) == ({}, command.rest)
