"""File types, by their first bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.media import TYPES, kind_of
from tests.pictures import PDF, png


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (png(), "png"),
        (PDF, "pdf"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF", "jpg"),
        (b"GIF87a", "gif"),
        (b"GIF89a", "gif"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "webp"),
        (b"RIFF\0\0\0\0WAVE", None),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", None),
        (b"BM", None),
        (b"", None),
        (b" " + png(), None),
    ],
)
def test_the_first_bytes_decide_a_files_type(content: bytes, kind: str | None) -> None:
    assert kind_of(content) == kind


@given(st.binary())
def test_any_bytes_have_a_known_type_or_none(content: bytes) -> None:
    assert kind_of(content) in {*TYPES, None}
