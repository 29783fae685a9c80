"""Resource templates while the user types a matching URI."""

from __future__ import annotations

import pytest

from parley.tools.templates import Blank, blank_of, start_of

PAGE = "page://{name}/{part}"


@pytest.mark.parametrize(
    ("template", "start"),
    [(PAGE, "page://"), ("{all}", ""), ("note://tea", "note://tea"), ("a:{?q}", "a:")],
)
def test_a_template_has_its_uris_common_beginning(template: str, start: str) -> None:
    assert start_of(template) == start


@pytest.mark.parametrize(
    ("template", "text", "blank", "uri"),
    [
        (
            PAGE,
            "page://",
            Blank(PAGE, "name", "", {}, "page://", "/", "", False),
            "page://a%2Fb%20c/",
        ),
        (
            PAGE,
            "page://te",
            Blank(PAGE, "name", "te", {}, "page://", "/", "", False),
            "page://a%2Fb%20c/",
        ),
        (
            PAGE,
            "page://a%20b/l",
            Blank(PAGE, "part", "l", {"name": "a b"}, "page://a%20b/", "", "", True),
            "page://a%20b/a%2Fb%20c",
        ),
    ],
)
def test_the_typed_variable_is_the_first_unfinished_one(
    template: str, text: str, blank: Blank, uri: str
) -> None:
    assert blank_of(template, text) == blank
    assert blank.uri("a/b c") == uri


@pytest.mark.parametrize(
    ("template", "uri"),
    [("a:{+p}", "a:x/y?z%20"), ("a:{p*}", "a:x/y%3Fz%20"), ("a:{p}", "a:x%2Fy%3Fz%20")],
)
def test_values_are_escaped_as_their_variable_requires(template: str, uri: str) -> None:
    blank = blank_of(template, "a:")
    assert blank is not None
    assert blank.uri("x/y?z ") == uri


@pytest.mark.parametrize(
    ("template", "text"),
    [
        (PAGE, "note://"),
        (PAGE, "page:/"),
        ("page://{name}.txt", "page://tea.txt"),
        ("note://tea", "note://tea"),
        ("a:{?q,r}", "a:"),
        ("a:{/x}", "a:"),
        ("a:{", "a:{"),
        ("a:{}", "a:"),
        ("a:{b}{?q}", "a:x"),
        ("", ""),
    ],
)
def test_a_text_that_does_not_match_has_no_typed_variable(template: str, text: str) -> None:
    blank = blank_of(template, text)
    assert blank is None or (template, blank.variable) == ("a:{b}{?q}", "b")
