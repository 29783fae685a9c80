"""An agent asks Parley for files: through the workspace, and never without the user's yes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from parley import engine
from parley.acp.client_request import INVALID_PARAMS, NOT_ALLOWED, NOT_FOUND
from parley.engine.choices import Press, choose
from tests.acp.scripted_agent import OPTIONS
from tests.runtime.test_chat_agents import TEXT, AgentDesk, desk_with, desks

__all__ = ["desks"]
LOUD = "one\nTWO\n"


def read(path: str = "a.txt", **more: Any) -> Any:
    return lambda desk: {
        "request": "fs/read_text_file",
        "params": {"path": str(desk.root / path), **more},
    }


def write(content: str = LOUD, path: str = "a.txt") -> Any:
    return lambda desk: {
        "request": "fs/write_text_file",
        "params": {"path": str(desk.root / path), "content": content},
    }


def edit_then(*steps: Any, **more: Any) -> Any:
    """An edit of `a.txt` that is asked about, and after a yes these steps."""
    return lambda desk: desk.edit(
        then=[step(desk) if callable(step) else step for step in steps], **more
    )


async def reverted(desk: AgentDesk) -> list[str]:
    reverter = desk.app.reverter(desk.chat)
    outcome = await reverter.revert(await reverter.histories())
    assert (outcome.conflicts, outcome.problems) == ([], [])
    return [path.name for path in desk.root.iterdir() if path.is_file()]


async def test_a_file_is_read_after_the_yes(desks: list[AgentDesk], tmp_path: Path) -> None:
    desk = desk_with(desks, tmp_path, read(), read(line=2, limit=1), {"say": "Read."})
    assert (await desk.respond()).kind == "waiting"
    assert desk.run.answers() == []
    start = desk.run.received("initialize")[0]["clientCapabilities"]
    assert start["fs"] == {"readTextFile": True, "writeTextFile": True}
    assert (await desk.press("yA")).kind == "complete"
    assert desk.run.answers() == [{"content": TEXT}, {"content": "two\n"}]
    first, second = desk.calls
    assert (first.call.name, first.choice, second.choice) == ("read_file", "yA", "ya")
    assert second.call.arguments == '{"path":"a.txt","first_line":2,"last_line":2}'
    assert first.result
    assert first.result.body == "a.txt, 2 lines\n1\tone\n2\ttwo"


async def test_a_declined_request_is_an_error_with_the_reason(
    desks: list[AgentDesk], tmp_path: Path
) -> None:
    desk = desk_with(desks, tmp_path, write(), {"say": "As you like."})
    await desk.respond()
    line = desk.calls[0].span.start
    press = Press("yn", "key", reason="not today")
    assert (await choose(desk.ports(), desk.app.resolve(None), line, press)).decided
    assert (await desk.respond()).kind == "complete"
    (answer,) = desk.run.answers()
    assert answer["code"] == NOT_ALLOWED
    assert "not today" in answer["message"]
    assert desk.file() == TEXT


async def test_a_write_is_shown_as_a_diff_recorded_and_reverted(
    desks: list[AgentDesk], tmp_path: Path
) -> None:
    desk = desk_with(desks, tmp_path, write(), write("new\n", "b.txt"), {"say": "Done."})
    assert (await desk.respond()).kind == "waiting"
    seen = await engine.observe(desk.ports(), desk.app.resolve(None))
    (preview,) = seen.previews.values()
    assert [(each.path, each.before, each.after) for each in preview.changes] == [
        ("a.txt", TEXT, LOUD)
    ]
    assert preview.is_one_text
    assert (await desk.press("ya")).kind == "waiting"
    assert desk.file() == LOUD
    assert (await desk.press("ya")).kind == "complete"
    assert desk.run.answers() == [{}, {}]
    assert (desk.root / "b.txt").read_text() == "new\n"
    assert await reverted(desk) == ["a.txt"]
    assert desk.file() == TEXT


async def test_an_overwrite_is_never_remembered_but_a_new_file_may_be(
    desks: list[AgentDesk], tmp_path: Path
) -> None:
    new = [write("x\n", "b.txt"), write("y\n", "c.txt")]
    desk = desk_with(desks, tmp_path, *new, write("y\n", "b.txt"), write(), {"say": "Done."})
    await desk.respond()
    assert (await desk.press("yA")).kind == "waiting"
    assert (desk.root / "c.txt").read_text() == "y\n"
    assert [call.choice for call in desk.calls] == ["yA", "ya", None]
    await desk.press("yA")
    assert desk.calls[-1].undecided
    assert desk.file() == TEXT


async def test_an_edit_that_was_approved_with_its_diff_is_written_without_a_second_question(
    desks: list[AgentDesk], tmp_path: Path
) -> None:
    again = [write(), write("one\nTHREE\n")]
    desk = desk_with(desks, tmp_path, edit_then(write()), *again, {"say": "Done."})
    await desk.respond()
    assert (await desk.press("ya")).kind == "waiting"  # the last one is another text
    assert desk.run.answers()[1:] == [{}, {}]  # the file already had the second one
    assert desk.file() == LOUD
    assert [call.call.name for call in desk.calls] == ["edit", "write_file"]
    await desk.press("yn")
    histories = await desk.app.reverter(desk.chat).histories()
    assert len(histories) == 1
    assert await reverted(desk) == ["a.txt"]
    assert desk.file() == TEXT


@pytest.mark.parametrize("content", ["one\nTWO", "one\nTWO\nthree\n", "ONE\nTWO\n"])
async def test_another_text_than_the_approved_one_asks_again(
    desks: list[AgentDesk], tmp_path: Path, content: str
) -> None:
    desk = desk_with(desks, tmp_path, edit_then(write(content)), {"say": "Done."})
    await desk.respond()
    assert (await desk.press("ya")).kind == "waiting"
    assert desk.file() == TEXT


async def test_an_approved_edit_covers_only_its_own_file_text_and_turn(
    desks: list[AgentDesk], tmp_path: Path
) -> None:
    other = write(LOUD, "b.txt")
    desk = desk_with(desks, tmp_path, edit_then(other), write(), {"say": "Done."})
    (desk.root / "b.txt").write_text(TEXT)
    await desk.respond()
    assert (await desk.press("ya")).kind == "waiting"
    assert [call.call.name for call in desk.calls] == ["edit", "write_file"]
    (desk.root / "a.txt").write_text("changed\n")
    assert (await desk.press("yn")).kind == "waiting"  # a.txt has another text now
    assert (desk.file(), (desk.root / "b.txt").read_text()) == ("changed\n", TEXT)


async def test_an_edit_whose_path_is_not_absolute_covers_nothing(
    desks: list[AgentDesk], tmp_path: Path
) -> None:
    diff = {"type": "diff", "path": "a.txt", "oldText": "two\n", "newText": "TWO\n"}
    call = {"toolCallId": "t", "title": "Edit", "kind": "edit", "content": [diff]}
    desk = desk_with(
        desks, tmp_path, lambda d: {"ask": [call], "then": [write()(d)]}, {"say": "Done."}
    )
    await desk.respond()
    assert (await desk.press("ya")).kind == "waiting"
    assert desk.file() == TEXT


async def test_a_change_that_the_agent_and_parley_make_is_recorded_once(
    desks: list[AgentDesk], tmp_path: Path
) -> None:
    own = lambda d: {"write": str(d.root / "a.txt"), "text": LOUD}  # noqa: E731
    desk = desk_with(desks, tmp_path, edit_then(own, write(), own), {"say": "Done."})
    await desk.respond()
    assert (await desk.press("ya")).kind == "complete"
    histories = await desk.app.reverter(desk.chat).histories()
    assert len(histories) == 1
    await reverted(desk)
    assert desk.file() == TEXT


async def test_the_users_own_text_is_written_and_the_agent_learns_of_it(
    desks: list[AgentDesk], tmp_path: Path
) -> None:
    desk = desk_with(desks, tmp_path, write(), {"say": "I see."})
    await desk.respond()
    press = Press("ya", "key", edited="one\nmine\n")
    line = desk.calls[0].span.start
    assert (await choose(desk.ports(), desk.app.resolve(None), line, press)).decided
    assert (await desk.respond()).kind == "complete"
    assert desk.file() == "one\nmine\n"
    (answer,) = desk.run.answers()
    assert "edited this change" in answer["message"]


async def test_a_file_that_changed_after_the_diff_is_asked_about_again(
    desks: list[AgentDesk], tmp_path: Path
) -> None:
    desk = desk_with(desks, tmp_path, write(), {"say": "Done."})
    await desk.respond()
    line = desk.calls[0].span.start
    ports = desk.ports()
    assert (await choose(ports, desk.app.resolve(None), line, Press("ya", "key"))).decided
    (desk.root / "a.txt").write_text("changed\n")
    assert (await desk.respond()).kind == "waiting"
    assert (desk.file(), desk.run.answers()) == ("changed\n", [])


OUTSIDE = ["../b.txt", "/etc/hostname", "link/b.txt", ".git/config"]


async def test_requests_that_cannot_be_carried_out_are_refused_without_a_question(
    desks: list[AgentDesk], tmp_path: Path
) -> None:
    steps = [step for path in OUTSIDE[:3] for step in (read(path), write("x", path))]
    wrong = [
        {"request": "fs/read_text_file", "params": params}
        for params in ({}, {"path": 7}, {"path": "a.txt"}, {"path": "/x", "line": True},
                       {"path": "/x", "limit": 0})
    ]  # fmt: skip
    more = [write("x", ".git/config"), read("missing.txt"), write("x" * 2_000_001), write(TEXT)]
    desk = desk_with(desks, tmp_path, *steps, *wrong, *more, {"say": "Hm."})
    (tmp_path / "b.txt").write_text("secret\n")
    (desk.root / "link").symlink_to(tmp_path)
    assert (await desk.respond()).kind == "complete"
    *answers, git, missing, huge, same = desk.run.answers()
    assert {answer["code"] for answer in [*answers, git, huge]} == {INVALID_PARAMS}
    assert missing["code"] == NOT_FOUND
    assert "no such file" in missing["message"]
    assert same == {}  # there is nothing to change
    assert desk.calls == []
    assert (tmp_path / "b.txt").read_text() == "secret\n"


async def test_a_guarded_file_needs_a_yes_each_time(desks: list[AgentDesk], tmp_path: Path) -> None:
    desk = desk_with(desks, tmp_path, read(), read(".env"), write("K=2\n", ".env"), {"say": "Ok."})
    (desk.root / ".env").write_text("K=1\n")
    await desk.respond()
    assert (await desk.press("yA")).kind == "waiting"
    assert len(desk.run.answers()) == 1
    assert (await desk.press("ya")).kind == "waiting"
    assert desk.run.answers()[1] == {"content": "K=1\n"}
    assert (await desk.press("yn")).kind == "complete"
    assert (desk.root / ".env").read_text() == "K=1\n"


async def test_a_request_outside_of_a_turn_is_refused(
    desks: list[AgentDesk], tmp_path: Path
) -> None:
    desk = desk_with(
        desks, tmp_path, read(), {"wait": "cancel"}, **{"session/new": {"sessionId": "s"}}
    )
    assert (await desk.respond()).kind == "waiting"
    await desk.app.close()
    (answer,) = desk.run.answers()
    assert "turn has ended" in answer["message"]
    session = desk.app.agent_processes._sessions[desk.chat]
    refused = await session.request("fs/read_text_file", {"path": str(desk.root / "a.txt")})
    assert "no open turn" in refused.message


@pytest.mark.parametrize("settings", [{"workspace": {"enabled": False}}, {"tool_mode": "off"},
                                      {"approval": {"deny": ["workspace/*"]}}])  # fmt: skip
async def test_without_the_workspace_the_methods_are_not_declared(
    desks: list[AgentDesk], tmp_path: Path, settings: dict[str, Any]
) -> None:
    desk = desk_with(desks, tmp_path, read(), {"say": "Hm."})
    desk.settings = settings
    desk.restart()
    assert (await desk.respond()).kind == "complete"
    (answer,) = desk.run.answers()
    is_denied = "approval" in settings
    assert answer["code"] == (NOT_ALLOWED if is_denied else -32601)
    start = desk.run.received("initialize")[0]["clientCapabilities"]
    assert start["fs"]["readTextFile"] is is_denied


async def test_the_chats_tools_limit_the_requests_that_the_agent_may_make(
    desks: list[AgentDesk], tmp_path: Path
) -> None:
    desk = desk_with(desks, tmp_path, read(), write(), {"say": "Hm."})
    desk.document = type(desk.document)("---\ntools: [read_file]\n---\n\n💬: Go.\n", 10**6)
    assert (await desk.respond()).kind == "waiting"
    assert (await desk.press("ya")).kind == "complete"
    assert [answer.get("code") for answer in desk.run.answers()] == [None, -32601]


async def test_requests_that_arrive_together_are_decided_together(
    desks: list[AgentDesk], tmp_path: Path
) -> None:
    def both(desk: AgentDesk) -> dict[str, Any]:
        return {"requests": [read()(desk), write("new\n", "b.txt")(desk)]}

    desk = desk_with(desks, tmp_path, both, {"say": "Done."})
    await desk.respond()
    assert [call.call.name for call in desk.calls] == ["read_file", "write_file"]
    assert (await desk.press("ya")).kind == "complete"
    assert (desk.root / "b.txt").read_text() == "new\n"


async def test_an_agent_that_cannot_take_the_error_reads_a_missing_file_as_empty(
    desks: list[AgentDesk], tmp_path: Path
) -> None:
    start = {"protocolVersion": 1, "agentInfo": {"name": "gemini-cli", "version": "1"}}
    desk = desk_with(desks, tmp_path, read("b.txt"), {"say": "Hm."}, initialize=start)
    assert (await desk.respond()).kind == "complete"
    assert desk.run.answers() == [{"content": ""}]
    assert desk.calls == []


async def test_a_permission_that_could_not_be_given_once_covers_nothing(
    desks: list[AgentDesk], tmp_path: Path
) -> None:
    never = edit_then(options=OPTIONS[:1])
    desk = desk_with(desks, tmp_path, never, write(), {"say": "Done."})
    await desk.respond()
    assert (await desk.press("ya")).kind == "waiting"
    assert desk.calls[-1].call.name == "write_file"
    assert desk.file() == TEXT
