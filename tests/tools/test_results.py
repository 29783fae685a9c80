"""Results as text: it hides nothing, cannot control a terminal, and never exceeds its limit."""

import re
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.media import PICTURE_BYTES
from parley.text import size_text, visible
from parley.tools.results import (
    FOR_USER,
    MOST_PICTURES,
    Outcome,
    cut,
    described,
    outcome,
    result_text,
)
from tests.defaults import MAX_BYTES
from tests.pictures import png

CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
TAIL = len("… [truncated: 999999999 bytes omitted]".encode())

raw_text = st.text(st.characters() | st.characters(categories=["Cs", "Cc", "Cf"])) | st.text(
    "\r\n\t\x1b a💬"
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | raw_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(raw_text, inner, max_size=3),
    max_leaves=6,
)
fields = st.sampled_from(["type", "text", "data", "mimeType", "uri", "name", "resource", "blob"])
kinds = st.sampled_from(["text", "image", "audio", "resource", "resource_link", "new"])
blocks = st.dictionaries(fields, json_values, max_size=5) | st.builds(
    lambda kind, text: {"type": kind, "text": text, "mimeType": text, "uri": text}, kinds, raw_text
)


@given(st.lists(blocks | json_values, max_size=4), json_values, st.integers(0, 200))
def test_any_content_is_bounded_text_without_controls(
    content: list[object], structured: object, max_bytes: int
) -> None:
    text = result_text(content, structured, max_bytes=max_bytes)
    assert not CONTROL.search(text)
    assert len(text.encode()) <= max(max_bytes, len("(no output)")) + TAIL
    assert text


@given(raw_text)
def test_making_text_visible_is_idempotent(text: str) -> None:
    assert not CONTROL.search(visible(text))
    assert visible(visible(text)) == visible(text)


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"], exclude_characters="ᅟᅠㅤﾠ\u2800")))
def test_ordinary_text_stays_unchanged(text: str) -> None:
    assert visible(text) == text


@given(raw_text.map(visible), st.integers(0, 60))
def test_a_text_that_fits_is_not_cut(text: str, room: int) -> None:
    assert cut(text, len(text.encode()) + room) == text


@given(raw_text.map(visible).filter(bool), st.data())
def test_a_cut_text_counts_the_omitted_bytes(text: str, data: st.DataObject) -> None:
    max_bytes = data.draw(st.integers(0, len(text.encode()) - 1))
    shown = cut(text, max_bytes)
    kept, _, tail = shown.rpartition("… [truncated: ")
    omitted = int(tail.removesuffix(" bytes omitted]"))
    assert text.startswith(kept)
    assert len(kept.encode()) <= max_bytes
    assert len(kept.encode()) + omitted == len(text.encode())


@pytest.mark.parametrize(
    ("content", "structured", "expected"),
    [
        ([], None, "(no output)"),
        ([{"type": "text", "text": ""}], None, "(no output)"),
        ([{"type": "text", "text": " \n"}], None, "(no output)"),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], None, "a\nb"),
        ([{"type": "text", "text": "a\r\nb\rc"}], None, "a\nb\\x0dc"),
        ([], {"a": [1, "é"]}, '{"a":[1,"é"]}'),
        ([], 0, "0"),
        ([{"type": "text", "text": "a"}], {"a": 1}, "a"),
        (
            [{"type": "image", "mimeType": "image/png", "data": "A" * 16_000}],
            None,
            "[image image/png, 12 kB]",
        ),
        (
            [{"type": "image", "mimeType": "image/png", "data": "QQ=="}],
            {"a": 1},
            '[image image/png, 1 B]\n{"a":1}',
        ),
        ([{"type": "audio", "data": "QUE="}], None, "[audio 2 B]"),
        (
            [{"type": "resource_link", "uri": "file:///a", "name": "a"}],
            None,
            "[resource file:///a, a]",
        ),
        (
            [{"type": "resource", "resource": {"uri": "file:///a", "text": "inline"}}],
            None,
            "inline",
        ),
        (
            [
                {
                    "type": "resource",
                    "resource": {"uri": "u:a", "mimeType": "application/pdf", "blob": "QUFB"},
                }
            ],
            None,
            "[resource application/pdf, u:a, 3 B]",
        ),
        ([{"type": "resource"}], None, "[resource]"),
        ([{"type": "hologram"}, "junk"], None, "[unknown content hologram]"),
    ],
)
def test_content_becomes_text(content: list[Any], structured: object, expected: str) -> None:
    assert result_text(content, structured, max_bytes=MAX_BYTES) == expected


