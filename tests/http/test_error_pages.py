"""The words on web pages that arrive instead of the expected response."""

from __future__ import annotations

import pytest

from parley.http.error_pages import words


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<h1>No</h1><style>p {}</style> <!-- <b> --><p class='x'>Ask Ada.</p>", "No Ask Ada"),
        ("1 < 2 < <b>3</b>", "1 < 2 < 3"),
        ('{"error": {"message": "not today"}}', "not today"),
    ],
)
def test_a_pages_words_are_read_without_tags(page: str, text: str) -> None:
    assert words(page, 300) == text
