"""Headers with which a request could be split, or that would contradict it, are never sent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.http.request_headers import name_flaw, value_flaw


@pytest.mark.parametrize("name", ["X-Api-Key", "cf-aig-authorization", "x", "Authorization"])
def test_a_token_is_a_name(name: str) -> None:
    assert name_flaw(name) == ""


@pytest.mark.parametrize("name", ["", "a b", "a:", "ä", "a\r\nb", "a\n", "x" * 129])
def test_other_text_is_no_name(name: str) -> None:
    assert name_flaw(name).startswith("expected letters")


@pytest.mark.parametrize("name", ["Host", "content-length", "Transfer-Encoding", "Content-Type"])
def test_headers_that_describe_the_request_are_refused(name: str) -> None:
    assert "Parley sets this header itself" in name_flaw(name)


@given(st.text())
def test_a_value_never_splits_a_request(value: str) -> None:
    if not value_flaw(value):
        assert value.isascii()
        assert value.isprintable()
        assert value == value.strip()
        assert value


@pytest.mark.parametrize("value", ["a", "Bearer a.b-c", "https://x.example/?a=b", "${TOKEN}"])
def test_printable_ascii_is_a_value(value: str) -> None:
    assert value_flaw(value) == ""
