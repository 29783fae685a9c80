"""Compares the JSON kinds in a body with a description, and names every misfit's path.

A description is `str`, `int`, `float`, `bool` or `dict`, `{field: description}`, `[description]`
for arrays, or a tuple of these for a choice. Fields that it does not name, absent fields and null
pass: rules check those. It runs first, so that rules may rely on the kinds.
"""

from collections.abc import Callable, Iterator
from typing import Any

Path = tuple[str | int, ...]
_NOUNS = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    dict: "object",
    list: "array",
}


def misfits(value: Any, shape: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """The path and expected kind of every part of `value` that has another kind."""
    match shape:
        case tuple():
            fitting = [choice for choice in shape if _is(value, choice)]
            if fitting:
                yield from misfits(value, fitting[0], path)
            else:
                yield path, " or ".join(_noun(choice) for choice in shape)
        case _ if not _is(value, shape):
            yield path, _noun(shape)
        case dict():
            for field, inner in shape.items():
                if value.get(field) is not None:
                    yield from misfits(value[field], inner, (*path, field))
        case [inner]:
            for index, element in enumerate(value):
                yield from misfits(element, inner, (*path, index))
        case _:
            return


def dotted(path: Path) -> str:
    """`messages.0.content`, as Anthropic writes it."""
    return ".".join(map(str, path))


def bracketed(path: Path) -> str:
    """`messages[0].content`, as OpenAI writes it."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(
        "."
    )


def kinds_rule(shape: Any, words: Callable[[Path, str], str]) -> Callable[[Any], Iterator[str]]:
    """A rule that reports every misfit with `words`."""
    return lambda body: (words(path, noun) for path, noun in misfits(body, shape))


def _kind(shape: Any) -> type:
    return shape if isinstance(shape, type) else type(shape)


def _noun(shape: Any) -> str:
    return _NOUNS[_kind(shape)]


def _is(value: Any, shape: Any) -> bool:
    kind = _kind(shape)
    if kind in (int, float):
        return isinstance(value, int | kind) and not isinstance(value, bool)
    return isinstance(value, kind)
