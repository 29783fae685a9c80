"""Runs `parley respond` repeatedly, dies at a different point each time, then runs it once more.

It is a separate program because it forks, which saves each run's imports. It reads JSON lines with
a new folder and the point of death (None to survive), and answers each with a line. The scripted
model's time passes at once, and the document uses the same clock.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import redirect_stdout
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import parley.runtime.app
from parley import cli, engine
from parley.chat.transcript import ToolCall
from parley.mcp.functions import server_of
from parley.models.events import Call, Event, Finished, TextDelta
from parley.models.request import Request
from parley.settings.values import Settings
from parley.tools.server_settings import ServerSettings
from tests import fake_time
from tests.e2e.crash_at_each_step import in_child

WORDS = [[f"{reply}{number} " for number in range(30)] for reply in ("one", "two")]
PACE_S = 0.1
SETTINGS = """
status.llm = false
approval.auto = ["count/note"]
"""
MODULES = (
    *("mcp.server.mcpserver", "mcp.client", "jsonschema", "yaml", "anyio._backends._asyncio"),
    *("parley.cli.arguments", "parley.cli.respond", "parley.settings.load", "parley.mock_server"),
)
AUDITED = frozenset({"open", "os.rename", "os.remove", "tempfile.mkstemp"})
_CONNECT = sqlite3.connect


class Fate:
    """Counts the points in a run: steps of the event loop, SQL statements, file changes.

    At the chosen point, it records the time and kills the process.
    """

    def __init__(self, point: int | None, folder: Path) -> None:
        self.count = 0
        self._point = point
        self._folder = folder
        self._loop = fake_time.FakeTimeLoop()

    def arm(self) -> None:
        """Start counting."""
        asyncio.events.Handle._run = self._before(asyncio.events.Handle._run)  # type: ignore[method-assign]
        os.fsync = self._before(os.fsync)
        sqlite3.connect = self._connect  # type: ignore[assignment]
        sys.addaudithook(self._audit)

    def run(self, work: Any) -> Any:
        """The work's result, in a loop with scripted time."""
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            return runner.run(work)

    def _before(self, step: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any) -> Any:
            self._step()
            return step(*arguments)

        return counted

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in AUDITED:
            self._step()

    def _connect(self, *arguments: Any, **named: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = _CONNECT(*arguments, **named)
        connection.set_trace_callback(lambda _: self._step())
        return connection

    def _step(self) -> None:
        self.count += 1
        if self.count == self._point:
            write(self._folder / "death", f"{self._loop.time()}")
            os.kill(os.getpid(), signal.SIGKILL)


def write(path: Path, line: str) -> None:
    """Add a line to a file that outlives this process."""
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(handle, f"{line}\n".encode())
    os.close(handle)


def lines(path: Path) -> list[str]:
    """The lines in such a file."""
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


class Script:
    """A model that writes words, calls a tool and writes more; it records each word."""

    def __init__(self, folder: Path) -> None:
        self._spoken = folder / "spoken"

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        has_called = any(answer.proposals for answer in request.transcript.exchanges[0].answers)
        for word in WORDS[has_called]:
            write(self._spoken, f"{asyncio.get_running_loop().time()} {word}")
            yield TextDelta(word)
            await asyncio.sleep(PACE_S)
        if not has_called:
            yield Call(ToolCall("call_1", "note", '{"text": "x"}'))
        yield Finished("complete")


class ScriptedApp(parley.runtime.app.App):
    """An app with that model, and one tool that records its calls."""

    def __init__(self, settings: Settings, *arguments: Any, **named: Any) -> None:
        own = settings.with_servers({"count": ServerSettings("count", builtin=True)})
        objects = parley.runtime.app.ProgramObjects({"count": server_of([note])})
        super().__init__(own, *arguments, objects=objects, **named)

    def ports(self, *arguments: Any, **named: Any) -> engine.Ports:
        """A turn's ports, with the scripted model."""
        return replace(super().ports(*arguments, **named), model=Script(Path.cwd()))


async def note(text: str) -> str:
    """Write a note."""
    write(Path("calls"), text)
    return f"noted {text}"


def run(folder: Path, fate: Fate) -> int:
    """The exit code of `parley respond` in this folder."""
    os.chdir(folder)
    os.environ |= {f"XDG_{name}_HOME": str(folder) for name in ("CONFIG", "STATE")}
    asyncio.run = fate.run  # type: ignore[assignment]
    parley.runtime.app.App = ScriptedApp  # type: ignore[misc]
    with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stdout(nowhere):  # noqa: PTH123
        return cli.main(["respond", "--agent", "Demo", "chat.md"])


def respond(folder: Path, point: int | None) -> None:
    """Run `parley respond` in this folder; record its exit code and the number of points."""
    fate = Fate(point, folder)
    fate.arm()
    code = run(folder, fate)
    write(folder / "ends", f"{code} {fate.count}")


def furnish(folder: Path) -> Path:
    """Create the chat in a new folder; return its path."""
    (folder / "parley").mkdir(parents=True)
    (folder / "parley" / "config.toml").write_text(SETTINGS, encoding="utf-8")
    chat = folder / "chat.md"
    chat.write_text("💬: say words\n", encoding="utf-8")
    return chat


def die(folder: Path, point: int | None) -> dict[str, Any]:
    """The state after a death at this point, and after the continuation."""
    chat = furnish(folder)
    status = in_child(lambda: respond(folder, point))
    facts = {
        "point": point,
        "killed": status == signal.SIGKILL,
        "death": float("".join(lines(folder / "death")) or "0"),
        "spoken": [(float(at), word) for at, word in map(str.split, lines(folder / "spoken"))],
        "text": chat.read_text(encoding="utf-8"),
        "calls": len(lines(folder / "calls")),
    }
    if facts["killed"]:
        in_child(lambda: respond(folder, None))
    code, points = map(int, lines(folder / "ends")[0].split())
    after = {
        "text_after": chat.read_text(encoding="utf-8"),
        "calls_after": len(lines(folder / "calls")),
    }
    return facts | after | {"code": code, "points": points}


def main() -> None:
    for name in MODULES:
        import_module(name)
    with TemporaryDirectory() as folder:  # one-time work of a first turn
        furnish(Path(folder))
        run(Path(folder), Fate(None, Path(folder)))
    gc.freeze()
    for line in sys.stdin:
        folder, point = json.loads(line)
        sys.stdout.write(json.dumps(die(Path(folder), point)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
