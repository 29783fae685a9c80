"""The link to an attachment, and the text that replaces the attachment."""

from __future__ import annotations

import pytest
from hypothesis import given

from parley.chat.attachments import escape_line, link, read_line, read_links, unescape_line
from parley.chat.transcript import NOWHERE, Attachment
from tests.strategies import DIGEST, attachments, lines, pictures


@given(pictures)
def test_a_link_is_read_as_its_attachment(attachment: Attachment) -> None:
    assert read_line(link(attachment), NOWHERE) == attachment


@given(attachments, attachments)
def test_adjacent_links_are_separated(first: Attachment, second: Attachment) -> None:
    assert read_links(f" {link(first)} {link(second)}") == (first, second)


@given(lines)
def test_an_escaped_line_is_not_an_attachment_and_keeps_its_text(line: str) -> None:
    escaped = escape_line(line)
    assert read_line(escaped, NOWHERE) is None
    assert unescape_line(escaped) in (line, escaped)


@pytest.mark.parametrize(
    ("label", "suffix", "text"),
    [
        ("image/png 12 kB", "png", "[image image/png, 12 kB]"),
        ("image/gif 12 kB", "jpg", "[image image/jpeg, 12 kB]"),
        ("my cat", "webp", "[image image/webp]"),
        ("1.2 MB", "gif", "[image image/gif, 1.2 MB]"),
        ("application/pdf 512 B", "pdf", "[document application/pdf, 512 B]"),
    ],
)
def test_the_name_determines_the_type_and_the_label_the_size(
    label: str, suffix: str, text: str
) -> None:
    assert Attachment(label, f"stocks.assets/{DIGEST}.{suffix}").text == text


@pytest.mark.parametrize(
    ("label", "count"),
    [
        ("text/plain 16 B", 16),
        ("12 kB", 12_000),
        ("a 3.4 MB", 3_400_000),
        ("", 0),
        ("large", 0),
        (f"{'9' * 400} MB", 32_000_000),
    ],
)
def test_a_label_says_about_how_large_the_content_is(label: str, count: int) -> None:
    assert Attachment(label, f"a.assets/{'0' * 64}.txt").byte_count == count
