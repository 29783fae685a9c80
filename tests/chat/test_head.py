"""Writing one front matter key changes nothing else."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from parley.chat.edits import apply_edits
from parley.chat.front_matter import read_front_matter
from parley.chat.head import put_value, put_values
from parley.chat.reader import parse, split_lines
from tests.examples import examples
from tests.strategies import yaml_texts

ASK = "💬: ask\n"


def put(text: str, values: list[str] | None) -> str:
    return "".join(
        f"{line}\n"
        for line in apply_edits(
            split_lines(text), put_value(split_lines(text), parse(text), "tools", values)
        )
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (ASK, f'---\ntools: ["!a/*", "é"]\n---\n\n{ASK}'),
        (f"---\n---\n{ASK}", f'---\ntools: ["!a/*", "é"]\n---\n{ASK}'),
        (f"---\ntopic: x\n---\n{ASK}", f'---\ntopic: x\ntools: ["!a/*", "é"]\n---\n{ASK}'),
        (
            f"---\ntools: [b]\ntopic: x\n---\n{ASK}",
            f'---\ntools: ["!a/*", "é"]\ntopic: x\n---\n{ASK}',
        ),
        (
            f"---\ntools:\n  - b\n  - c # why\n\n# note\ntopic: x\n---\n{ASK}",
            f'---\ntools: ["!a/*", "é"]\n\n# note\ntopic: x\n---\n{ASK}',
        ),
        (f"---\ntools:\n- b\n- c\n---\n{ASK}", f'---\ntools: ["!a/*", "é"]\n---\n{ASK}'),
        (f"---\ntools: [b,\n  c]\n---\n{ASK}", f'---\ntools: ["!a/*", "é"]\n---\n{ASK}'),
    ],
)
def test_a_list_is_written_at_its_key_or_at_the_end(before: str, after: str) -> None:
    written = put(before, ["!a/*", "é"])
    assert written == after
    assert read_front_matter(parse(written).front_matter).keys["tools"] == ("!a/*", "é")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"---\ntools: [b]\ntopic: x\n---\n{ASK}", f"---\ntopic: x\n---\n{ASK}"),
        (f"---\ntopic: x\ntools:\n  - b\n---\n{ASK}", f"---\ntopic: x\n---\n{ASK}"),
        (ASK, ASK),
        (f"---\ntools: [b]\n---\n\n{ASK}", ASK),
        (f"---\ntools: [b]\n---\n{ASK}", ASK),
    ],
)
def test_a_key_is_removed(before: str, after: str) -> None:
    assert put(before, None) == after


def test_text_that_is_not_yaml_stays_unchanged() -> None:
    with pytest.raises(ValueError, match="Fix it first"):
        put(f"---\ntools: [\n---\n{ASK}", ["a"])


@examples(300)
@given(yaml_texts, st.sampled_from([["x"], None]))
@example("\t", ["x"])
@example("{topic: a}", ["x"])
@example("topic: \u2028a\ntools: [b]", None)
def test_a_key_is_set_only_if_all_others_keep_their_values(
    raw: str, values: list[str] | None
) -> None:
    text = f"---\n{raw}\n---\n{ASK}"
    before = parse(text)
    keys = dict(read_front_matter(before.front_matter).keys)
    try:
        after = parse(
            "\n".join(
                [
                    *apply_edits(
                        split_lines(text), put_value(split_lines(text), before, "tools", values)
                    ),
                    "",
                ]
            )
        )
    except ValueError:
        return
    assert after.exchanges == before.exchanges
    keys.pop("tools", None)
    assert read_front_matter(after.front_matter).keys == keys | (
        {"tools": tuple(values)} if values else {}
    )


@pytest.mark.parametrize(
    "raw", ["\t", " \n\t", "topic: x\n", "# note", "topic: |\n  x\n\n", "topic: 'a\u2028b'"]
)
def test_a_list_can_be_set_in_typical_front_matter(raw: str) -> None:
    assert 'tools: ["a"]' in put(f"---\n{raw}\n---\n{ASK}", ["a"])


KEPT = [
    *[
        "topic: 'a\u2028b'",
        "topic: |-\n  x\n\n  tools: [y]",
        "topic: é # why",
        '"topic": "x: y"',
        "topic: >-\n  a\n  b",
    ],
    *[
        "agent: Demo",
        "mine: {a: [b, c], d: ~}",
        "other:\n  tools: [z]\n  e: 1.50",
        "tags:\n- a\n- b",
        "? odd\n: x",
    ],
    *["# note", "", "  ", "date: 2026-01-01", "empty:", "text: ''", "max_tokens: 1_000"],
]
OWN = [
    "tools: [b]",
    "tools:\n- b\n- c # why",
    "tools: [b,\n  c]",
    "'tools': ['b']",
    "tools:\n\n  - b\n",
]


@examples(100)
@given(
    st.lists(
        st.sampled_from(KEPT), max_size=5, unique_by=lambda line: line.split(":")[0].strip('"')
    ),
    st.sampled_from([None, *OWN]),
    st.integers(0, 5),
    st.sampled_from([["x"], ["!a/*", "é: [", "b"], None]),
)
def test_a_key_is_put_into_any_table_and_all_others_keep_their_values(
    kept: list[str], own: str | None, place: int, values: list[str] | None
) -> None:
    raw = "\n".join([*kept[:place], *([own] if own else []), *kept[place:]])
    text = f"---\n{raw}\n---\n{ASK}"
    before, after = parse(text), parse(put(text, values))
    keys = {
        key: value
        for key, value in read_front_matter(before.front_matter).keys.items()
        if key != "tools"
    }
    assert after.exchanges == before.exchanges
    assert read_front_matter(after.front_matter).keys == keys | (
        {"tools": tuple(values)} if values else {}
    )


@given(st.sampled_from([ASK, f"---\ntopic: x\n---\n\n{ASK}", f"---\nmode: a\n---\n\n{ASK}"]),
       st.dictionaries(st.sampled_from(["mode", "model", "agent"]),
                       st.none() | st.sampled_from(["a", "b: c", "é"])))  # fmt: skip
def test_several_keys_are_written_in_one_edit(text: str, values: dict[str, str | None]) -> None:
    lines, transcript = split_lines(text), parse(text)
    edits = put_values(lines, transcript, values)
    assert len(edits) <= 1
    after = parse("\n".join([*apply_edits(lines, edits), ""]))
    known = {**read_front_matter(transcript.front_matter).keys, **values}
    wanted = {key: value for key, value in known.items() if value is not None}
    assert read_front_matter(after.front_matter).keys == wanted
    assert [e.question.text for e in after.exchanges if e.question] == ["ask"]


PUT = {
    "no front matter": ("💬: ask\n", {"mode": "a"}, "---\nmode: a\n---\n\n💬: ask\n"),
    "two keys": ("---\ntopic: x\nmode: a\n---\n\n💬: ask\n", {"mode": "b", "model": "m"},
                 "---\ntopic: x\nmode: b\nmodel: m\n---\n\n💬: ask\n"),
    "a removed key": ("---\ntopic: x\nmode: a\n---\n\n💬: ask\n", {"mode": None},
                      "---\ntopic: x\n---\n\n💬: ask\n"),
    "nothing": ("💬: ask\n", {"mode": None}, "💬: ask\n"),
}  # fmt: skip


@pytest.mark.parametrize(("before", "values", "after"), PUT.values(), ids=PUT)
def test_keys_are_put_at_the_top(before: str, values: dict[str, str | None], after: str) -> None:
    lines = split_lines(before)
    edits = put_values(lines, parse(before), values)
    assert "\n".join(apply_edits(lines, edits)).rstrip("\n") == after.rstrip("\n")
