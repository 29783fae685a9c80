"""The library as type checkers and `help` see it: its names, and the types in its signatures."""

from __future__ import annotations

import inspect
import json
import os
import pydoc
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

import parley
from tests.packages import ECHO

ROOT = Path(__file__).parent.parent

OWN_MODEL = """
from collections.abc import AsyncIterator
from parley import Call, Finished, Provider, ProviderRequest, TextDelta, ToolCall

class Good:
    name = "good"

    def supports_tools(self, model: str) -> bool:
        return "tools" in model

    async def stream(self, request: ProviderRequest) -> AsyncIterator[TextDelta | Call | Finished]:
        yield TextDelta(request.model)
        yield Call(ToolCall("call_1", "price", "{}"))
        yield Finished("complete")

class Bad:
    name = "bad"

    def supports_tools(self, model: str) -> bool:
        return True

    async def stream(self, request: ProviderRequest) -> AsyncIterator[str]:
        yield request.modle  # wrong

good: Provider = Good()
bad: Provider = Bad()  # wrong
end = Finished("done")  # wrong
"""

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
            return str(chunk["usage"]["output"])
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


PYRIGHT = shutil.which("pyright", path=f"{ROOT / '.tools/node_modules/.bin'}:{os.environ['PATH']}")


def errors_by_mypy(folder: Path) -> set[tuple[str, int]]:
    """The errors that mypy finds in a folder's programs: files and lines."""
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--no-pretty", "."]
    environ = {**os.environ, "MYPYPATH": str(ROOT / "python")}
    run = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True)
    assert run.stderr == ""
    places = (text.split(":") for text in run.stdout.splitlines())
    # not in a library
    return {(path, int(line)) for path, line, *_ in places if not Path(path).is_absolute()}


def errors_by_pyright(folder: Path) -> set[tuple[str, int]]:
    """The errors that pyright finds in its strictest mode."""
    if PYRIGHT is None:
        pytest.skip("pyright is not installed: make pyright")
    config = {"extraPaths": [str(ROOT / "python")], "typeCheckingMode": "strict"}
    (folder / "pyrightconfig.json").write_text(json.dumps(config), encoding="utf-8")
    command = [PYRIGHT, "--outputjson", "--pythonpath", sys.executable]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    errors = json.loads(run.stdout)["generalDiagnostics"]
    return {
        (Path(error["file"]).relative_to(folder).as_posix(), error["range"]["start"]["line"] + 1)
        for error in errors
    }


@pytest.mark.guests
@pytest.mark.parametrize("errors_in", [errors_by_mypy, errors_by_pyright])
def test_a_type_checker_finds_users_errors_and_no_others(
    errors_in: Callable[[Path], set[tuple[str, int]]], tmp_path: Path
) -> None:
    programs = {"right.py": RIGHT, "wrong.py": WRONG, "own_model.py": OWN_MODEL}
    programs |= {path.name: path.read_text(encoding="utf-8") for path in ECHO.glob("*/__init__.py")}
    for name, program in programs.items():
        (tmp_path / name).write_text(program, encoding="utf-8")
    assert errors_in(tmp_path) == {
        (name, number)
        for name, program in programs.items()
        for number, line in enumerate(program.splitlines(), 1)
        if line.endswith("# wrong")
    }


def named(hint: Any) -> Iterator[type]:
    """Parley's classes within a type."""
    if inspect.isclass(hint) and hint.__module__.startswith("parley."):
        yield hint
    for part in get_args(hint):
        yield from named(part)


def signatures(value: Any) -> Iterator[Any]:
    """The callables of an exported value, and the tables and values with fields."""
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


def test_a_missing_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="Sesion"):
        getattr(parley, "Sesion")  # noqa: B009 - a type checker knows better


def test_help_shows_every_name_with_its_docstring() -> None:
    text = pydoc.plain(pydoc.render_doc(parley))
    classes = [name for name in parley.__all__ if inspect.isclass(getattr(parley, name))]
    assert [name for name in classes if f"\n    class {name}(" not in text] == []
    assert "Ask, and yield chunks until the answer is complete" in text
    assert all(getattr(parley, name).__doc__ for name in classes)


def test_the_library_page_has_each_argument_of_a_model_error() -> None:
    page = (ROOT / "doc" / "library.md").read_text(encoding="utf-8")
    arguments = inspect.signature(parley.ModelError).parameters
    assert [name for name in arguments if f"\n| `{name}` |" not in page] == []


def test_the_library_page_has_every_name() -> None:
    page = (ROOT / "doc" / "library.md").read_text(encoding="utf-8")
    assert [name for name in parley.__all__ if f"`{name}`" not in page] == []


def test_importing_the_package_imports_none_of_its_rooms() -> None:
    code = (
        "import sys, parley; print(*[name for name in sys.modules if name.startswith('parley.')])"
    )
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    run = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True)
    assert (run.stdout, run.stderr) == ("\n", "")
