"""Packages import their names when these are used."""

import sys
from types import ModuleType
from typing import Any

import pytest

import parley
from parley import conversion, engine
from parley.late_names import late_names


@pytest.mark.parametrize("package", [parley, conversion, engine], ids=lambda each: each.__name__)
def test_a_package_has_each_of_its_names_and_no_other(package: Any) -> None:
    homes = [name for names in package._HOMES.values() for name in names]
    assert set(homes) <= set(package.__all__)
    for name in package.__all__:
        assert getattr(package, name) is getattr(package, name)
    with pytest.raises(
        AttributeError, match=rf"^module '{package.__name__}' has no attribute 'x'$"
    ):
        _ = package.x


def test_a_name_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    package = ModuleType("parley.late_package")
    monkeypatch.setitem(sys.modules, package.__name__, package)
    monkeypatch.setitem(sys.modules, f"{package.__name__}.home", parley)
    assert late_names(package.__name__, {"home": ("Session",)})("Session") is parley.Session
    assert package.__dict__["Session"] is parley.Session
