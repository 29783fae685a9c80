"""Dataclasses whose methods are written when they are first used.

The standard library compiles six methods for each frozen dataclass when a module is imported. For
300 classes this takes a quarter of Parley's start, and most of the classes are not used in a run.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, fields
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def frozen(cls: type[T]) -> type[T]:
    """Make a class like `dataclass(frozen=True, slots=True)` does.

    Its creation takes a tenth of the time, and that of an object two thirds. Fields that only take
    keywords are not supported, and its base and derived classes are also made by this function.
    """
    made: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    for name, method in _SHARED.items():
        if name not in made.__dict__:
            setattr(made, name, method)
    for name in _WRITERS:
        if made.__dict__.get(name) is None:  # Python sets `__hash__` to None beside an own `__eq__`
            setattr(made, name, _Unwritten(made, name))
    result: type[T] = made
    return result


class _Unwritten:
    """Stands for a method until it is first used, and then writes it.

    `inspect.signature` also uses it, so it sees the real parameters.
    """

    def __init__(self, cls: Any, name: str) -> None:
        self._cls, self._name = cls, name

    def __get__(self, instance: object, owner: type) -> Any:
        if self._cls.__dict__[self._name] is self:
            setattr(self._cls, self._name, _WRITERS[self._name](self._cls))
        return self._cls.__dict__[self._name].__get__(instance, owner)


def _initializer(cls: Any) -> Any:
    scope: dict[str, Any] = {"MISSING": MISSING}
    parameters, body = ["self"], []
    for field in fields(cls):
        name, parameter, value = field.name, field.name, field.name
        scope[f"set_{name}"] = getattr(cls, name).__set__  # the slot's: `__setattr__` refuses
        if field.default_factory is not MISSING:
            scope[f"make_{name}"] = field.default_factory
            parameter, value = f"{name}=MISSING", f"make_{name}() if {name} is MISSING else {name}"
        elif field.default is not MISSING:
            scope[f"default_{name}"] = field.default
            parameter = f"{name}=default_{name}"
        elif not field.init:
            continue  # `__post_init__` sets it
        if field.init:
            parameters.append(parameter)
        else:
            body.append(f"{name} = {parameter.partition('=')[2]}")
        body.append(f"set_{name}(self, {value})")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    return _function(cls, "__init__", parameters, body or ["pass"], scope)


def _equality(cls: Any) -> Any:
    own, other = (_compared(cls, name, hashed=False) for name in ("self", "other"))
    body = [f"return {own} == {other} if other.__class__ is self.__class__ else NotImplemented"]
    return _function(cls, "__eq__", ["self", "other"], body, {})


def _hash(cls: Any) -> Any:
    body = [f"return hash({_compared(cls, 'self', hashed=True)})"]
    return _function(cls, "__hash__", ["self"], body, {})


def _compared(cls: Any, name: str, *, hashed: bool) -> str:
    used = [f for f in fields(cls) if (f.hash if hashed and f.hash is not None else f.compare)]
    return f"({''.join(f'{name}.{field.name}, ' for field in used)})"


def _function(
    cls: Any, name: str, parameters: list[str], body: list[str], scope: dict[str, Any]
) -> Any:
    lines = "".join(f"\n    {line}" for line in body)
    exec(f"def {name}({', '.join(parameters)}):{lines}", scope)  # noqa: S102 only names of fields
    function = scope[name]
    function.__qualname__, function.__module__ = f"{cls.__qualname__}.{name}", cls.__module__
    return function


def _representation(self: Any) -> str:
    shown = (f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _refuse_set(self: Any, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_delete(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _restore(self: Any, state: tuple[None, dict[str, Any]]) -> None:
    """Set the fields of a copied or unpickled object."""
    for name, value in state[1].items():
        object.__setattr__(self, name, value)


_WRITERS: dict[str, Callable[[Any], Any]] = {
    "__init__": _initializer,
    "__eq__": _equality,
    "__hash__": _hash,
}
_SHARED: dict[str, Any] = {
    "__repr__": _representation,
    "__setattr__": _refuse_set,
    "__delattr__": _refuse_delete,
    "__setstate__": _restore,
}
