"""Any sequence of requests: nothing outside of the root is read or written, and nothing is read,
written or run that the user did not approve."""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st

from parley.acp.client_request import AgentTerminal, ClientRequest, RefusedRequest
from parley.acp.session_requests import SessionRequests
from parley.policy.approval import CallKey
from parley.runtime.call_previews import announced_base
from parley.runtime.command_terminal import CommandTerminal
from parley.runtime.workspace_client import WorkspaceClient
from parley.tools.client_calls import CLIENT_TOOLS, ApprovedCommand
from parley.tools.file_edits import file_edits
from parley.workspace.boundary import Boundary
from parley.workspace.command_runs import CommandWatch
from parley.workspace.command_tool import CommandTool
from parley.workspace.editor_files import NoEditor
from parley.workspace.planning import plan_of
from parley.workspace.toolbox import Workspace
from tests.workspace.trees import work_tree

PATHS = ["a.txt", "new/b.txt", ".env", "../out.txt", "link/out.txt", ".git/config", "missing"]
TEXTS = ["one\n", "two\n", "a\r\nb\r\n", ""]
COMMANDS = ["make", "rm -rf /"]
DEEP = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=3),
                    lambda inner: st.lists(inner, max_size=2), max_leaves=3)  # fmt: skip

Step = tuple[str, ...] | tuple[str, dict[str, Any]]
STEPS = st.one_of(
    st.tuples(st.just("read"), st.sampled_from(PATHS)),
    st.tuples(st.just("write"), st.sampled_from(PATHS), st.sampled_from(TEXTS)),
    st.tuples(st.just("run"), st.sampled_from(COMMANDS)),
    st.tuples(st.just("approve edit"), st.sampled_from(PATHS[:3]), st.sampled_from(TEXTS)),
    st.tuples(st.just("approve command"), st.sampled_from(COMMANDS)),
    st.tuples(st.sampled_from(["yes", "no", "end", "begin"])),
    st.tuples(
        st.sampled_from(sorted(CLIENT_TOOLS)),
        st.dictionaries(
            st.sampled_from(["path", "content", "line", "command", "args", "env", "terminalId"]),
            DEEP,
        ),
    ),
)


class CommandList:
    """Runs nothing, but knows what would have run."""

    def __init__(self) -> None:
        self.lines = list[str]()

    async def run(self, command: str, *rest: Any) -> tuple[str, str]:
        watch = next(each for each in rest if isinstance(each, CommandWatch))
        self.lines.append(command)
        watch.begun.set()
        watch.ended.set()
        return "", ""


