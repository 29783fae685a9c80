"""Runs chats with an agent of another program, and kills this process or the agent at given steps.

Usage: `python -m tests.acp.killed_turns FOLDER host|agent [STEP…]`. Without steps, prints the number
of steps of an undisturbed run. A step is one of the event loop, of the ledger or of a file. After
each death, another process reopens the chat and checks the law.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from parley.chat.reader import parse
from parley.engine.choices import Press, choose
from parley.storage.chat_file import FileDocument
from tests.acp.agent_runs import AgentRun
from tests.child_processes import until
from tests.ledgers import close_all
from tests.runtime.test_chat_agents import TEXT, AgentDesk

_AT_ONCE = 3
"""The number of processes that run at once."""
_EVENTS = frozenset({"open", "os.rename", "os.remove"})
_MOST_TURNS = 12
_YES = '"optionId": "yes"', '"optionId":"yes"'


class MortalDesk(AgentDesk):
    """A user with a chat file; `pressed` has each yes, written before it is given."""

    def __init__(self, folder: Path) -> None:
        is_new = not (folder / "agent").exists()
        if is_new:
            super().__init__(folder, [[]])
            steps: list[Any] = [{"say": "Look:"}, self.edit(), {"say": "Done."}]
            self.run = AgentRun(folder / "agent", {"prompts": [steps]})
            Path(self.chat).write_text("💬: Make it loud.\n", encoding="utf-8")
        else:
            self.root, self.folder = folder / "project", folder
            self.chat, self.settings = str(folder / "chat.md"), {}
            self.news, self.statuses = [], []
            self.run = _known_run(folder / "agent")
            self.app = self.restart()
        self.document = FileDocument(Path(self.chat))

    async def decide(self, key: Any) -> None:
        """Press a key on the first waiting call, again if it only warns."""
        if key == "ya":
            with (self.folder / "pressed").open("a") as file:
                file.write("ya\n")
        for _ in range(3):
            call = next(p for p in self.calls if p.undecided)
            ports, resolve = self.ports(), self.app.resolve(None)
            if (await choose(ports, resolve, call.span.start, Press(key, "key"))).decided:
                return
        raise AssertionError(self.text)

    async def work(self, keys: Iterator[Any]) -> None:
        """Continue the chat to the end of its answer; each waiting call gets the next key."""
        for _ in range(_MOST_TURNS):
            end = await self.respond()
            if end.kind in ("complete", "answered", "nothing"):
                return
            if end.kind == "waiting":
                await self.decide(next(keys, "yn"))
        raise AssertionError(self.text)

    def ask(self, question: str) -> None:
        """Write the next question into the file."""
        text = self.text.rstrip().removesuffix("💬:").rstrip()
        Path(self.chat).write_text(f"{text}\n\n💬: {question}\n", encoding="utf-8")
        self.document = FileDocument(Path(self.chat))

    @property
    def presses(self) -> int:
        """How often the user has approved a call."""
        file = self.folder / "pressed"
        return len(file.read_text().splitlines()) if file.exists() else 0

    def check(self) -> None:
        """The law: the file is readable, and nothing runs that was not approved."""
        assert yeses(self.run.log) <= self.presses, (yeses(self.run.log), self.presses)
        assert self.file() == TEXT or yeses(self.run.log), self.file()
        problems = [p for p in parse(self.text).problems if p.severity == "error"]
        assert not problems, problems


def yeses(log: Path) -> int:
    """How often the agent with this log was told to run a call."""
    lines = log.read_text(encoding="utf-8").splitlines()
    return sum(any(each in line for each in _YES) for line in lines)


def is_running(log: Path) -> bool:
    """Whether an agent with this log runs."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = path.read_bytes().split(b"\0")
            if str(log).encode() in words and b"-c" not in words:
                return True
    return False


def _known_run(folder: Path) -> AgentRun:
    """The agent that a folder has, with its log."""
    made = object.__new__(AgentRun)
    made.folder, made.script = folder, {}
    made.environ = {"HOME": str(folder), "XDG_STATE_HOME": str(folder / "state")}
    return made


