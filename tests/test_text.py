"""Displayed text hides nothing: one table for all places covers all of Unicode."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.chat.call_lines import proposal_json
from parley.chat.rounds import Notice
from parley.chat.transcript import ToolCall
from parley.display.summary import arguments, legible_line
from parley.models.decoder import stream_failed
from parley.policy.status_texts import sentence
from parley.providers.provider_errors import bounded
from parley.settings.read import read_settings
from parley.text import (
    VisiblePieces,
    contained,
    is_hidden,
    last_words,
    legible,
    mixed_scripts,
    one_line,
    upright,
    visible,
)
from parley.tools.forms import Field
from parley.tools.mcp_files import read_servers
from parley.tools.results import result_text
from tests.defaults import MAX_BYTES

ALL = [chr(code) for code in range(0x110000)]
IGNORABLE = [
    *(
        0x00AD,
        0x034F,
        0x061C,
        0x3164,
        0xFEFF,
        0xFFA0,
        *range(0x115F, 0x1161),
        *range(0x17B4, 0x17B6),
    ),
    *(
        *range(0x180B, 0x1810),
        *range(0x200B, 0x2010),
        *range(0x202A, 0x202F),
        *range(0x2060, 0x2070),
    ),
    *(
        *range(0xFE00, 0xFE10),
        *range(0xFFF0, 0xFFF9),
        *range(0x1BCA0, 0x1BCA4),
        *range(0x1D173, 0x1D17B),
    ),
    *range(0xE0000, 0xE1000),
]
"""Default_Ignorable_Code_Point of Unicode 17.0, DerivedCoreProperties.txt."""
_RARE = ("Cn", "Co", "Cs")
SURFACES: dict[str, Callable[[str], str]] = {
    "text": visible,
    "a line": one_line,
    "JSON": legible,
    "a proposal": lambda text: proposal_json(ToolCall("c", text or "n", text)),
    "a notice": lambda text: Notice("Interrupted", text).text,
    "a tool's result": lambda text: result_text(
        [{"type": "text", "text": text}], max_bytes=MAX_BYTES
    ),
    "a form": lambda text: Field("f", {"title": text, "description": text}).label,
    "a provider's error in a stream": lambda text: str(stream_failed("p", text)),
    "a provider's error": bounded,
    "a drawn call": lambda text: "".join(chunk[0] for chunk in arguments(text)),
    "a drawn name": legible_line,
    "a sentence of a model": lambda text: sentence(text) or "",
    "a problem of the settings": lambda text: " ".join(
        read_settings({"x" + text: text, "agent": text})[1]
    ),
    "a problem of a file of servers": lambda text: " ".join(
        read_servers(
            json.dumps({"mcpServers": {"a" + text: {"command": [text]}}}).encode(), text
        ).problems
    ),
}


@pytest.fixture(scope="module")
def hidden() -> str:
    """All hidden characters. Computing them takes a second, so test collection does not."""
    every = [c for c in ALL if is_hidden(c)]
    return "".join([*(c for c in every if unicodedata.category(c) not in _RARE), *every[::499]])


@pytest.mark.exhaustive
@pytest.mark.parametrize("surface", SURFACES)
def test_no_hidden_character_of_unicode_gets_through(surface: str, hidden: str) -> None:
    show = SURFACES[surface]
    for at in range(0, len(hidden), 20):
        said = show(f"a{hidden[at : at + 20]}b").replace("\n", "").replace("\t", "")
        assert not any(map(is_hidden, said)), ascii(said)


def test_the_table_has_every_ignorable_and_every_control_character() -> None:
    assert all(map(is_hidden, map(chr, IGNORABLE)))
    wanted = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
    assert all(is_hidden(c) for c in ALL if unicodedata.category(c) in wanted)


@pytest.mark.exhaustive
def test_letters_marks_signs_and_blanks_are_shown() -> None:
    ignorable = set(map(chr, IGNORABLE)) | {"\u2800"}
    assert not [
        c
        for c in ALL
        if is_hidden(c) and unicodedata.category(c)[0] not in "CZ" and c not in ignorable
    ]
    assert not any(map(is_hidden, " \u00a0é漢ع🛠👩\U0001f1e9\U0001faea"))


@given(st.text(st.characters() | st.sampled_from("\r\n\t\x1b\u202e\ufe0f⚠1\ud83d")))
def test_visible_text_stays_unchanged(text: str) -> None:
    assert visible(visible(text)) == visible(text)
    assert one_line(one_line(text)) == one_line(text)
    assert not any(map(is_hidden, one_line(text).replace("\ufe0f", "").replace("\ufe0e", "")))


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_legible_json_has_the_same_meaning(text: str) -> None:
    written = legible(json.dumps(text, ensure_ascii=False))
    assert json.loads(written) == text
    assert not any(map(is_hidden, written))


@pytest.mark.parametrize(
    ("text", "visible_text"),
    [
        ("🛠️ ⚠️ 1️⃣", "🛠️ ⚠️ 1️⃣"),
        ("a\ufe0f", r"a\ufe0f"),
        ("🛠\ufe0f\ufe0f", "🛠\ufe0f" + r"\ufe0f"),
        ("🛠\ufe01", r"🛠\ufe01"),
        ("a\U000e0100", r"a\U000e0100"),
        ("\u2800", r"\u2800"),
        ("\ue000\uffff", r"\ue000\uffff"),
    ],
)
def test_a_selector_is_shown_only_with_its_sign(text: str, visible_text: str) -> None:
    assert visible(text) == visible_text


def test_a_line_is_bounded_before_it_is_made_visible() -> None:
    assert one_line(" a \n\t b\x1b" * 9, 5) == "a b\\x1b…"


@pytest.mark.parametrize(
    ("pieces", "visible_text"),
    [
        (["a\r", "\nb"], "a\nb"),
        (["a\r", "b"], r"a\x0db"),
        (["🛠", "\ufe0f"], "🛠\ufe0f"),
        (["a", "\ufe0f"], r"a\ufe0f"),
        (["a\r"], r"a\x0d"),
        (["", "\x1b", "[K"], r"\x1b[K"),
    ],
)
def test_pieces_of_a_text_are_shown_like_the_whole_text(
    pieces: list[str], visible_text: str
) -> None:
    of_pieces = VisiblePieces()
    assert (
        "".join([*map(of_pieces.feed, pieces), of_pieces.end()])
        == visible("".join(pieces))
        == visible_text
    )
    assert of_pieces.feed("\ufe0f") == r"\ufe0f", "a new text has begun"


@pytest.mark.parametrize(
    ("text", "contained_text"),
    [
        ("plain", "plain"),
        ("e\u0301", "e\u0301"),
        (" \u0301", r" \u0301"),
        ("e" + "\u0301" * 4, "e" + "\u0301" * 3 + r"\u0301"),
        ("क्ष", "क्ष"),
        ("각", "각"),
        ("\u1100" * 8, "\u1100" * 7 + r"\u1100"),
        (
            "\U0001f469" + "\U0001f3fb" * 8,
            "\U0001f469" + "\U0001f3fb" * 6 + r"\U0001f3fb" + "\U0001f3fb",
        ),
    ],
)
def test_marks_and_joined_characters_stay_with_their_letter(text: str, contained_text: str) -> None:
    assert contained(text) == contained_text


@pytest.mark.parametrize(
    ("text", "upright_text"),
    [("a.py", "a.py"), ("é", "é"), ("aא.py", r"a\u05d0.py"), ("٣", r"\u0663")],
)
def test_right_to_left_letters_become_codes(text: str, upright_text: str) -> None:
    assert upright(text) == upright_text


@pytest.mark.parametrize(
    ("name", "oddity"),
    [
        ("search", ""),
        ("поиск", ""),
        ("検索する_search", ""),
        ("sеarch", "е is cyrillic"),
        ("поиcк", "п is cyrillic"),
        ("αб", "б is cyrillic"),
    ],
)
def test_letters_from_several_scripts_in_one_word_are_an_oddity(name: str, oddity: str) -> None:
    assert mixed_scripts(name) == oddity


def test_a_servers_last_words_skip_its_traceback_frame() -> None:
    banner = ["╭──────────╮", "│  Ready.  │", "╰──────────╯", "", "═══"]
    assert last_words(banner) == ["Ready."]
    assert last_words(["one", "two: 2"]) == ["two: 2"]
    assert last_words(["───", ""]) == []
