"""Runs the same turn repeatedly, dies one step later each time, and continues as after a crash.

It is a separate program because it forks, which saves each turn's imports. It reads JSON lines with
a new folder and the step of death, and answers each with a line.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from parley import engine
from tests.e2e.machine import Machine, Process, proposals, read
from tests.forks.server import MODULES

ASK = '💬: call note {"text":"one"}\n'


class Fate:
    """Counts a turn's steps, and kills the process at the chosen step."""

    def __init__(self, step: int) -> None:
        self.left = step

    def step(self) -> None:
        self.left -= 1
        if self.left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def over(self, port: Any, names: str) -> Any:
        """The port, with a step before and after each named method."""
        for name in names.split():
            setattr(port, name, self._around(getattr(port, name)))
        return port

    def _around(self, method: Callable[..., Any]) -> Callable[..., Any]:
        if asyncio.iscoroutinefunction(method):

            @functools.wraps(method)
            async def waits(*arguments: Any, **named: Any) -> Any:
                self.step()
                result = await method(*arguments, **named)
                self.step()
                return result

            return waits

        @functools.wraps(method)
        def at_once(*arguments: Any, **named: Any) -> Any:
            self.step()
            result = method(*arguments, **named)
            self.step()
            return result

        return at_once


async def live(machine: Machine, step: int) -> None:
    """Ask, approve and run the turn, unless the process dies first."""
    fate = Fate(step)
    async with machine.start() as process:
        plain = process.ports

        def ports(path: Path) -> engine.Ports:
            found = plain(path)
            fate.over(found.document, "change open_stream append settle")
            fate.over(found.ledger, "record start")
            return replace(found, tools=fate.over(found.tools, "call"))

        process.ports = ports  # type: ignore[method-assign]
        path = machine.folder / "chat.md"
        await process.respond(path)
        await process.choose(path, "ya")


async def go_on(machine: Machine) -> dict[str, Any]:
    """The state after the death, and after the continuation."""
    path = machine.folder / "chat.md"
    errors = [p.message for p in read(path).problems if p.severity == "error"]
    found, ran, kinds = path.read_text(encoding="utf-8"), len(machine.calls()), list[str]()
    async with machine.start() as process:
        kinds.append((await process.respond(path)).kind)
        unasked = len(machine.calls()) - ran
        seen = await engine.observe(process.ports(path), process.app.resolve(None))
        starts = sum(
            seen.situation.approvals.starts(each) for each in proposals(path) if not each.result
        )
        yeses = list[tuple[str, int]]()
        while kinds[-1] == "waiting" and len(yeses) < 3:  # one second more than it may take
            before = len(machine.calls())
            said, kind = await say_yes(process, path)
            kinds.append(kind)
            yeses.append((said, len(machine.calls()) - before))
    return {
        "ran_before": ran,
        "ran_without_a_new_yes": unasked,
        "waits": kinds[0] == "waiting",
        "started": starts,
        "yeses": yeses,
        "end": kinds[-1],
        "errors": errors,
        "kept": found.startswith(ASK.strip()),
        "answered": all(p.result for p in proposals(path)),
    }


async def say_yes(process: Process, path: Path) -> tuple[str, str]:
    """The reply to the call's approval, and the end of the following turn."""
    ports, resolve = process.ports(path), process.app.resolve(None)
    line = (await engine.observe(ports, resolve)).undecided()[0].span.start
    made = await engine.choose(ports, resolve, line, engine.Press("ya", "key"))
    return made.message, (await engine.run_turn(process.ports(path), resolve)).kind


def in_child(work: Callable[[], None]) -> int:
    """The wait status of a forked process that does the work."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    try:
        work()
    except BaseException:  # noqa: BLE001 - the child must never return into its parent's work
        import traceback

        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def die(folder: Path, step: int) -> None:
    """Print the continuation after a death at this step."""
    machine = Machine(folder)
    folder.mkdir()
    machine.chat(ASK)
    died = in_child(lambda: asyncio.run(live(machine, step)))

    def tell() -> None:
        facts = asyncio.run(go_on(machine))
        sys.stdout.write(
            json.dumps({"step": step, "killed": died == signal.SIGKILL, **facts}) + "\n"
        )
        sys.stdout.flush()

    assert in_child(tell) == 0


def main() -> None:
    for name in MODULES:
        import_module(name)
    gc.freeze()
    for line in sys.stdin:
        folder, step = json.loads(line)
        die(Path(folder), step)


if __name__ == "__main__":
    main()
