"""`frozen` classes behave like the frozen dataclasses of the standard library."""

import copy
import inspect
import pickle
from collections.abc import Callable
from dataclasses import (
    MISSING,
    FrozenInstanceError,
    dataclass,
    field,
    fields,
    is_dataclass,
    replace,
)
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.frozen import frozen

NAMES = ("a", "b", "c", "d")


@st.composite
def bodies(draw: st.DrawFn) -> dict[str, Any]:
    """The body of a class with up to four fields of all kinds; those without a default come first."""
    body: dict[str, Any] = {"__annotations__": {}, "__doc__": "A class.", "__module__": __name__}
    count = draw(st.integers(0, len(NAMES)))
    required = draw(st.integers(0, count))
    for at, name in enumerate(NAMES[:count]):
        body["__annotations__"][name] = "object"
        options: dict[str, Any] = {
            "compare": draw(st.booleans()),
            "repr": draw(st.booleans()),
            "hash": draw(st.sampled_from([None, True, False])),
        }
        if at >= required:
            options |= draw(st.sampled_from([{"default": 7}, {"default_factory": lambda: "made"}]))
            options["init"] = draw(st.booleans())
        if at < required and draw(st.booleans()):
            continue
        body[name] = field(**options)
    return body


def classes(body: dict[str, Any]) -> tuple[type, type]:
    """The same class, made by `frozen` and by the standard library."""

    def made() -> type:
        own = {name: copy.copy(value) if name in NAMES else value for name, value in body.items()}
        return type("Made", (), own)

    return frozen(made()), dataclass(frozen=True, slots=True)(made())


def outcome(act: Callable[[], Any]) -> Any:
    """What an action gives: its value, or the type of its error."""
    try:
        return act()
    except (TypeError, FrozenInstanceError, ValueError) as error:
        return type(error)


def behaviour(cls: Any, values: list[int], others: list[int]) -> list[Any]:
    """What an object of the class does, and whether it equals one with other values."""
    one, other = outcome(lambda: cls(*values)), outcome(lambda: cls(*others))
    if isinstance(one, type):
        return [one]
    return [
        repr(one),
        hash(one),
        isinstance(other, type) or one == other,
        one == cls(*values),
        one != 3,
        cls.__match_args__,
        [getattr(one, each.name) for each in fields(one)],
        outcome(lambda: repr(replace(one, a=9))),
        "a" in cls.__match_args__ and outcome(lambda: setattr(one, "a", 1)),
        "a" in cls.__match_args__ and outcome(lambda: delattr(one, "a")),
        copy.copy(one) == one,
        copy.deepcopy(one) == one,
        hasattr(one, "__dict__"),
        is_dataclass(cls),
    ]


@given(bodies(), st.lists(st.integers(0, 2), max_size=4), st.lists(st.integers(0, 2), max_size=4))
def test_each_class_behaves_like_a_standard_frozen_dataclass(
    body: dict[str, Any], values: list[int], others: list[int]
) -> None:
    own, standard = classes(body)
    assert str(inspect.signature(own)).count(",") == str(inspect.signature(standard)).count(",")
    assert behaviour(own, values, others) == behaviour(standard, values, others)


@frozen
class Checked:
    """A class with its own checks, comparison and text."""

    text: str
    size: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        if not self.text:
            raise ValueError("empty")
        object.__setattr__(self, "size", len(self.text))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Checked) and self.text.lower() == other.text.lower()

    def __hash__(self) -> int:
        return hash(self.text.lower())

    def __repr__(self) -> str:
        return f"<{self.text}>"


@frozen
class Derived(Checked):
    """A class that adds a field."""

    more: int = 2


def test_a_class_keeps_its_own_methods_and_is_checked_after_its_creation() -> None:
    assert (repr(Checked("a")), Checked("ab").size) == ("<a>", 2)
    assert {Checked("a"), Checked("A")} == {Checked("a")}
    with pytest.raises(ValueError, match="empty"):
        Checked("")


def test_a_derived_class_has_the_fields_of_both() -> None:
    assert Derived("a", 3).size == 1
    assert Derived("a") == Derived("a", 2)
    assert Derived("a", 3) != Derived("a", 2)


def test_an_object_survives_pickling() -> None:
    again = pickle.loads(pickle.dumps(Derived("a", 3)))
    assert (again, again.more, again.size) == (Derived("a", 3), 3, 1)


def test_methods_are_written_when_they_are_first_used() -> None:
    @frozen
    class Late:
        """A class that nobody has used."""

        a: int = 1

    unwritten = type(Late.__dict__["__init__"])
    assert not inspect.isfunction(unwritten)
    Late()
    assert inspect.isfunction(Late.__dict__["__init__"])
    assert isinstance(Late.__dict__["__eq__"], unwritten)
    assert Late() == Late()
    assert inspect.isfunction(Late.__dict__["__eq__"])


def test_the_signature_of_an_unused_class_shows_its_parameters() -> None:
    @frozen
    class Late:
        """A class that nobody has used."""

        a: int
        b: int = 1
        c: list[int] = field(default_factory=list)

    parameters = inspect.signature(Late).parameters
    assert list(parameters) == ["a", "b", "c"]
    assert (parameters["a"].default, parameters["b"].default) == (inspect.Parameter.empty, 1)
    assert parameters["c"].default is MISSING
