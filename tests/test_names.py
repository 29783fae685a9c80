"""Values have nouns as names: a word such as `found` names an event, not a value."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PARLEY = Path(__file__).parent.parent / "python" / "parley"
NO_NAMES = {
    *("asked", "told", "found", "said", "wanted", "given", "shown", "made", "kept", "each"),
    *("heard", "brought", "taken", "held", "written", "spoken", "sent", "got", "done", "called"),
}
MODULES = sorted(path.relative_to(PARLEY).as_posix() for path in PARLEY.rglob("*.py"))


def names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and text of each name that other code reads: in modules, classes, attributes,
    parameters.
    """
    yield from _of_body(tree.body)
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(body=body):
                yield from _of_body(body)
            case ast.arg(arg=name, lineno=line):
                yield line, name
            case ast.Attribute(attr=name, lineno=line, ctx=ast.Store()):
                yield line, name


def _of_body(body: list[ast.stmt]) -> Iterator[tuple[int, str]]:
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.lineno, node.name
            case ast.Assign() | ast.AnnAssign():
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                places = (place for target in targets for place in ast.walk(target))
                yield from (
                    (place.lineno, place.id) for place in places if isinstance(place, ast.Name)
                )


def no_names(source: str) -> list[tuple[int, str]]:
    """Line and text of each name in a module that says nothing about its value."""
    return sorted(
        {(n, name) for n, name in names(ast.parse(source)) if name.strip("_").lower() in NO_NAMES}
    )


def test_names_describe_values() -> None:
    sources = {module: (PARLEY / module).read_text(encoding="utf-8") for module in MODULES}
    assert [
        f"{m}:{line} {name}" for m, text in sources.items() for line, name in no_names(text)
    ] == []


def test_every_kind_of_name_is_checked() -> None:
    source = """
FOUND = said = 1
told: int = 1
def given(asked, *made, wanted=1, **kept): each = lambda shown: (self.held, found := 1)
async def _heard(): pass
class Sent:
    got: int
    def taken(self): self._brought = 1
"""
    assert no_names(source) == [
        (2, "FOUND"),
        (2, "said"),
        (3, "told"),
        (4, "asked"),
        (4, "given"),
        (4, "kept"),
        (4, "made"),
        (4, "shown"),
        (4, "wanted"),
        (5, "_heard"),
        (6, "Sent"),
        (7, "got"),
        (8, "_brought"),
        (8, "taken"),
    ]
