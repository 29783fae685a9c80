"""Users' tables: a dataclass's types are the schema, whatever the table's source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from parley.tables import NO_VALUE, Flaw, TableReader, names, nearest, rule


@dataclass(frozen=True, slots=True)
class Inner:
    size: int | None = field(default=None, metadata=rule(least=2, is_short=True))
    kind: Literal["big", "small"] | None = None


@dataclass(frozen=True, slots=True)
class Named:
    name: str
    command: str


@dataclass(frozen=True, slots=True)
class Outer:
    inner: Inner = field(default_factory=Inner)
    plus: str = field(default="", metadata=rule("text+", noun="a kind word"))
    secrets: Mapping[str, str] = field(default_factory=dict, metadata=rule(is_secret=True))
    loose: tuple[Inner, ...] = ()
    strict: tuple[Inner, ...] = field(default=(), metadata=rule(is_strict=True))
    named: Mapping[str, Named] = field(default_factory=dict)


CASES: list[tuple[Any, Any, list[str]]] = [
    ({}, Outer(), []),
    ([], Outer(), []),
    ({"inner": 3.0}, Outer(Inner(3)), []),
    ({"inner": {"size": 3, "kind": "big"}, "text+": "x"}, Outer(Inner(3, "big"), "x"), []),
    ({"text+": 1}, Outer(), ["text+: expected a kind word, got 1"]),
    ({"plus": "x"}, Outer(), ["plus: no such field"]),
    ({"iner": 1}, Outer(), ["iner: no such field; did you mean inner?"]),
    (
        {"inner": "x"},
        Outer(),
        ['inner: expected an integer ≥ 2 or a table of size and kind, got "x"'],
    ),
    ({"inner": {"size": 1}}, Outer(), ["inner.size: expected an integer ≥ 2, got 1"]),
    (
        {"inner": {"size": 2, "kind": "bigg"}},
        Outer(Inner(2)),
        ['inner.kind: expected "big" or "small", got "bigg"; did you mean big?'],
    ),
    ({"secrets": {"A": ["sk-1"]}}, Outer(), ["secrets.A: expected a text, got a list"]),
    ({"secrets": "sk-1"}, Outer(), ["secrets: expected a table of texts, got a text"]),
    (
        {"loose": [{"size": 2, "kind": 1}], "strict": [{"size": 2, "kind": 1}, 2]},
        Outer(loose=(Inner(2),), strict=(Inner(2),)),
        [
            'loose[1].kind: expected "big" or "small", got 1',
            'strict[1].kind: expected "big" or "small", got 1',
        ],
    ),
    (
        {"named": {"a": {"command": "c"}, "b": {}}},
        Outer(named={"a": Named("a", "c")}),
        ["named.b.command: is missing"],
    ),
    (1, NO_VALUE, [": expected a table, got 1"]),
]


@pytest.mark.parametrize(("table", "outcome", "flaws"), CASES, ids=[str(case[0]) for case in CASES])
def test_a_table_is_read_and_flaws_are_reported_with_their_path(
    table: Any, outcome: Any, flaws: list[str]
) -> None:
    reader = TableReader("no such field")
    assert reader.record(Outer, table) == outcome
    assert [str(flaw) for flaw in reader.flaws] == flaws


def test_a_short_spelling_must_respect_its_fields_bound() -> None:
    reader = TableReader(None)
    assert reader.record(Outer, {"inner": 1}) == Outer()
    assert reader.flaws == [
        Flaw("inner", "expected an integer ≥ 2 or a table of size and kind, got 1"),
    ]


def test_unknown_names_may_be_accepted() -> None:
    reader = TableReader(None)
    assert (reader.record(Outer, {"other": 1}), reader.flaws) == (Outer(), [])


@pytest.mark.parametrize(
    ("table", "values", "paths"),
    [
        ({"inner": 3}, {"inner": {"size": 3}}, []),
        ({"inner": {"kind": "big"}}, {"inner": {"kind": "big"}}, []),
        ({"inner": {"size": None}}, {"inner": {}}, ["inner.size"]),
        ({"inner": []}, {}, ["inner"]),
        ({"inner": None}, {}, ["inner"]),
        ({"loose": {}}, {}, ["loose"]),
    ],
)
def test_an_overlay_has_only_given_values_and_no_placeholders(
    table: Any, values: Any, paths: list[str]
) -> None:
    reader = TableReader(None, is_overlay=True)
    assert reader.values(Outer, table) == values
    assert [flaw.path for flaw in reader.flaws] == paths


def test_names_are_those_in_tables() -> None:
    assert names(Outer) == ("inner", "text+", "secrets", "loose", "strict", "named")


def test_the_nearest_name_is_suggested_only_if_it_is_similar() -> None:
    assert nearest("ALPHA", ["alpha", "beta"]) == "alpha"
    assert nearest("quantum", ["alpha", "beta"]) is None
    assert nearest("x" * 100_000, ["alpha"]) is None
