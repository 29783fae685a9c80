"""Documents, messages, docstrings and comments are plain English, as far as patterns can tell.

Some patterns also match correct English, such as "shows what changed". So each place has a share of
sentences that may match. Words that are almost always wrong are banned; each exception is listed
with its reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

import pytest

from tests import english
from tests.english import MOST_COLUMNS, ROOT, Sentence, flaws, is_long

# Shares of sentences, in percent.
MOST_IN_DOCUMENTS, MOST_ON_A_PAGE, MOST_IN_DOCSTRINGS, MOST_IN_MESSAGES, MOST_LONG = 5, 10, 8, 6, 6

DOCUMENTS = english.documents()
KINDS: dict[str, Callable[[], list[Sentence]]] = {
    "Python": lambda: english.docstrings("python", "rplugin", ".ci"),
    "tests": lambda: english.docstrings("tests"),
    "Lua": english.lua_comments,
}
"""Functions that find the docstrings and comments; every worker would wait for them on import."""

BANNED = re.compile(
    r"\b(anew|for want of|whoever|heeds?|(goes|go|went) on(?! to)|br(ings?|ought) (in|along)"
    r"|what is (there|meant|said|told)|where (there|nobody|none) (is|are|was|has|can))\b",
    re.IGNORECASE,
)
ALLOWED = {"are left: go on with offset": "a text for models, which stays as it was tried"}
"""Parts of sentences with a banned word, each with the reason why it stays."""

# One word for one thing: the banned word and the glossary's word.
OTHER_WORDS = {
    r"\bfolders? of chats\b": "chat folder",
    r"\b(preference|preferences)\b": "setting or option",
    r"\bnegotiat\w+ the approval\b": "approve",
    r"\bjournal\b": "ledger, log",
}


def everything() -> list[Sentence]:
    """The sentences of documents, docstrings, comments and messages."""
    documents = [each for page in DOCUMENTS.values() for each in page]
    comments = [each for find in KINDS.values() for each in find()]
    return [*documents, *comments, *english.messages()]


def share(sentences: Iterable[bool]) -> float:
    counted = list(sentences)
    return 100 * sum(counted) / max(1, len(counted))


def is_matched(sentence: Sentence) -> bool:
    return any(rule != english.LONG for rule in flaws(sentence.text))


def listing(sentences: Iterable[Sentence]) -> str:
    bad = ((each, flaws(each.text)) for each in sentences)
    return "\n".join(f"{s.place}: {s.text}  <- {', '.join(rules)}" for s, rules in bad if rules)


def test_few_sentences_of_the_documents_match() -> None:
    sentences = [each for page in DOCUMENTS.values() for each in page]
    assert len(sentences) > 1000
    assert share(map(is_matched, sentences)) <= MOST_IN_DOCUMENTS, listing(sentences)


@pytest.mark.parametrize("page", DOCUMENTS)
def test_few_sentences_of_a_page_match(page: str) -> None:
    assert share(map(is_matched, DOCUMENTS[page])) <= MOST_ON_A_PAGE, listing(DOCUMENTS[page])


@pytest.mark.parametrize("kind", KINDS)
def test_few_docstrings_and_comments_match(kind: str) -> None:
    sentences = KINDS[kind]()
    assert len(sentences) > 400
    assert share(map(is_matched, sentences)) <= MOST_IN_DOCSTRINGS, listing(sentences)


def test_few_messages_match() -> None:
    messages = english.messages()
    assert len(messages) > 500
    assert share(map(is_matched, messages)) <= MOST_IN_MESSAGES, listing(messages)


def test_few_sentences_are_long() -> None:
    assert share(is_long(each.text) for each in everything()) <= MOST_LONG


def test_no_sentence_has_a_banned_word() -> None:
    bad = [each for each in everything() if BANNED.search(each.text)]
    assert [
        f"{s.place}: {s.text}" for s in bad if not any(part in s.text for part in ALLOWED)
    ] == []


def test_each_exception_is_needed() -> None:
    banned = [each.text for each in everything() if BANNED.search(each.text)]
    assert [part for part in ALLOWED if not any(part in text for text in banned)] == []


@pytest.mark.parametrize("other", OTHER_WORDS)
def test_one_word_means_one_thing(other: str) -> None:
    assert [f"{s.place}: {s.text}" for s in everything() if re.search(other, s.text)] == []


def prose_lines() -> Iterator[tuple[str, str]]:
    """Each line of prose in Markdown, with its place; tables, fences and single words are exempt."""
    for page in [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "doc").glob("*.md"))]:
        fence = ""
        for number, line in enumerate(page.read_text(encoding="utf-8").split("\n"), 1):
            bare = line.strip()
            if opening := re.match(r"(`{3,}|~{3,})", bare):
                fence = "" if fence and bare.startswith(fence) else fence or opening[1]
            elif not fence and not bare.startswith(("|", "![")) and " " in bare[:-1]:
                yield f"{page.name}:{number}", line


def test_no_line_of_prose_is_too_long() -> None:
    assert [place for place, line in prose_lines() if len(line) > MOST_COLUMNS] == []


@pytest.mark.parametrize(
    ("sentence", "rules"),
    [
        (
            "as it does where nobody can be asked about it",
            ["if or when, not where", "say who acts"],
        ),
        ("What is not there is left out of the page.", ["name the noun, not what"]),
        ("It takes all settings, or those of a table.", ["a pronoun follows its noun"]),
        ("Needed are Neovim 0.10 or newer, and Python.", ["subject, verb, object"]),
        ("Press `R` to start the server anew at once.", ["the field's verb"]),
        ("It is in the folder of chats, with others.", ["two nouns make a compound"]),
        ("Nobody can read these files but you alone.", ["say who acts"]),
        (" ".join(["word"] * 31), [english.LONG]),
        ("a list; with many; too many; parts in it", [english.LONG]),
        ("Parley shows what changed since you approved it.", []),
        ("Where does Parley keep it, and what is in it?", []),
        ("Restart the server, and it lists its tools.", []),
    ],
)
def test_each_rule_has_its_pattern(sentence: str, rules: list[str]) -> None:
    assert flaws(sentence) == rules


def test_sentences_are_found_in_each_kind_of_text() -> None:
    page = (
        "# A heading of this page here\n\nOne two three four five six. Now `Two. Is` a "
        "sentence of code.\n"
    )
    page += "\n- an item with six words here\n\n```\nno sentence is in here at all\n```\n"
    page += "\n| a cell with six words here | short |\n"
    assert [each.text for each in english.of_markdown(page, "p")] == [
        "One two three four five six.",
        "Now `x` a sentence of code.",
        "an item with six words here",
        "a cell with six words here",
    ]
    source = '"""A module with six words here."""\n# A comment of six words here\n'
    source += 'X = f"a message of {1} six words"\n'
    assert [each.text for each in english.of_docstrings(source, "m")] == [
        "A module with six words here.",
        "A comment of six words here",
    ]
    assert [each.text for each in english.of_messages(source, "m")] == [
        "a message of `x` six words"
    ]