class Fate:
    """Counts steps, and strikes at one of them, or as soon after it as there is someone to strike."""

    def __init__(self, step: int | None, strike: Callable[[], bool]) -> None:
        self.count = 0
        self._step, self._strike, self._is_over = step, strike, False

    def watch(self, desk: MortalDesk) -> None:
        """Count from now on."""
        run = asyncio.events.Handle._run

        def counted(handle: Any) -> None:
            self._take()
            run(handle)

        asyncio.events.Handle._run = counted  # type: ignore[method-assign, assignment]
        sys.addaudithook(lambda event, _: self._take() if event in _EVENTS else None)
        with desk.app._ledger_file().transaction() as db:
            db.set_trace_callback(lambda _: self._take())

    def stop(self) -> None:
        """Count no more."""
        self._is_over = True

    def _take(self) -> None:
        if self._is_over:
            return
        self.count += 1
        if self._step is not None and self.count >= self._step:
            self._is_over = self._strike()


async def live(folder: Path, who: str, step: int | None) -> int:
    """Ask two questions, approve the first call and decline the second; returns the steps."""
    desk = MortalDesk(folder)

    def strike() -> bool:
        if who == "host":
            os.kill(os.getpid(), signal.SIGKILL)
        found = [each._process for each in desk.app.agent_processes._processes.values()]
        for each in filter(None, found):
            with suppress(ProcessLookupError):
                os.killpg(each.pid, signal.SIGKILL)
        return any(found)

    fate = Fate(step, strike)
    fate.watch(desk)
    keys = iter(["ya"])
    await desk.work(keys)
    desk.ask("And now?")
    await desk.work(keys)
    fate.stop()
    desk.check()
    await desk.app.close()
    return fate.count


async def reopen(folder: Path) -> None:
    """Check the chat that is left, continue it without a yes, and ask another question."""
    log = folder / "agent" / "log"
    await until(lambda: not is_running(log))
    desk = MortalDesk(folder)
    desk.check()
    before = yeses(desk.run.log)
    await desk.work(iter(()))
    desk.ask("Still there?")
    await desk.work(iter(()))
    assert desk.text.count("Done.") >= 1, desk.text
    assert yeses(desk.run.log) == before, "a yes was given without the user"
    desk.check()
    await desk.app.close()
    await until(lambda: not is_running(log))


def main(folder: Path, who: str, steps: list[int]) -> int:
    """Run a life and a life after it for each step, in new processes; returns the failures."""
    import_module("acp.connection")
    if not steps:
        print(asyncio.run(live(folder / "all", who, None)))
        return 0
    failures = 0
    for first in range(0, len(steps), _AT_ONCE):
        now = {step: folder / f"{who}{step}" for step in steps[first : first + _AT_ONCE]}
        for place in now.values():
            place.mkdir()
        lives = {step: _start(live(place, who, step)) for step, place in now.items()}
        struck = {0, signal.SIGKILL} if who == "host" else {0}
        for step, child in lives.items():
            _, status = os.waitpid(child, 0)
            ended = os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
            failures += _failed(who, step, "life", ended not in struck)
        after = {step: _start(reopen(place)) for step, place in now.items()}
        for step, child in after.items():
            failures += _failed(who, step, "reopened", os.waitpid(child, 0)[1] != 0)
    return failures


def _failed(who: str, step: int, what: str, is_so: bool) -> bool:
    if is_so:
        print(f"{who} killed at step {step}: {what}", file=sys.stderr)
    return is_so


def _start(work: Any) -> int:
    """Start a process that does this work; returns its id."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            asyncio.run(work)
            code = 0
        except BaseException:  # noqa: BLE001  the parent reports it
            traceback.print_exc()
        finally:
            close_all()
            os._exit(code)
    work.close()
    return child


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], [int(word) for word in sys.argv[3:]]) != 0)