@pytest.mark.parametrize(
    ("text", "visible_text"),
    [
        ("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
        ("nul\x00 del\x7f csi\x9b", r"nul\x00 del\x7f csi\x9b"),
        ("tab\tstays", "tab\tstays"),
        ("abc\u202edcba", r"abc\u202edcba"),
        ("zero\u200bwidth\ufeff", r"zero\u200bwidth\ufeff"),
        ("tag\U000e0041", r"tag\U000e0041"),
        ("half\ud83d", "half\ufffd"),
        ("💬: 🛠️", "💬: 🛠️"),
    ],
)
def test_hidden_and_control_characters_are_shown(text: str, visible_text: str) -> None:
    assert visible(text) == visible_text


def test_a_long_result_is_cut_at_a_character() -> None:
    text = result_text([{"type": "text", "text": "é" * 10}], max_bytes=5)
    assert text == "éé… [truncated: 16 bytes omitted]"


def image(content: bytes, kind: str = "image/png") -> dict[str, str]:
    return {"type": "image", "mimeType": kind, "data": b64encode(content).decode()}


def test_pictures_are_separate_from_the_text_for_every_declared_type() -> None:
    content = [
        {"type": "text", "text": "a"},
        image(png(1)),
        {"type": "text", "text": "b"},
        image(png(2), "x/y"),
        {"type": "resource", "resource": {"uri": "u:a", "blob": b64encode(png(3)).decode()}},
    ]
    assert outcome("ok", content, max_bytes=MAX_BYTES) == Outcome(
        "ok", "a\nb", (png(1), png(2), png(3))
    )
    assert outcome("error", [image(png())], max_bytes=MAX_BYTES) == Outcome("error", "", (png(),))


def marked(block: dict[str, Any], *audience: str) -> dict[str, Any]:
    return {**block, "annotations": {"audience": list(audience)}}


@pytest.mark.parametrize(
    "audience", [(), ("assistant",), ("user", "assistant"), ("user", "nobody")]
)
def test_content_that_is_also_for_the_model_stays_unchanged(
    audience: tuple[str, ...],
) -> None:
    content = [{"type": "text", "text": "a"}, image(png())]
    blocks = [marked(block, *audience) for block in content]
    assert outcome("ok", blocks, max_bytes=MAX_BYTES) == outcome("ok", content, max_bytes=MAX_BYTES)


def test_content_for_the_user_alone_is_separated() -> None:
    text, shown = {"type": "text", "text": "a"}, {"type": "text", "text": "b\x1b"}
    aside = Outcome("ok", "b\\x1b", (png(),))
    blocks = [marked(image(png()), "user"), text, marked(shown, "user")]
    assert outcome("ok", blocks, max_bytes=MAX_BYTES) == Outcome("ok", "a", aside=aside)
    assert outcome("ok", blocks[::2], max_bytes=MAX_BYTES) == Outcome("ok", FOR_USER, aside=aside)
    assert outcome("ok", blocks[::2], {"x": 1}, max_bytes=MAX_BYTES) == Outcome(
        "ok", '{"x":1}', aside=aside
    )
    assert described(png()) == "[image image/png, 69 B]"


@pytest.mark.parametrize(
    "block",
    [
        image(b"<svg/>", "image/svg+xml"),
        image(b"", "image/png"),
        image(b"%PDF-1.4", "image/png"),
        {"type": "image", "mimeType": "image/png", "data": "no base64!"},
        {"type": "image", "mimeType": "image/png", "data": "é"},
        {"type": "image", "mimeType": "image/png"},
        {"type": "audio", "mimeType": "audio/wav", "data": b64encode(png()).decode()},
        {
            "type": "resource",
            "resource": {"mimeType": "image/png", "blob": b64encode(b"no").decode()},
        },
    ],
)
def test_content_that_no_model_can_see_is_described(block: object) -> None:
    assert outcome("ok", [block], max_bytes=MAX_BYTES) == Outcome(
        "ok", result_text([block], max_bytes=MAX_BYTES)
    )


def test_pictures_beyond_the_limit_are_described() -> None:
    many = outcome(
        "ok", [image(png(number)) for number in range(MOST_PICTURES + 2)], max_bytes=MAX_BYTES
    )
    assert len(many.pictures) == MOST_PICTURES
    assert many.text == "[image image/png, 69 B]\n[image image/png, 69 B]"


def test_a_picture_is_kept_up_to_the_largest_size_and_described_beyond_it() -> None:
    triples = PICTURE_BYTES // 3  # base64 without padding tells the exact size
    sizes = (3 * triples, 3 * triples + 3)
    fits, too_large = (image(png() + bytes(size - len(png()))) for size in sizes)
    assert [len(p) for p in outcome("ok", [fits], max_bytes=MAX_BYTES).pictures] == [sizes[0]]
    described = outcome("ok", [too_large], max_bytes=MAX_BYTES)
    assert (described.pictures, described.text) == ((), "[image image/png, 32.0 MB]")


@given(st.lists(blocks | json_values, max_size=4), json_values, st.integers(0, 200))
def test_without_pictures_the_text_has_all_blocks_and_the_whole_if_it_is_cut(
    content: list[object], structured: object, max_bytes: int
) -> None:
    one = outcome("ok", content, structured, max_bytes=max_bytes)
    assert one.text == result_text(content, structured, max_bytes=max_bytes)
    assert bool(one.whole) == ("bytes omitted]" in one.text and one.text != one.whole)
    assert not one.whole or cut(one.whole, max_bytes) == one.text


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (999, "999 B"), (12_345, "12 kB"), (3_400_000, "3.4 MB")]
)
def test_sizes_are_readable_for_people(size: int, text: str) -> None:
    assert size_text(size) == text
