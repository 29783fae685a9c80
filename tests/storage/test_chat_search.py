"""The search for words, tags and folders, and the completion of paths."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from parley.chat.heading import heading_of
from parley.storage.chat_search import SEARCH_S, FoundChats, search, starting_with
from parley.storage.known_chats import ChatCensus, known_chats
from tests.powers import bound_by_permissions


def chat(folder: Path, name: str, text: str, changed: float = 1e9) -> Path:
    path = folder / f"{name}.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    os.utime(path, (changed, changed))
    return path


def census(folder: Path) -> ChatCensus:
    return known_chats(None, folder)


def found(folder: Path, words: str, most: int | None = None) -> FoundChats:
    return search(census(folder), words, most, folder)


def names(folder: Path, words: str) -> list[str]:
    return [match.chat.path.stem for match in found(folder, words).matches]


def test_words_select_chats_with_all_of_them_newest_first(tmp_path: Path) -> None:
    chat(tmp_path, "old", "---\ntopic: Zebras\n---\n\n💬: are they striped?\n", 1e9)
    chat(tmp_path, "new", "💬: what of zebras?\n\n🤖:\n\nThey have\nSTRIPES.\n", 2e9)
    chat(tmp_path, "other", "💬: stripes\n", 1.5e9)
    assert names(tmp_path, "  ") == ["new", "other", "old"]
    assert names(tmp_path, "zebra STRIPE") == ["new", "old"]
    assert names(tmp_path, "zebra lion") == []


def test_a_tag_that_a_chat_has_selects_by_tags_and_any_other_is_a_word(tmp_path: Path) -> None:
    chat(tmp_path, "a", "---\ntags: [Work, home]\n---\n\n💬: see #12\n")
    chat(tmp_path, "b", "💬: #work is no tag here\n", 2e9)
    assert names(tmp_path, "#work") == ["a"]
    assert names(tmp_path, "#WORK see") == ["a"]
    assert names(tmp_path, "#12") == ["a"]
    assert names(tmp_path, "#work #12 no") == []


def test_a_folder_selects_the_chats_in_it_and_below(tmp_path: Path) -> None:
    chat(tmp_path, "a", "💬: use src/ and ./\n")
    listed = census(tmp_path)
    assert len(search(listed, f"{tmp_path}/", None, Path("/")).matches) == 1
    assert len(search(listed, "./ use", None, tmp_path).matches) == 1
    assert search(listed, "./", None, tmp_path / "below").matches == []
    assert len(search(listed, "../", None, tmp_path / "below").matches) == 1
    assert len(search(listed, "src/", None, tmp_path).matches) == 1  # a word


@pytest.mark.parametrize(
    ("words", "line", "text"),
    [
        ("stripes", 1, "about stripes"),
        ("stripes lions", 5, "lions have no stripes"),
        ("lions about", 5, "lions have no stripes"),
        ("ÄRGER", 7, "ärger"),
        ("needle", 9, "…" + "x " * 15 + "needle" + " y" * 32 + "…"),
    ],
)
def test_the_first_line_with_all_words_is_shown_or_the_first_with_any(
    tmp_path: Path, words: str, line: int, text: str
) -> None:
    long = "x " * 99 + "needle" + " y" * 99
    content = f"💬: about stripes\n\n🤖:[Demo]\n\nlions have no stripes\n\närger\n\n{long}\n"
    chat(tmp_path, "chat", content)
    (match,) = found(tmp_path, words).matches
    assert (match.line, match.text) == (line, text)


def test_a_longer_list_is_cut_and_only_its_texts_are_read(tmp_path: Path) -> None:
    for number in range(5):
        chat(tmp_path, str(number), "💬: a\n", 1e9 + number)
    for words in ("", "a"):
        cut = found(tmp_path, words, most=4)
        assert ([match.chat.path.stem for match in cut.matches], cut.is_cut) == (list("4321"), True)
        assert not found(tmp_path, words, most=5).is_cut


def test_the_search_has_a_time_limit(tmp_path: Path) -> None:
    for number in range(5):
        chat(tmp_path, str(number), "💬: a\n", 1e9 + number)
    times = iter([0.0, 1.0, 2.0, SEARCH_S + 1])
    some = search(census(tmp_path), "a", None, tmp_path, now=lambda: next(times))
    assert (len(some.matches), some.not_searched) == (2, 1e9 + 2)


def test_an_unreadable_file_matches_no_words(tmp_path: Path) -> None:
    chat(tmp_path, "chat", "💬: hello\n").chmod(0)
    with bound_by_permissions():
        assert found(tmp_path, "hello").matches == []


def test_paths_and_names_are_completed_newest_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    older, newer = chat(tmp_path, "ab", "💬: a\n"), chat(tmp_path, "ac", "💬: a\n", 2e9)
    listed = census(tmp_path)
    for start in ("a", f"{tmp_path}/a", "~/a"):
        assert starting_with(listed, start, 9) == [newer, older]
    assert starting_with(listed, "a", 1) == [newer]
    assert starting_with(listed, "ab", 9) == [older]
    assert starting_with(listed, "", 9) == starting_with(listed, "b", 9) == []


def test_headings_are_the_ones_of_the_text(tmp_path: Path) -> None:
    quote = "`a.py:1-900` (900 lines)\n\n```python\n" + "x = 1\n" * 3000 + "```"
    for name, text in {"a": f"💬: {quote}\n\nWhat is x?\n", "b": f"💬: {quote}\n"}.items():
        chat(tmp_path, name, text)
    topics = {each.path.stem: each.heading.topic for each in census(tmp_path).chats}
    assert topics["a"] == heading_of(f"💬: {quote}\n\nWhat is x?\n").topic == "What is x?"
    assert topics["b"] == "`a.py:1-900` (900 lines)"
