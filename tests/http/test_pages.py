"""Pages in place of what was asked for: the words of them."""

from __future__ import annotations

import pytest

from parley.http.pages import words


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<h1>No</h1><style>p {}</style> <!-- <b> --><p class='x'>Ask Ada.</p>", "No Ask Ada"),
        ("1 < 2 < <b>3</b>", "1 < 2 < 3"),
        ('{"error": {"message": "not today"}}', "not today"),
    ],
)
def test_of_a_page_its_words_are_read_and_no_tags(page: str, text: str) -> None:
    assert words(page, 300) == text
