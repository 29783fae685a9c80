"""Names on the wire are unique and valid, and depend only on the set of tools."""

import re
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.tools.names import MAX_LENGTH, PARAMETER, Key, parameter_names, wire_names

VALID = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")

# Few letters and the characters that fold, so that names often collide; and any other text.
_crowded = st.text("ab_.", max_size=4)
_any = st.text(max_size=140) | st.text("a_", min_size=60, max_size=70)
keys = st.lists(st.tuples(st.sampled_from(["a", "b", "a__b", "é"]), _crowded | _any), max_size=12)


@given(keys)
def test_every_tool_has_a_unique_name_that_providers_accept(keys: list[Key]) -> None:
    names = wire_names(keys)
    assert set(names) == set(keys)
    assert len(set(names.values())) == len(names)
    assert all(VALID.match(name) for name in names.values())


@given(keys, st.randoms())
def test_names_do_not_depend_on_the_order(keys: list[Key], random: object) -> None:
    mixed = [*keys, *keys]
    random.shuffle(mixed)  # type: ignore[attr-defined]
    assert wire_names(mixed) == wire_names(keys)


@given(st.sets(st.text("abc_-", min_size=1, max_size=64)))
def test_valid_names_of_one_server_stay_unchanged(names: set[str]) -> None:
    assert wire_names(("s", name) for name in names) == {("s", name): name for name in names}


@pytest.mark.parametrize(
    ("given_keys", "expected"),
    [
        ([("web", "search")], ["search"]),
        ([("web", "files.read/all")], ["files_read_all"]),
        ([("web", "search"), ("code", "search")], ["web__search", "code__search"]),
        (
            [("web", "search"), ("code", "search"), ("code", "run")],
            ["web__search", "code__search", "run"],
        ),
        ([("web", "")], ["_"]),
    ],
)
def test_a_name_contains_the_server_only_if_two_servers_have_it(
    given_keys: list[Key], expected: list[str]
) -> None:
    names = wire_names(given_keys)
    assert [names[key] for key in given_keys] == expected


def test_a_long_name_is_cut_and_gets_a_hash_of_the_whole() -> None:
    one, two = ("s", "x" * 70 + "1"), ("s", "x" * 70 + "2")
    names = wire_names([one, two])
    assert re.fullmatch(r"x{55}_[0-9a-f]{8}", names[one])
    assert names[one] != names[two]
    assert names[one] == wire_names([one])[one]


def test_colliding_names_all_get_a_hash() -> None:
    names = wire_names([("s", "a.b"), ("s", "a_b")])
    assert all(re.fullmatch(r"a_b_[0-9a-f]{8}", name) for name in names.values())


def test_a_tool_named_like_a_hashed_name_stays_distinct() -> None:
    pair: list[Key] = [("s", "a.b"), ("s", "a_b")]
    imitation = wire_names(pair)["s", "a.b"]
    for order in permutations([*pair, ("s", imitation)]):
        assert len(set(wire_names(order).values())) == 3


def test_tools_named_like_every_hash_so_far_stay_distinct() -> None:
    keys: list[Key] = [("s", "a.b"), ("s", "a_b")]
    taken = set[str]()
    for _ in range(3):
        imitated = wire_names(keys)["s", "a.b"]
        assert re.fullmatch(r"a_b_[0-9a-f]{8}", imitated)
        taken.add(imitated)
        keys.append(("s", imitated))
    names = wire_names(keys)
    assert len(taken) == 3
    assert len(set(names.values())) == len(keys)
    assert re.fullmatch(r"a_b_[0-9a-f]{8}", names["s", "a.b"])


parameters = st.lists(
    _crowded | _any | st.sampled_from(["file name", "file_name", "größe", "groesse"]), max_size=12
)


@given(parameters)
def test_every_parameter_has_a_unique_name_that_providers_accept(names: list[str]) -> None:
    wires = parameter_names(names)
    on_the_wire = [wires.get(name, name) for name in sorted(set(names))]
    assert len(set(on_the_wire)) == len(on_the_wire)
    assert all(PARAMETER.fullmatch(name) for name in on_the_wire)
    assert all(not PARAMETER.fullmatch(name) for name in wires)


@given(parameters, st.randoms())
def test_names_of_parameters_do_not_depend_on_the_order(names: list[str], random: object) -> None:
    mixed = [*names, *names]
    random.shuffle(mixed)  # type: ignore[attr-defined]
    assert parameter_names(mixed) == parameter_names(names)


def test_a_parameter_name_stays_as_similar_as_possible() -> None:
    assert parameter_names(["file name", "filter[id]", "größe", "a.b-c_d"]) == {
        "file name": "file_name",
        "filter[id]": "filter_id_",
        "größe": "gr__e",
    }
    long = parameter_names(["x" * 65])["x" * 65]
    assert (len(long), long[:55]) == (MAX_LENGTH, "x" * 55)
    clashing = parameter_names(["a b", "a_b", "a*b"])
    assert sorted(clashing) == ["a b", "a*b"]
    assert all(name.startswith("a_b_") for name in clashing.values())
