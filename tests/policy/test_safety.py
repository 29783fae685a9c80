"""Blocked tools: whole words, globs and regular expressions, and the tools that they must not
block."""

from __future__ import annotations

import pytest

from parley.policy.safety import blocked_by, words

SEPARATED = [f"rm{each}file" for each in ":;,+~@#$|&=!?()[]{}<>'\"`^%·–\u00a0\u3000\u200b"]


@pytest.mark.parametrize(
    "name", ["rm", "RM", "rm_file", "file-rm", "rmFile", "git.rm", "a/rm/b", "RMFile", *SEPARATED]
)
def test_a_word_blocks_tools_that_contain_it_as_a_whole_word(name: str) -> None:
    assert blocked_by(name, ["rm"]) == "rm"


@pytest.mark.parametrize(
    "name", ["format", "confirm", "alarm", "rmdir", "firmFile", "rm2", "f_orm", ""]
)
def test_a_word_does_not_block_tools_that_only_contain_its_letters(name: str) -> None:
    assert blocked_by(name, ["rm"]) is None


@pytest.mark.parametrize(
    ("pattern", "blocked", "free"),
    [
        ("delete_*", "delete_all", "undelete_all"),
        ("DELETE_*", "Delete_all", "all_delete"),
        ("*secret*", "mySecrets", "sacred"),
        ("file?", "file1", "file"),
        ("[pg]et", "get", "set"),
        ("write file", "write_file", "file_write"),
        ("/^(get|put)_/", "GET_it", "forget_it"),
        ("/rm$/", "confirm", "rmFile"),
    ],
)
def test_globs_and_expressions_block_the_tools_that_they_match(
    pattern: str, blocked: str, free: str
) -> None:
    assert blocked_by(blocked, [pattern]) == pattern
    assert blocked_by(free, [pattern]) is None


@pytest.mark.parametrize("pattern", ["", "/", "//", "_", "[", "*["])
def test_a_pattern_without_letters_blocks_nothing(pattern: str) -> None:
    assert blocked_by("web_search", [pattern]) is None


@pytest.mark.parametrize("pattern", ["/(/", "/[a-/", "/*/", "/(?P<a>/"])
def test_a_broken_expression_blocks_everything_because_its_intent_is_unknown(
    pattern: str,
) -> None:
    assert blocked_by("web_search", ["other", pattern]) == pattern


def test_an_endless_expression_blocks() -> None:
    assert blocked_by("a" * 60, ["/^(a|a)+b|(a|b|ab)*c$/"]) is not None


def test_names_are_split_into_words() -> None:
    assert words("getHTTPFile2_from-the.Web/now") == [
        "get",
        "http",
        "file2",
        "from",
        "the",
        "web",
        "now",
    ]
