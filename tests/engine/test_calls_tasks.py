"""Calls that run on their servers as tasks: their lines in the file, and who may collect their
results.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from parley.chat.reader import parse
from parley.chat.transcript import Result
from parley.engine import End, TaskBegan, stopped
from parley.errors import PendingError
from parley.models.request import Request
from parley.policy.approval import CallKey
from parley.policy.turn_limits import Limits
from parley.storage.ledger import LedgerFile
from parley.tools.catalogue import Catalogue, Tool
from parley.tools.tasks import TaskHandle
from tests.chats import READ, SEARCH, TOOLS, call, tool
from tests.defaults import limits_with
from tests.fakes import CrashError, LoggedTools, ScriptedModel, Turns, calls, says
from tests.ledgers import open_ledger

FIRST, SECOND = call(1), call(2, "read_file", "{}")
PENDING = "\n\n🛠️: [web_search][call_1][pending]\n\n`task-1`\n"
DUG = "\n\n🛠️: [web_search][call_1]\n\n`dug`\n"
NOTICE = "🔒: [Interrupted: the line is cut]"


class TaskTools(LoggedTools):
    """Tools whose `web_search` runs as a task; `outcome` is the answer to a poll of the task."""

    def __init__(self, outcome: Result | BaseException, task: str = "task-1") -> None:
        super().__init__(TOOLS)
        self.outcome = outcome
        self.task = task
        self.collected = list[str]()
        self.texts = list[str]()
        self.text: Callable[[], str] = str

    async def call(self, tool: Tool, key: CallKey, request: Request, task: TaskHandle) -> Result:
        if tool.name != "web_search":
            return await super().call(tool, key, request, task)
        if task.id:
            self.collected.append(task.id)
        else:
            self.log.append((tool.name, key.arguments))
            await task.begin(self.task)
        self.texts.append(self.text())
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome


def turns_of(
    tools: TaskTools, text: str = "💬: dig\n", file: LedgerFile | None = None, chat: str = "chat.md",
    limits: Limits | None = None,
) -> Turns:  # fmt: skip
    model = ScriptedModel(*[] if "❓" in text else [calls(FIRST, SECOND)], says("All is dug."))
    ledger = file.chat(chat) if file else None
    turns = Turns(text, model, tools, ledger=ledger, limits=limits)
    tools.text = lambda: turns.text
    return turns


async def left_by_a_crash(file: LedgerFile) -> str:
    """The text of a chat whose process died while a call ran as a task."""
    turns = turns_of(TaskTools(CrashError()), file=file)
    await turns.run()
    await turns.press("ya")
    with pytest.raises(CrashError):
        await turns.run()
    return turns.text


async def test_the_task_is_in_the_file_from_its_start_until_its_result() -> None:
    turns = turns_of(TaskTools(Result("ok", "dug")))
    await turns.run()
    await turns.press("ya")
    assert await turns.run() == End("complete")
    (before,) = turns.tools.texts  # type: ignore[attr-defined]
    assert PENDING in before
    assert parse(before).problems == ()
    assert PENDING not in turns.text
    assert DUG in turns.text
    assert sum(isinstance(event, TaskBegan) for event in turns.observer.events) == 1


async def test_reopening_the_chat_collects_the_result_and_starts_nothing() -> None:
    file = open_ledger()
    text = await left_by_a_crash(file)
    assert PENDING in text
    # The call can no longer be prevented, and a limit counts it.
    tools = TaskTools(Result("ok", "dug"))
    turns = turns_of(tools, text, file, limits=limits_with(blocked=("web_search",)))
    assert await turns.run() == End("complete")
    assert (tools.collected, tools.log) == (["task-1"], [("read_file", "{}")])
    assert DUG in turns.text


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text.replace("`task-1`", "`task-2`"),
        lambda text: text.replace('\\"x\\"', '\\"y\\"'),
        lambda text: text.replace("call_1", "call_7"),
        lambda text: text.replace("[ya]", ""),
        lambda text: text.replace("[pending]", "[pending] [pending]"),
    ],
)
async def test_a_task_not_started_here_for_this_exact_call_is_not_collected(
    edit: Callable[[str], str],
) -> None:
    file = open_ledger()
    text = edit(await left_by_a_crash(file))
    tools = TaskTools(Result("ok", "of others"))
    assert await turns_of(tools, text, file).run() == End("waiting")
    assert (tools.collected, tools.log) == ([], [])


async def test_a_file_from_elsewhere_collects_nothing() -> None:
    file = open_ledger()
    text = await left_by_a_crash(file)
    for ledger, chat in ((file, "copy.md"), (open_ledger(), "chat.md")):
        tools = TaskTools(Result("ok", "dug"))
        turns = turns_of(tools, text, ledger, chat)
        assert await turns.run() == End("waiting")
        await turns.press("ya")
        if ledger is file:  # first a warning that it may have run there
            await turns.press("ya")
        assert await turns.run() == End("complete")
        assert (tools.collected, len(tools.log)) == ([], 2)  # a call like any other
        assert PENDING in tools.texts[0]
        assert DUG in turns.text


async def test_a_changed_tool_needs_the_users_decision() -> None:
    file = open_ledger()
    tools = TaskTools(Result("ok", "of others"))
    tools.offered = Catalogue.of([tool(identity='{"url":"https://elsewhere.example"}'), READ])
    assert await turns_of(tools, await left_by_a_crash(file), file).run() == End("waiting")
    assert tools.collected == []


async def test_an_unreachable_server_keeps_the_task_and_the_other_results() -> None:
    file = open_ledger()
    tools = TaskTools(PendingError("the line is cut"))
    turns = turns_of(tools, file=file)
    await turns.run()
    await turns.press("ya")
    assert await turns.run() == End("interrupted", "Interrupted: the line is cut")
    assert PENDING in turns.text
    assert "🛠️: [read_file][call_2]\n\n`fine`" in turns.text
    assert NOTICE in turns.text
    tools.offered = Catalogue(missing=("demo",))
    missing = "web_search is running as a task on MCP server 'demo', which is missing."
    end = await turns.run()
    assert (end.kind, missing in end.message) == ("interrupted", True)
    assert PENDING in turns.text
    tools.offered, tools.outcome = TOOLS, Result("ok", "dug")
    assert await turns.run() == End("complete")
    assert (tools.collected, len(tools.log)) == (["task-1"], 2)
    assert DUG in turns.text


async def test_a_task_can_be_given_up_and_a_regenerated_answer_starts_another() -> None:
    file = open_ledger()
    text = await left_by_a_crash(file)
    tools = TaskTools(Result("ok", "dug"))
    turns = turns_of(tools, text, file)
    await turns.press("yo", '"id":"call_1"')  # which warns that it may have run
    await turns.press("yn", '"id":"call_1"')
    assert "[pending]" not in turns.text
    assert "🛠️: [web_search][call_1][refused]\n\n`The user declined this call.`" in turns.text
    turns = turns_of(tools, text, file)
    assert await turns.regenerate() == End("complete")
    assert "task-1" not in turns.text
    assert tools.collected == []


async def test_a_stopped_turn_leaves_no_task() -> None:
    file = open_ledger()
    turns = turns_of(TaskTools(Result("ok", "dug")), await left_by_a_crash(file), file)
    assert await stopped(turns.ports)
    assert "[pending]" not in turns.text
    assert (
        "🛠️: [web_search][call_1][error]\n\n`The call was cancelled: the user stopped it`"
        in turns.text
    )


@pytest.mark.parametrize("task", ["a b", "a\x1b[2J", "`", "x" * 513, "\u202e"])
async def test_an_id_that_no_line_can_contain_is_not_written(task: str) -> None:
    tools = TaskTools(Result("ok", "dug"), task)
    turns = turns_of(tools)
    await turns.run()
    await turns.press("ya")
    assert await turns.run() == End("complete")
    assert "[pending]" not in tools.texts[0]
    assert turns.ledger.view().tasks == ()
    assert DUG in turns.text


def test_the_ledger_binds_to_these_tests_tools() -> None:
    assert replace(SEARCH, identity="x").digest != SEARCH.digest
