"""Which models receive pictures, how many and of which size, and the words that replace the others."""

from __future__ import annotations

import pytest

from parley.chat.attachments import attachment_of
from parley.chat.history import UserTurn
from parley.chat.transcript import Attachment
from parley.media import PDF
from parley.models.picture_limits import Picture, mixed, room, sees, selection
from tests.pictures import png

CLAUDE, OTHER = "claude-sonnet-5-5", "gpt-5.4"


@pytest.mark.parametrize(
    ("model", "pictures", "documents"),
    [
        ("claude-sonnet-5-5", True, True),
        ("us.anthropic.claude-3-5-sonnet-20241022-v2:0", True, True),
        ("claude-3-haiku-20240307", True, False),
        ("claude-2.1", False, False),
        ("gpt-5.4", True, True),
        ("gpt-4o-mini", True, True),
        ("openai/gpt-4.1", True, True),
        ("gpt-4", False, False),
        ("gpt-4-0613", False, False),
        ("gpt-4-turbo", True, False),
        ("gpt-3.5-turbo", False, False),
        ("o1", True, True),
        ("o1-mini", False, False),
        ("o3-mini-2025-01-31", False, False),
        ("o4-mini", True, True),
        ("gemini-3-pro", True, False),
        ("qwen3-vl", True, False),
        ("a-model-of-tomorrow", True, False),
    ],
)
def test_known_models_get_the_types_they_support_and_unknown_ones_get_pictures(
    model: str, pictures: bool, documents: bool
) -> None:
    assert (sees(model, "image/png"), sees(model, PDF)) == (pictures, documents)


def attached(content: bytes) -> Attachment:
    return attachment_of(content, "chat.assets", "png")


def turns(*contents: bytes) -> list[UserTurn]:
    return [UserTurn("?", (attached(content),)) for content in contents]


def test_the_newest_pictures_are_sent_up_to_the_models_limits() -> None:
    contents = [png(n) for n in range(25)]
    at_hand = {attached(content).path: content for content in contents}
    shown, reasons = selection(turns(*contents), at_hand, CLAUDE)
    assert list(shown.values()) == contents[:4:-1]
    assert list(reasons) == [attached(content).path for content in contents[4::-1]]
    assert reasons[attached(contents[0]).path].startswith(
        "left out: claude-sonnet-5-5 accepts at most 20 pict"
    )
    assert len(selection(turns(*contents), at_hand, OTHER)[0]) == 25


def test_a_repeated_picture_takes_room_twice() -> None:
    one, two = png(1), png(2)
    at_hand: dict[str, bytes | str] = {attached(each).path: each for each in (one, two)}
    shown, _ = selection(turns(two, *[one] * 20), at_hand, CLAUDE)
    assert list(shown.values()) == [one]
    shown, reasons = selection(turns(two, *[one] * 21), at_hand, CLAUDE)
    assert list(shown.values()) == [two]
    assert list(reasons) == [attached(one).path]


@pytest.mark.parametrize("model", [CLAUDE, OTHER])
def test_no_picture_exceeds_the_providers_limit_as_base64(model: str) -> None:
    most = room(model).one // 4 * 3
    fits, too_large = png(1, more=most - len(png()) - 12), png(2, more=most - len(png()) - 11)
    assert (len(fits), len(too_large)) == (most, most + 1)
    at_hand: dict[str, bytes | str] = {attached(each).path: each for each in (fits, too_large)}
    shown, reasons = selection(turns(too_large, fits), at_hand, model)
    assert list(shown.values()) == [fits]
    assert reasons[attached(too_large).path].startswith(f"too large for {model}")


def test_a_missing_picture_is_not_sent_and_says_why() -> None:
    path = attached(png()).path
    assert selection(turns(png()), {path: "no such file"}, CLAUDE) == ({}, {path: "no such file"})
    assert selection(turns(png()), {}, CLAUDE) == ({}, {})


def test_texts_and_pictures_stay_in_order_and_adjacent_texts_are_joined() -> None:
    shown, hidden = attached(png(1)), attached(png(2))
    parts: list[str | Attachment] = ["a", hidden, "b", shown, hidden]
    content = png(1)
    assert mixed(parts, {shown.path: content}, "\n") == [
        f"a\n{hidden.text}\nb",
        Picture(shown, content),
        hidden.text,
    ]
    assert mixed(parts, {}, "\n") == []
