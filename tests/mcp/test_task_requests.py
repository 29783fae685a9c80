"""Calls that run as tasks on their servers, in both forms: begun, polled, answered, cancelled."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from parley.errors import PendingError
from parley.mcp.servers import Servers
from parley.tools.results import Outcome
from parley.tools.server_settings import ServerSettings
from parley.tools.tasks import TaskHandle
from tests.mcp.forms import Form
from tests.mcp.task_server import TaskServer, http_server
from tests.mcp_servers import only, servers_of, tool_of, until

SERVER = str(Path(__file__).with_name("task_server.py"))
SHAPES = pytest.mark.parametrize("newest", [False, True], ids=["2025-11-25", "2026-07-28"])
RAN = "The call was started as a task on MCP server 'web': "


@contextmanager
def serving(*, newest: bool, **more: Any) -> Iterator[tuple[TaskServer, str]]:
    """A server over HTTP, and its URL."""
    tasks = TaskServer(newest=newest, **more)
    with http_server(tasks) as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        try:
            yield tasks, f"http://127.0.0.1:{server.server_port}/mcp"
        finally:
            server.shutdown()
            thread.join()


class Began(list[str]):
    """The ids of tasks that began."""

    async def note(self, task_id: str) -> None:
        self.append(task_id)

    def handle(self, task_id: str = "") -> TaskHandle:
        return TaskHandle(task_id, self.note)


async def dug(
    servers: Servers, began: Began, tool: str = "dig", task: str = "", **arguments: Any
) -> Outcome:
    return await servers.call(await tool_of(servers, tool), arguments, began.handle(task))


@SHAPES
async def test_a_task_is_polled_until_its_result_exists(newest: bool) -> None:
    began, heard = Began(), list[str | None]()
    with serving(newest=newest) as (tasks, url):
        async with servers_of(ServerSettings("web", url=url)) as servers:
            assert only(servers).error == ""
            tool = await tool_of(servers, "dig")
            outcome = await servers.call(
                tool, {"polls": 3}, began.handle(), progress=lambda *parts: heard.append(parts[2])
            )
            assert outcome == Outcome("ok", "dug")
            assert began == ["task-1"]
            assert heard == ["step 0", "step 1", "step 2"]
            assert tasks.methods.count("tasks/get") == 3
            assert (await dug(servers, began, "look")) == Outcome("ok", "at once")
            assert (await dug(servers, began, "sift")).text == "dug"  # it outlives Neovim there
            pictured = await dug(servers, began, end="picture")
            assert (len(pictured.pictures), "dug" in pictured.text, "odd" in pictured.text) == (
                1,
                True,
                True,
            )
            assert began == ["task-1", "task-2", "task-3"]
            # A task that began earlier, for a client that has since disconnected.
            assert await dug(servers, began, task="task-2") == Outcome("ok", "dug")
            assert len(began) == 3


async def test_at_a_local_server_calls_run_as_tasks_only_if_they_must() -> None:
    began = Began()
    async with servers_of(ServerSettings("near", sys.executable, (SERVER,))) as servers:
        assert (await dug(servers, began, "sift")).text == "at once"
        assert (await dug(servers, began, "dig")).text == "dug"
        assert began == ["task-1"]
        servers.restart("near")  # its tasks end with it
        lost = await dug(servers, began, task="task-1")
        assert lost.status == "error"
        assert "Task not found: task-1. The call may have run" in lost.text


async def test_a_tool_that_must_run_as_a_task_is_dropped_if_the_server_has_no_tasks() -> None:
    with serving(newest=False, runs_tasks=False) as (_, url):
        async with servers_of(ServerSettings("web", url=url)) as servers:
            assert (await servers.catalogue()).names() == ("look", "sift")
            assert (await dug(servers, Began(), "sift")).text == "at once"
            assert "run only as tasks" in only(servers).error


@SHAPES
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"end": "failed"}, "it failed: the shovel broke"),
        ({"end": "cancelled"}, "its server cancelled it: step 2"),
        (
            {"end": "gone", "polls": 9},
            "its server no longer knows the task: Task has expired. The call may have run",
        ),
        ({"end": "stranger"}, "its server sent an invalid task state: it is another task"),
        (
            {"id": "x" * 1_000_000},
            "its server returned an invalid task: its id is 1.0 MB long. The call may have run",
        ),
        (
            {"id": ""},
            "its server returned an invalid task: it has no id, or no status. The call may have run",
        ),
    ],
)
async def test_a_failed_task_is_an_error_that_says_so(
    newest: bool, arguments: dict[str, Any], text: str
) -> None:
    with serving(newest=newest) as (_, url):
        async with servers_of(ServerSettings("web", url=url)) as servers:
            outcome = await dug(servers, Began(), **arguments)
            assert outcome.status == "error"
            assert outcome.text.startswith(RAN)
            assert text in outcome.text


async def test_the_result_of_another_task_is_refused() -> None:
    with serving(newest=False) as (_, url):
        async with servers_of(ServerSettings("web", url=url)) as servers:
            outcome = await dug(servers, Began(), end="other")
            assert outcome == Outcome(
                "error", f"{RAN}its server returned the result of another task"
            )


@SHAPES
async def test_the_message_of_a_task_is_one_visible_line(newest: bool) -> None:
    says = "a\x00\x1b[2J\u202e\n" + "x" * 1_000_000
    with serving(newest=newest) as (_, url):
        async with servers_of(ServerSettings("web", url=url)) as servers:
            outcome = await dug(servers, Began(), end="cancelled", says=says)
            assert outcome.text.startswith(rf"{RAN}its server cancelled it: a\x00\x1b[2J\u202e xxx")
            assert len(outcome.text) < 1_000


@SHAPES
async def test_an_odd_id_does_no_harm(newest: bool) -> None:
    with serving(newest=newest) as (_, url):
        async with servers_of(ServerSettings("web", url=url)) as servers:
            began = Began()
            assert await dug(servers, began, id="a\x1b[2J\u202eb\nc") == Outcome("ok", "dug")
            assert began == ["a\x1b[2J\u202eb\nc"]


@SHAPES
async def test_a_silent_task_is_left_to_be_collected(newest: bool) -> None:
    with serving(newest=newest) as (tasks, url):
        async with servers_of(ServerSettings("web", url=url, timeout_s=0.5)) as servers:
            with pytest.raises(
                PendingError, match=r"did not answer within 0.5 s\. Its result will be collected"
            ):
                await dug(servers, Began(), polls=1, end="paused")
            assert "tasks/cancel" not in tasks.methods


@SHAPES
async def test_a_server_that_is_gone_leaves_its_task_to_be_collected(newest: bool) -> None:
    with serving(newest=newest) as (tasks, url):
        async with servers_of(ServerSettings("web", url=url)) as servers:
            began = Began()
            call = asyncio.create_task(dug(servers, began, polls=0))
            await until(lambda: tasks.methods.count("tasks/get") > 1)
            tasks.answer = lambda _: 1 / 0  # type: ignore[assignment,return-value]
            with pytest.raises(
                PendingError, match="Its result will be collected when the turn continues"
            ):
                await call


@pytest.mark.parametrize("collects", [False, True])
async def test_a_task_in_an_ended_session_is_polled_in_a_new_one(collects: bool) -> None:
    with serving(newest=False) as (tasks, url):
        tasks.session = "first"
        async with servers_of(ServerSettings("web", url=url)) as servers:
            began = Began()
            call = asyncio.create_task(dug(servers, began, polls=0))
            await until(lambda: tasks.methods.count("tasks/get") > 1)
            if collects:
                servers.restart("web")
                with pytest.raises(PendingError):
                    await call
                await servers.catalogue()
            tasks.tasks["task-1"]["polls"] = tasks.tasks["task-1"]["asked"] + 4
            before, tasks.session = tasks.methods.count("initialize"), "second"
            outcome = await (dug(servers, began, task="task-1") if collects else call)
            assert (outcome, tasks.methods.count("initialize")) == (
                Outcome("ok", "dug"),
                before + 1,
            )


@SHAPES
async def test_a_server_that_reports_no_task_state_is_polled_again_then_later(newest: bool) -> None:
    why = r"whose state its server does not report: database is locked\. "
    with serving(newest=newest) as (_, url):
        async with servers_of(ServerSettings("web", url=url)) as servers:
            began = Began()
            assert await dug(servers, began, polls=4, locked=[1]) == Outcome("ok", "dug")
            with pytest.raises(PendingError, match=f"{why}Its result will be collected"):
                await dug(servers, began, polls=4, locked=[1, 2])
            assert await dug(servers, began, task="task-2") == Outcome("ok", "dug")


@SHAPES
async def test_a_call_without_a_waiter_is_cancelled_at_its_server(newest: bool) -> None:
    with serving(newest=newest) as (tasks, url):
        async with servers_of(ServerSettings("web", url=url)) as servers:
            began = Began()
            call = asyncio.create_task(dug(servers, began, polls=0))
            await until(lambda: began)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert tasks.tasks["task-1"]["status"] == "cancelled"
            left = asyncio.create_task(dug(servers, began, polls=0))
            await until(lambda: len(began) == 2)
        with pytest.raises(PendingError):
            await left
        assert tasks.methods.count("tasks/cancel") == 1  # closing the servers cancels nothing


@pytest.mark.parametrize(
    ("ask", "text"),
    [
        ("junk", f"{RAN}the server sent an unknown request"),
        ("sample", f"{RAN}its request was not answered: Sampling not supported"),
        ("colour", 'dug {"colour": {"action": "cancel"}}'),
    ],
)
async def test_an_unanswerable_request_of_a_task_is_not_answered(ask: str, text: str) -> None:
    with serving(newest=True) as (_, url):
        async with servers_of(ServerSettings("web", url=url)) as servers:
            assert (await dug(servers, Began(), ask=ask, polls=4)).text == text


async def test_a_task_that_ends_without_a_result_says_so() -> None:
    with serving(newest=True) as (tasks, url):
        tasks.outcome = lambda _: None  # type: ignore[method-assign,assignment,return-value]
        async with servers_of(ServerSettings("web", url=url)) as servers:
            outcome = await dug(servers, Began())
            assert outcome == Outcome("error", f"{RAN}it ended without a result: step 2")


@pytest.mark.parametrize("answer", [{"colour": "red"}, "decline"])
async def test_a_request_of_a_task_is_asked_like_any_other(answer: Any) -> None:
    accepted = (
        {"action": "accept", "content": answer} if isinstance(answer, dict) else {"action": answer}
    )
    texts = set[str]()
    form = Form(answer)
    near = ServerSettings("near", sys.executable, (SERVER,))
    async with servers_of(near, elicitor=form) as servers:
        texts.add((await dug(servers, Began(), ask=True, polls=4)).text)
    with serving(newest=True) as (_, url):
        async with servers_of(ServerSettings("web", url=url), elicitor=form) as servers:
            texts.add((await dug(servers, Began(), ask=True, polls=4)).text)
    assert form.requests == [(name, "Which colour?", ["colour"]) for name in ("near", "web")]
    words = [str(part) for part in accepted.values() if isinstance(part, str)]
    assert len(texts) == 2
    assert all(word in text for word in words for text in texts)


# --- Servers that know a task in its own session only ---------------------------------------------


@contextmanager
def in_sessions() -> Iterator[tuple[TaskServer, str]]:
    """A server whose sessions have their own tasks, like the protocol project's server."""
    with serving(newest=False) as (tasks, url):
        tasks.sessions = {}
        yield tasks, url


