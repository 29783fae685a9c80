"""Async iterators are closed where they are read; `faulty_providers.py` counts the open ones."""

from __future__ import annotations

import ast
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from parley.iterators import closing

PACKAGE = Path(__file__).parent.parent / "python" / "parley"


async def test_an_iterator_is_closed_when_its_reader_stops() -> None:
    closed = []

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
        finally:
            closed.append(True)

    async def read() -> None:
        async with closing(numbers()) as items:
            async for _ in items:
                raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        await read()
    assert closed == [True]


def _unclosed(tree: ast.AST) -> list[int]:
    """The lines of the loops over an iterator without a name, which nothing can close.

    A comprehension that only collects reads to the end.
    """
    lines = list[int]()
    for node in ast.walk(tree):
        match node:
            case ast.AsyncFor(iter=ast.Name()):
                pass
            case ast.AsyncFor():
                lines.append(node.lineno)
            case (
                ast.ListComp(elt=element, generators=[ast.comprehension() as loop])
                | ast.SetComp(elt=element, generators=[ast.comprehension() as loop])
            ) if loop.is_async and not isinstance(loop.iter, ast.Name):
                if not isinstance(element, ast.Name) or loop.ifs:
                    lines.append(node.lineno)
            case _:
                pass
    return lines


def test_no_loop_leaves_an_iterator_open_when_it_ends_early() -> None:
    loops = {
        path.relative_to(PACKAGE).as_posix(): lines
        for path in PACKAGE.rglob("*.py")
        if (lines := _unclosed(ast.parse(path.read_text())))
    }
    assert loops == {}
