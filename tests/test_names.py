"""Names: values have nouns, since a word such as `found` names an event, and no name has two meanings."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from parley.cli.arguments import COMMANDS

PARLEY = Path(__file__).parent.parent / "python" / "parley"
NO_NAMES = {
    *("asked", "told", "found", "said", "wanted", "given", "shown", "made", "kept", "each"),
    *("heard", "brought", "taken", "held", "written", "spoken", "sent", "got", "done", "called"),
}
LUA = PARLEY.parent.parent / "lua" / "parley"
OF_SEVERAL_CLASSES = {"Decoder"}
"""Class names of several modules: each format's adapter has its own."""
OF_SEVERAL_CONSTANTS = {"T"}
"""Names of type variables."""
ENDS_OF_A_WIRE = {
    *(
        "changes_page",
        "chat",
        "code_queries",
        "completion",
        "context",
        "folds",
        "health",
        "models_page",
        "pages",
        "pictures",
        "queue",
    ),
    *("open_files", "servers_page", "stream", "view"),
    *("dialogs", "finder", "mirror", "running", "sightings"),
    *("anthropic", "openai_chat", "openai_responses"),
}
"""File names in two rooms: `doc/architecture.md` says which two ends each pair is."""
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


def public(node: ast.stmt) -> Iterator[tuple[str, str]]:
    """Each public constant of a statement, with its value as text."""
    targets = node.targets if isinstance(node, ast.Assign) else []
    if isinstance(node, ast.AnnAssign):
        targets = [node.target]
    for target in targets:
        if isinstance(target, ast.Name) and target.id.isupper() and target.id[0] != "_":
            value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
            yield target.id, ast.unparse(value) if value else ""


def statements() -> Iterator[tuple[str, ast.stmt]]:
    """Each module, and each statement at its top level."""
    for module in MODULES:
        for node in ast.parse((PARLEY / module).read_text(encoding="utf-8")).body:
            yield module, node


def test_no_two_modules_have_a_public_class_of_the_same_name() -> None:
    homes = defaultdict[str, list[str]](list)
    for module, node in statements():
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            homes[node.name].append(module)
    several = {name: places for name, places in homes.items() if len(places) > 1}
    assert several.keys() - OF_SEVERAL_CLASSES == set(), several


def test_no_public_constant_has_two_values() -> None:
    homes = defaultdict[str, list[str]](list)
    for module, node in statements():
        for name, _ in public(node):
            homes[name].append(module)
    several = {name: places for name, places in homes.items() if len(places) > 1}
    assert several.keys() - OF_SEVERAL_CONSTANTS == set(), several


def test_no_file_name_is_in_two_rooms_but_at_both_ends_of_a_wire() -> None:
    """A command's module in `cli` has the command's name; two ends are in Python and Lua, or in the
    demo's and the models' wire formats.
    """
    homes = defaultdict[str, list[str]](list)
    for module in MODULES:
        path = Path(module)
        if path.stem not in ("__init__", "__main__") and not is_of_a_command(path):
            homes[path.stem].append(module)
    for file in LUA.glob("*.lua"):
        homes[file.stem].append(f"lua/{file.name}")
    several = {name: places for name, places in homes.items() if len(places) > 1}
    assert several.keys() - ENDS_OF_A_WIRE == set(), several
    assert all(len(several.get(name, ())) <= 2 for name in ENDS_OF_A_WIRE), several


def is_of_a_command(path: Path) -> bool:
    """Whether a module has the name of a command of `parley`."""
    return path.parts[0] == "cli" and path.stem in COMMANDS
