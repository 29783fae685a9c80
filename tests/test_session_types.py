"""The library as its users' type checkers and `help` see it: its names, and the types of their signatures."""

from __future__ import annotations

import inspect
import os
import pydoc
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

import parley

ROOT = Path(__file__).parent.parent

RIGHT = """
from mcp.server import MCPServer
from parley import Chunk, Decision, Proposal, Session

def text_of(chunk: Chunk) -> str:
    match chunk["type"]:
        case "content" | "thinking":
            return chunk["content"]
        case "tool_result" if chunk["is_error"]:
            return chunk["id"]
        case "error":
            return chunk["error"]
        case "usage":
            return str(chunk["usage"].output)
        case _:
            return ""

def price(symbol: str) -> int:
    return len(symbol)

async def approve(call: Proposal) -> Decision:
    return call.call.name == "web_search" or (False, "not this one")

async def main() -> None:
    async with Session({"max_tool_calls": 3}, agent="Demo", approve=approve) as session:
        async for chunk in session.send_message_stream("hello"):
            print(text_of(chunk))
        answer: str = await session.process_message("hello")
        print(answer, session.usage.input, session.calls_left)
    with Session(approve=lambda _: True, tools=[price], servers={"own": MCPServer("own")}) as session:
        print(session.ask("hello").upper())
"""

WRONG = """
from parley import Proposal, Session, Settings

def approve(call: Proposal) -> int:
    return 1

async def main() -> None:
    session = Session(Settings(), approve=approve)  # wrong
    session.sned_message_stream("hello")  # wrong
    answer: int = await session.process_message("hello")  # wrong
    async for chunk in session.send_message_stream("hello"):
        print(answer, chunk["tpye"])  # wrong
"""


def lines_with_errors(folder: Path, program: str) -> list[int]:
    """The lines of a program in which a strict type checker finds errors."""
    (folder / "program.py").write_text(program, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--no-pretty", "program.py"]
    environ = {**os.environ, "MYPYPATH": str(ROOT / "python")}
    run = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True)
    assert run.stderr == ""
    return sorted({int(line.split(":")[1]) for line in run.stdout.splitlines()})


@pytest.mark.parametrize("program", [RIGHT, WRONG], ids=["right", "wrong"])
def test_a_type_checker_finds_the_errors_of_a_users_program_and_no_others(
    program: str, tmp_path: Path
) -> None:
    lines = program.splitlines()
    wrong = [number for number, line in enumerate(lines, 1) if line.endswith("# wrong")]
    assert lines_with_errors(tmp_path, program) == wrong


def named(hint: Any) -> Iterator[type]:
    """The classes of Parley's that a type is made of."""
    if inspect.isclass(hint) and hint.__module__.startswith("parley."):
        yield hint
    for part in get_args(hint):
        yield from named(part)


def signatures(value: Any) -> Iterator[Any]:
    """What a user can call of an exported value, and the tables and values that have fields."""
    if not inspect.isclass(value):
        return
    if is_dataclass(value) or hasattr(value, "__total__"):
        yield value
    for name, member in vars(value).items():
        if not name.startswith("_") or name == "__init__":
            yield from filter(None, [member.fget if isinstance(member, property) else member])


def test_every_type_that_a_signature_names_is_exported() -> None:
    exported = {getattr(parley, name) for name in parley.__all__ if name != "__version__"}
    hints = [
        hint
        for value in exported
        for signature in signatures(value)
        if inspect.isfunction(signature) or inspect.isclass(signature)
        for hint in get_type_hints(signature, vars(sys.modules[signature.__module__])).values()
    ]
    missing = {each.__qualname__ for hint in hints for each in named(hint)} - {
        value.__qualname__ for value in exported if inspect.isclass(value)
    }
    assert missing == set()


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="Sesion"):
        getattr(parley, "Sesion")  # noqa: B009 - a type checker knows better


def test_help_shows_every_name_with_its_text() -> None:
    text = pydoc.plain(pydoc.render_doc(parley))
    classes = [name for name in parley.__all__ if inspect.isclass(getattr(parley, name))]
    assert [name for name in classes if f"\n    class {name}(" not in text] == []
    assert "Ask, and yield what happens until the answer is complete" in text
    assert all(getattr(parley, name).__doc__ for name in classes)


def test_the_page_on_the_library_has_every_name() -> None:
    page = (ROOT / "doc" / "library.md").read_text(encoding="utf-8")
    assert [name for name in parley.__all__ if f"`{name}`" not in page] == []


def test_importing_the_package_imports_none_of_its_rooms() -> None:
    code = "import sys, parley; print(*[name for name in sys.modules if name.startswith('parley.')])"
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    run = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True)
    assert (run.stdout, run.stderr) == ("\n", "")
