"""JSON with comments and trailing commas reads the same as without them; no other flaw is accepted."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.tools.jsonc import plain_json

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.sampled_from(["//", "/*", "*/", ",]", ',}"', "\\", 'a"//b', "http://x/*y*/"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
GAPS = st.sampled_from(
    [
        "",
        " ",
        "\n",
        "\r\n",
        '// a, ] } "\n',
        '/* , ] " \n // */',
        "/**/",
        "/***/",
        "/*/*/",
        "// \\\n",
    ]
)


@st.composite
def written(draw: st.DrawFn) -> tuple[Any, str]:
    """A value, and its JSON with comments and trailing commas in all possible places."""

    def gap() -> str:
        return "".join(draw(st.lists(GAPS, max_size=2)))

    def listed(opening: str, items: list[str], closing: str) -> str:
        trailing = draw(st.sampled_from(["", ","])) if items else ""
        inside = f"{gap()},{gap()}".join(items)
        return f"{opening}{gap()}{inside}{gap()}{trailing}{gap()}{closing}"

    def text_of(value: Any) -> str:
        match value:
            case list():
                return listed("[", [text_of(item) for item in value], "]")
            case dict():
                pairs = [
                    f"{json.dumps(key)}{gap()}:{gap()}{text_of(item)}"
                    for key, item in value.items()
                ]
                return listed("{", pairs, "}")
            case _:
                return json.dumps(value, ensure_ascii=draw(st.booleans()))

    value = draw(VALUES)
    return value, f"{gap()}{text_of(value)}{gap()}"


@given(written())
def test_json_with_comments_and_trailing_commas_reads_as_the_json_without(
    pair: tuple[Any, str],
) -> None:
    value, text = pair
    assert json.loads(plain_json(text)) == value


@given(VALUES, st.sampled_from([None, 2]))
def test_plain_json_stays_unchanged(value: Any, indent: int | None) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    assert plain_json(text) == text


@given(st.text(alphabet=' \n\\"/*,[]{}:1a'))
def test_every_line_and_column_stays_in_place(text: str) -> None:
    plain = plain_json(text)
    assert len(plain) == len(text)
    assert [i for i, c in enumerate(plain) if c == "\n"] == [
        i for i, c in enumerate(text) if c == "\n"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "[,]",
        "{,}",
        "[1,,]",
        "[1,,2]",
        '{"a":,}',
        ",",
        "[1],",
        "[1 2]",
        "/*",
        "/*/ 1",
        "1 /* 2",
        "1 / 2",
        '"a',
        "#1",
    ],
)
def test_no_other_flaw_is_accepted(text: str) -> None:
    with pytest.raises(ValueError, match="line 1"):
        json.loads(plain_json(text))


@pytest.mark.exhaustive
@pytest.mark.parametrize("piece", ['"\\', "/*", "//", ",", '\\"', " ", "/"])
def test_a_file_made_to_be_slow_is_scanned_once(piece: str) -> None:
    text = piece * 200_000
    assert len(plain_json(text)) == len(text)
