"""An agent of another program in the loop: real process, ledger and files."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from parley import engine
from parley.chat.reader import parse
from parley.chat.transcript import Choice, Proposal
from parley.display.diff_rows import made_files
from parley.engine.choices import Press, choose
from parley.models.events import Aside
from parley.policy.approval import Rule
from parley.runtime.app import App
from parley.runtime.asyncio_ports import Callbacks
from parley.settings.read import read_settings
from parley.settings.readiness import Ready, Refusal
from parley.storage.chat_file import TextDocument
from parley.tools.agent_calls import MOST_DIFFS, TOO_MANY_DIFFS
from tests.acp.agent_runs import AgentRun
from tests.acp.scripted_agent import OPTIONS
from tests.ledgers import open_ledger
from tests.workspace.trees import work_tree

TEXT = "one\ntwo\n"


class AgentDesk:
    """A user with an agent in a project; `restart` is a new process of Parley."""

    def __init__(self, folder: Path, prompts: list[list[dict[str, Any]]], **script: Any) -> None:
        self.root = work_tree(folder / "project", {"a.txt": TEXT})
        (folder / "agent").mkdir()
        self.run = AgentRun(folder / "agent", {"prompts": prompts, **script})
        self.folder = folder
        self.chat = str(folder / "chat.md")
        self.document = TextDocument("💬: Make it loud.\n", 10**6)
        self.news = list[str]()
        self.statuses = list[str]()
        self.settings: dict[str, Any] = {}
        self.app = self.restart()

    def restart(self) -> App:
        table = {
            "agent": "Coder",
            "agents": [{"name": "Coder", "provider": "coder"}],
            "providers": {"coder": {"kind": "acp", "command": list(self.run.provider.command)}},
            **self.settings,
        }
        settings, problems = read_settings(table)
        assert problems == ()
        environ = {**self.run.environ, "PATH": os.environ["PATH"]}
        ledger = open_ledger(self.folder / "ledger.db")
        self.app = App(settings, environ, ledger, folder=lambda: self.root)
        return self.app

    def ports(self) -> engine.Ports:
        def hear(event: Any) -> None:
            if isinstance(event, Aside):
                self.news.append(event.text)

        observer = Callbacks(self.statuses.append, hear)
        return self.app.ports(self.document, self.chat, observer, lambda: self.root)

    async def respond(self) -> engine.End:
        return await engine.run_turn(self.ports(), self.app.resolve(None))

    async def press(self, key: Choice, rule: Rule = "key", which: int = 0) -> engine.End:
        """Press a key on the first waiting call, or another one, and continue."""
        call = [p for p in self.calls if p.undecided][which]
        made = await choose(self.ports(), self.app.resolve(None), call.span.start, Press(key, rule))
        assert made.decided, made.message
        return await self.respond()

    @property
    def text(self) -> str:
        return self.document.text

    @property
    def calls(self) -> list[Proposal]:
        return [p for e in parse(self.text).exchanges for a in e.answers for p in a.calls]

    def file(self) -> str:
        return (self.root / "a.txt").read_text()

    def edit(self, old: str = "two\n", new: str = "TWO\n", **more: Any) -> dict[str, Any]:
        path = str(self.root / "a.txt")
        return {
            "ask": [
                {
                    "toolCallId": "t1",
                    "title": "Edit a.txt",
                    "kind": "edit",
                    "content": [{"type": "diff", "path": path, "oldText": old, "newText": new}],
                }
            ],
            "then": [{"write": path, "text": TEXT.replace(old, new)}],
            **more,
        }


@pytest.fixture
async def desks(tmp_path: Path) -> AsyncIterator[list[AgentDesk]]:
    made = list[AgentDesk]()
    yield made
    for desk in made:
        await desk.app.close()


def desk_with(desks: list[AgentDesk], folder: Path, *steps: Any, **script: Any) -> AgentDesk:
    desk = AgentDesk(folder, [[]])
    prompt = [step(desk) if callable(step) else step for step in steps]
    desk.run = AgentRun(desk.run.folder, {"prompts": [prompt], **script})
    desks.append(desk)
    return desk


async def test_an_approved_edit_is_made_once_recorded_and_reverted(
    desks: list[AgentDesk], tmp_path: Path
) -> None:
    desk = desk_with(desks, tmp_path, {"say": "Look:"}, AgentDesk.edit, {"say": "Done."})
    assert (await desk.respond()).kind == "waiting"
    assert desk.file() == TEXT
    assert (await desk.press("ya")).kind == "complete"
    assert desk.file() == "one\nTWO\n"
    assert desk.text.rstrip().endswith("Done.\n\n💬:")
    assert [call.result.status for call in desk.calls if call.result] == ["ok"]
    assert desk.run.answers() == [{"outcome": {"outcome": "selected", "optionId": "yes"}}]
    assert len(desk.run.received("session/prompt")) == 1
    reverter = desk.app.reverter(desk.chat)
    outcome = await reverter.revert(await reverter.histories())
    assert (outcome.conflicts, outcome.problems) == ([], [])
    assert desk.file() == TEXT


async def test_the_status_says_when_the_agent_starts(
    desks: list[AgentDesk], tmp_path: Path
) -> None:
    desk = desk_with(desks, tmp_path, {"say": "Done."})
    await desk.respond()
    assert desk.statuses[:3] == [
        "Analyzing request...",
        "Starting coder...",
        "Analyzing request...",
    ]
    desk.statuses.clear()
    desk.document = TextDocument(f"{desk.text}Again.\n", 10**6)
    await desk.respond()
    assert "Starting coder..." not in desk.statuses, "it still runs"


async def test_a_file_that_the_agent_overwrites_is_not_called_new(
    desks: list[AgentDesk], tmp_path: Path
) -> None:
    def write(desk: AgentDesk) -> dict[str, Any]:
        names = ("a.txt", "new.txt")
        diffs = [{"type": "diff", "path": str(desk.root / name), "oldText": None, "newText": "x\n"}
                 for name in names]  # fmt: skip
        ask = [{"toolCallId": "t", "title": "Write", "kind": "edit", "content": diffs}]
        return {
            "ask": ask,
            "then": [{"write": str(desk.root / name), "text": "x\n"} for name in names],
        }

    desk = desk_with(desks, tmp_path, write, {"say": "Done."})
    assert (await desk.respond()).kind == "waiting"
    assert (await desk.press("ya")).kind == "complete"
    (call,) = desk.calls
    over, new = made_files(call)
    assert (over.kind, over.added, new.kind, new.added) == ("overwrites the file", 0, "new file", 1)


async def test_a_call_with_too_many_diffs_is_refused_with_the_reason(
    desks: list[AgentDesk], tmp_path: Path
) -> None:
    diffs = [{"type": "diff", "path": f"/p/{n}", "oldText": None, "newText": ""}
             for n in range(MOST_DIFFS + 1)]  # fmt: skip
    ask = {"toolCallId": "t", "title": "Write", "kind": "edit", "content": diffs}
    desk = desk_with(desks, tmp_path, {"ask": ask}, {"say": "As you like."})
    assert (await desk.respond()).kind == "complete"
    (call,) = desk.calls
    assert call.result
    assert (call.result.status, call.result.body) == ("refused", TOO_MANY_DIFFS)
    assert desk.run.answers() == [{"outcome": {"outcome": "selected", "optionId": "no"}}]


async def test_two_chats_without_a_file_have_sessions_of_their_own(
    desks: list[AgentDesk], tmp_path: Path
) -> None:
    desk = desk_with(desks, tmp_path, AgentDesk.edit, {"say": "Done."})
    desk.chat = ""
    await desk.respond()
    first, desk.document = desk.document, TextDocument("💬: Another.\n", 10**6)
    await desk.respond()
    assert len(desk.run.received("session/new")) == 2
    desk.document = first
    (call,) = desk.calls
    assert desk.ports().agents.awaits(call.call.id)


async def test_a_declined_call_is_rejected_once(desks: list[AgentDesk], tmp_path: Path) -> None:
    desk = desk_with(desks, tmp_path, AgentDesk.edit, {"say": "As you like."})
    await desk.respond()
    assert (await desk.press("yn")).kind == "complete"
    assert desk.file() == TEXT
    assert desk.run.answers() == [{"outcome": {"outcome": "selected", "optionId": "no"}}]
    assert desk.news == []


async def test_a_turn_that_the_agent_ends_because_of_a_no_is_complete(
    desks: list[AgentDesk], tmp_path: Path
) -> None:
    desk = desk_with(desks, tmp_path, AgentDesk.edit, {"stop": "cancelled"})
    await desk.respond()
    assert (await desk.press("yn")).kind == "complete"
    assert "Interrupted" not in desk.text
    assert "ended its turn" in desk.text


async def test_a_permission_that_outlives_its_process_is_cancelled_and_never_granted(
    desks: list[AgentDesk], tmp_path: Path
) -> None:
    desk = desk_with(desks, tmp_path, AgentDesk.edit, {"say": "Done."})
    await desk.respond()
    await desk.app.close()
    desk.restart()
    assert (await desk.press("ya")).kind == "waiting"  # the agent asks again
    first, second = desk.calls
    assert first.result
    assert first.result.status == "error"
    assert "was cancelled" in first.result.body
    assert first.call.id != second.call.id
    assert desk.file() == TEXT
    assert len(desk.news) == 1
    assert "new session" in desk.news[0]


async def test_a_lost_permission_without_a_choice_is_settled(
    desks: list[AgentDesk], tmp_path: Path
) -> None:
    desk = desk_with(desks, tmp_path, AgentDesk.edit, {"say": "Done."})
    await desk.respond()
    await desk.app.close()
    desk.restart()
    assert (await desk.respond()).kind == "waiting"
    result = desk.calls[0].result
    assert result
    assert result.status == "refused"
    assert desk.run.answers() == [{"outcome": {"outcome": "cancelled"}}]


async def test_a_file_that_changed_after_the_diff_voids_the_approval(
    desks: list[AgentDesk], tmp_path: Path
) -> None:
    desk = desk_with(desks, tmp_path, AgentDesk.edit, {"say": "Done."})
    await desk.respond()
    ports, resolve = desk.ports(), desk.app.resolve(None)
    line = desk.calls[0].span.start
    assert (await choose(ports, resolve, line, Press("ya", "key"))).decided
    (desk.root / "a.txt").write_text("zero\none\ntwo\n")
    assert (await desk.respond()).kind == "waiting"
    assert desk.run.answers() == []


async def test_a_call_by_the_agents_own_rules_is_written_with_its_own_mark(
    desks: list[AgentDesk], tmp_path: Path
) -> None:
    ran = {"sessionUpdate": "tool_call", "toolCallId": "x", "title": "Look", "kind": "read",
           "status": "completed", "rawOutput": "seen"}  # fmt: skip
    desk = desk_with(desks, tmp_path, {"say": "a"}, {"update": ran}, {"say": "b"})
    assert (await desk.respond()).kind == "complete"
    (call,) = desk.calls
    assert (call.ran_by, call.choice) == ("agent", None)
    assert call.result
    assert call.result.body == "seen"


async def test_a_rule_decides_on_a_kind_and_a_command_is_never_remembered(
    desks: list[AgentDesk], tmp_path: Path
) -> None:
    def command(number: int) -> dict[str, Any]:
        return {"ask": {"toolCallId": str(number), "title": "ls", "kind": "execute"}}

    desk = desk_with(desks, tmp_path, AgentDesk.edit, command(1), command(2), {"say": "Done."})
    desk.settings = {"approval": {"auto": ["coder/edit"]}}
    desk.restart()
    assert (await desk.respond()).kind == "waiting"
    assert desk.file() == "one\nTWO\n"
    assert (await desk.press("yA")).kind == "waiting"
    assert (await desk.press("yA")).kind == "complete"


@pytest.mark.parametrize("kind", ["read", "search", "fetch"])
@pytest.mark.parametrize("auto", [[], ["coder/*"]])
async def test_a_yes_to_a_file_of_the_project_is_no_yes_to_another(
    desks: list[AgentDesk], tmp_path: Path, kind: str, auto: list[str]
) -> None:
    def look(path: str) -> dict[str, Any]:
        call = {"toolCallId": path, "title": "Look", "kind": kind, "rawInput": {"path": path}}
        return {"ask": call}

    desk = desk_with(
        desks, tmp_path, *map(look, ["a.txt", "./a.txt", "/etc/hosts", "../x"]), {"say": "Done."}
    )
    desk.settings = {"approval": {"auto": auto}}
    desk.restart()
    assert (await desk.respond()).kind == "waiting"
    if not auto:
        assert (await desk.press("yA")).kind == "waiting"
    for path in ("/etc/hosts", "../x"):
        (call,) = [p.call for p in desk.calls if p.undecided]
        assert path in call.arguments
        assert (await desk.press("yA")).kind == ("complete" if path == "../x" else "waiting")


async def test_allow_always_is_never_sent(desks: list[AgentDesk], tmp_path: Path) -> None:
    desk = desk_with(
        desks, tmp_path, lambda d: d.edit(options=OPTIONS[:1]), {"say": "Nothing done."}
    )
    await desk.respond()
    assert (await desk.press("yA")).kind == "complete"
    assert desk.file() == TEXT
    assert desk.run.answers() == [{"outcome": {"outcome": "cancelled"}}]


async def test_a_files_mode_must_be_confirmed_and_is_not_used_with_a_chosen_agent(
    desks: list[AgentDesk], tmp_path: Path
) -> None:
    desk = desk_with(desks, tmp_path, {"say": "Ok."})
    transcript = parse("---\nmode: yolo\n---\n\n💬: q\n")
    asked = desk.app.start(transcript, desk.chat, None)
    assert isinstance(asked, Refusal)
    assert (asked.reason, asked.problem) == ("unconfirmed agent", "mode yolo")
    assert desk.app.resolve(None)(transcript).request.mode == "yolo"
    assert desk.app.resolve(None)(transcript).agent == "Coder, mode yolo"
    assert isinstance(desk.app.start(transcript, desk.chat, "Coder"), Ready)
    model = parse("---\nmodel: op[us]\nmode: yolo\n---\n\n💬: q\n")
    assert desk.app.resolve(None)(model).agent == "Coder, model op_us_, mode yolo"
    assert desk.app.resolve(None)(model).request.model == "op[us]"
    assert desk.app.resolve("Coder")(model).agent == "Coder"
    own = parse("---\nmodel: default\n---\n\n💬: q\n")
    assert desk.app.resolve(None)(own).agent == "Coder"
    assert desk.app.resolve("Coder")(transcript).request.mode == ""
    assert desk.app.resolve("Coder")(transcript).agent == "Coder"


@pytest.mark.parametrize("more", ["mode: yolo", "web_search: true"])
async def test_the_choice_of_an_agent_agrees_to_no_more_than_the_agent(
    desks: list[AgentDesk], tmp_path: Path, more: str
) -> None:
    desk = desk_with(desks, tmp_path, {"say": "Ok."})
    text = "---\nagent: Coder\n{}---\n\n💬: q\n"
    plain, transcript = parse(text.format("")), parse(text.format(f"{more}\n"))
    assert not desk.app.confirm(transcript, desk.chat)
    assert isinstance(desk.app.start(transcript, desk.chat, None), Refusal)
    request = desk.app.resolve("Coder")(transcript).request
    assert (request.mode, request.web_search) == ("", False)
    assert desk.app.confirm(plain, desk.chat)
    assert isinstance(desk.app.start(plain, desk.chat, None), Ready)
    assert isinstance(desk.app.start(transcript, desk.chat, None), Refusal)
    assert desk.app.confirm(transcript, desk.chat, is_shown=True)
    assert isinstance(desk.app.start(transcript, desk.chat, None), Ready)


async def test_an_agent_keeps_its_own_history_so_nothing_is_summarized(
    desks: list[AgentDesk], tmp_path: Path
) -> None:
    desk = desk_with(desks, tmp_path, {"say": "Ok."})
    await desk.respond()
    end = await engine.sum_up(desk.ports(), desk.app.resolve(None), 0)
    assert "keeps its own history" in end.message
    assert await desk.app.title(parse(desk.text), desk.chat, None) == ""


async def test_a_command_that_changed_files_can_be_reverted(
    desks: list[AgentDesk], tmp_path: Path
) -> None:
    def command(desk: AgentDesk) -> dict[str, Any]:
        write = {"write": str(desk.root / "new.txt"), "text": "new\n"}
        return {"ask": {"toolCallId": "c", "title": "make", "kind": "execute"}, "then": [write]}

    desk = desk_with(desks, tmp_path, command, {"say": "Done."})
    await desk.respond()
    await desk.press("ya")
    assert (desk.root / "new.txt").exists()
    reverter = desk.app.reverter(desk.chat)
    outcome = await reverter.revert(await reverter.histories())
    assert outcome.problems == []
    assert not (desk.root / "new.txt").exists()