@dataclass
class World:
    """A session, and everything that the user has approved in it."""

    root: Path
    requests: SessionRequests
    client: WorkspaceClient
    commands: CommandList
    is_open: bool = True
    waiting: list[ClientRequest] = field(default_factory=list)
    may_write: set[tuple[Path, str]] = field(default_factory=set)
    may_read: set[Path] = field(default_factory=set)
    may_run: list[str] = field(default_factory=list)

    async def take(self, method: str, params: dict[str, Any]) -> None:
        before, ran = self.files(), len(self.commands.lines)
        made = await self.requests.take(method, params, lambda: self.is_open)
        if isinstance(made, ClientRequest):
            assert self.is_open
            self.waiting.append(made)
            assert (self.files(), len(self.commands.lines)) == (before, ran)
        elif isinstance(made, RefusedRequest):
            assert made.message
        elif "content" in made:
            assert (self.root / params["path"]).resolve() in self.may_read
        self.check(before, ran)

    def check(self, before: dict[Path, bytes], ran: int) -> None:
        for path, content in self.files().items():
            if before.get(path) != content:
                assert (path, content.decode()) in self.may_write
                self.may_read.add(path)
        for line in self.commands.lines[ran:]:
            self.may_run.remove(line)

    def files(self) -> dict[Path, bytes]:
        every = [*self.root.parent.rglob("*"), *self.root.rglob("*")]
        return {each: each.read_bytes() for each in every if each.is_file()}

    async def step(self, step: Any) -> None:  # noqa: C901  one case for each step
        match step:
            case "read", path:
                await self.take("fs/read_text_file", {"path": str(self.root / path)})
            case "write", path, text:
                params = {"path": str(self.root / path), "content": text}
                await self.take("fs/write_text_file", params)
            case "run", line:
                await self.take("terminal/create", {"command": line})
            case "approve edit", path, text:
                await self.approve_edit(self.root / path, text)
            case "approve command", line:
                self.requests.approved.commands.append(ApprovedCommand("1", line))
                self.may_run.append(line)
            case ("yes" | "no" as choice,):
                if self.waiting:
                    await self.decide(self.waiting.pop(0), choice)
            case ("end",):
                self.is_open = False
            case ("begin",):
                self.is_open = True
                self.requests.begin()
                self.may_run.clear()
            case str(method), dict(params):
                await self.take(method, params)

    async def approve_edit(self, path: Path, text: str) -> None:
        known = self.files().get(path)
        before = None if known is None else known.decode()
        diff = {"path": str(path), "oldText": before, "newText": text}
        arguments = json.dumps({"title": "Edit", "diffs": [diff]})
        key = CallKey("1", "coder", "edit", arguments, "", base=announced_base({str(path): before}))
        made = self.client.approved_by(key, nothing)
        self.requests.approved.changes += made
        self.may_write |= {(each.path, each.after) for each in made}

    async def decide(self, request: ClientRequest, choice: str) -> None:
        before, ran = self.files(), len(self.commands.lines)
        if choice == "no":
            request.reject("not now")
            assert (self.files(), len(self.commands.lines)) == (before, ran)
            return
        name, arguments = request.call.name, json.loads(request.call.arguments)
        base = ""
        if name == "write_file":
            edits = file_edits(name, arguments, is_own=True)
            boundary = self.client.work.boundary
            try:
                plan = await plan_of(edits, boundary, NoEditor(), {})
            except Exception:  # noqa: BLE001  such a call is refused
                request.reject()
                return
            base = plan.base
            path = boundary.path(plan.changes[0].place)
            self.may_write.add((path, (plan.changes[0].after or b"").decode()))
        elif name == "read_file":
            self.may_read.add((self.root / arguments["path"]).resolve())
        else:
            self.may_run.append(arguments["command"])
        key = CallKey("2", "workspace", name, request.call.arguments, "", base=base)
        made = await self.client.serve(request, key, lambda *_: None)
        if isinstance(made, CommandTerminal):
            terminal = cast(AgentTerminal, made)
            self.requests.answer_with(request, terminal, is_open=self.is_open)
        assert request.answer.done()
        self.check(before, ran)


async def nothing(_: Path) -> None:
    """Nothing to note."""


@contextmanager
def world() -> Iterator[World]:
    folder = Path(tempfile.mkdtemp()).resolve()
    try:
        root = work_tree(folder / "root", {"a.txt": "one\n", ".env": "K=1\n"})
        (folder / "out.txt").write_text("secret\n")
        (root / "link").symlink_to(folder)
        commands = CommandList()
        work = Workspace(Boundary(root), command=cast(CommandTool, commands))
        names = frozenset(CLIENT_TOOLS.values())
        client = WorkspaceClient(work, "chat", names, 10_000)
        numbers = iter(range(10**6))
        process = cast(Any, SimpleNamespace(root=root, name="scripted"))
        requests = SessionRequests(process, lambda: f"x.{next(numbers)}")
        requests.client = client
        yield World(root, requests, client, commands)
    finally:
        shutil.rmtree(folder)


@settings(max_examples=60, deadline=None)
@given(st.lists(STEPS, max_size=12))
def test_nothing_happens_that_was_not_approved(steps: list[Any]) -> None:
    async def run() -> None:
        with world() as session:
            for step in steps:
                await session.step(step)

    asyncio.run(run())


async def test_a_request_that_waits_beyond_the_end_of_the_turn_is_refused() -> None:
    with world() as session:
        path = session.root / "a.txt"
        await session.approve_edit(path, "two\n")
        params = {"path": str(path), "content": "two\n"}
        async with session.requests._order:  # an earlier request takes long
            writing = asyncio.ensure_future(
                session.requests.take("fs/write_text_file", params, lambda: session.is_open)
            )
            await asyncio.sleep(0)
            session.is_open = False
        assert isinstance(await writing, RefusedRequest)
        assert path.read_text() == "one\n"