def process(url: str, state: Path) -> AbstractAsyncContextManager[Servers]:
    """A process with this server in its settings."""
    return servers_of(ServerSettings("web", url=url), environ={"XDG_STATE_HOME": str(state)})


async def begun(servers: Servers, tasks: TaskServer) -> asyncio.Task[Outcome]:
    """A call that runs as an endless task."""
    call = asyncio.create_task(dug(servers, Began(), polls=0))
    await until(lambda: any(method.endswith("tasks/get") for method in tasks.methods))
    return call


def let_end(tasks: TaskServer, session: str) -> None:
    """Let a session's task end soon."""
    assert tasks.sessions is not None
    task = tasks.sessions[session].tasks["task-1"]
    task["polls"] = task["asked"] + 1


async def test_a_task_is_collected_in_its_own_session_by_another_process(tmp_path: Path) -> None:
    with in_sessions() as (tasks, url):
        # The first process never polls its task, nor ends its session: it is as good as killed.
        tasks.pause_ms, began = 3_600_000, Began()
        async with process(url, tmp_path) as killed:
            call = asyncio.create_task(dug(killed, began))
            await until(lambda: began == ["task-1"])
            tasks.pause_ms = 50
            let_end(tasks, "session-1")
            async with process(url, tmp_path) as servers:
                assert await dug(servers, Began(), task="task-1") == Outcome("ok", "dug")
                assert (await dug(servers, Began())).text == "dug"  # its own task
                assert tasks.sessions is not None
                assert [len(each.tasks) for each in tasks.sessions.values()] == [1, 1]
        with pytest.raises(PendingError):
            await call


async def test_a_session_with_a_running_task_stays_open_and_others_end(tmp_path: Path) -> None:
    with in_sessions() as (tasks, url):
        async with process(url, tmp_path) as servers:
            call = await begun(servers, tasks)
        with pytest.raises(PendingError):
            await call
        assert tasks.ended == []
        let_end(tasks, "session-1")
        async with process(url, tmp_path) as servers:
            assert await dug(servers, Began(), task="task-1") == Outcome("ok", "dug")
            assert (await dug(servers, Began())).text == "dug"
        assert tasks.ended == ["session-2"]


async def test_a_task_whose_session_is_gone_is_polled_in_the_current_session(
    tmp_path: Path,
) -> None:
    with in_sessions() as (tasks, url):
        async with process(url, tmp_path) as servers:
            call = await begun(servers, tasks)
        with pytest.raises(PendingError):
            await call
        assert tasks.sessions is not None
        tasks.sessions.clear()
        async with process(url, tmp_path) as servers:
            lost = await dug(servers, Began(), task="task-1")
        assert lost.status == "error"
        assert "Task not found: task-1. The call may have run" in lost.text
        assert "session" not in (tmp_path / "parley" / "sessions.json").read_text(encoding="utf-8")
