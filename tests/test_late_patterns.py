"""Expressions that are compiled late match like others, and all of Parley's are valid."""

from __future__ import annotations

import pkgutil
import re
from importlib import import_module

import pytest
from hypothesis import given
from hypothesis import strategies as st

import parley
from parley import late_patterns
from parley.late_patterns import late_pattern

SOURCE, FLAGS = r"(?P<word>[a-c]+)|(\s)", re.IGNORECASE


@given(st.text("aBc d"))
def test_a_late_pattern_matches_like_a_compiled_one(text: str) -> None:
    late, usual = late_pattern(SOURCE, FLAGS), re.compile(SOURCE, FLAGS)
    for _ in range(2):
        assert late.findall(text) == usual.findall(text)
        assert late.sub("-", text) == usual.sub("-", text)
        assert bool(late.fullmatch(text)) == bool(usual.fullmatch(text))
    assert (late.pattern, late.flags, late.groups) == (usual.pattern, usual.flags, usual.groups)


def test_a_pattern_is_compiled_when_it_is_first_used() -> None:
    broken = late_pattern("(")
    assert broken.pattern == "("
    with pytest.raises(re.error, match="unterminated"):
        broken.match("")
    assert not hasattr(late_pattern("a"), "nothing")


def test_each_pattern_of_parley_is_valid() -> None:
    names = (each.name for each in pkgutil.walk_packages(parley.__path__, "parley."))
    modules = [import_module(name) for name in names if not name.endswith("__main__")]
    found = [
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, late_patterns._LatePattern)
    ]
    assert len(found) > 150
    assert all(pattern.flags >= 0 for pattern in found)
