"""Each choice key's effect at each cursor place and in each state of the calls, in a real Neovim."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count

import pytest

from tests.nvim.counting import furnish, until
from tests.nvim.harness import Child, child

KEYS = ("yA", "ya", "yo", "yO", "yn", "yN")
ROWS = {"another exchange": 1, "text": 11, "call 1": 13, "call 2": 14, "call 3": 15}
"""Calls 1 and 2 use one tool, call 3 another."""
BEFORE = "💬: hello\n\n🤖:[Demo]\n\nHello.\n\n💬: call them\n\n🤖:[Demo]\n\nI call them.\n\n"

ONE = {"call 1": "{0} - -", "call 2": "- {0} -", "call 3": "- - {0}"}
ALL = dict.fromkeys(("text", "call 1", "call 2", "call 3"), "{0} {0} {0}")
TOOL = {"call 1": "{0} {0} -", "call 2": "{0} {0} -", "call 3": "- - {0}"}
AFTER_ONE = {"call 1": "{0} - -", "call 2": "yo {0} -", "call 3": "yo - {0}"}
AFTER_ALL = dict.fromkeys(("text", "call 1", "call 2", "call 3"), "yo {0} {0}")
AFTER_TOOL = {"call 1": "{0} {0} -", "call 2": "yo {0} -", "call 3": "yo - {0}"}
REST_ONE = {"call 2": "ya {0} -", "call 3": "ya - {0}"}
REST_ALL = dict.fromkeys(("text", "call 1", "call 2", "call 3"), "ya {0} {0}")

MARKED = {
    "all are undecided": "- - -",
    "call 1 has its yes": "yo - -",
    "call 1 has its result": "ya - -",
}
TABLE: dict[str, dict[str, dict[str, str]]] = {
    "all are undecided": {
        "ya": ALL, "yA": ALL, "yo": ONE, "yO": TOOL, "yn": ONE, "yN": ALL,
    },
    "call 1 has its yes": {
        "ya": AFTER_ALL, "yA": AFTER_ALL, "yo": AFTER_ONE, "yO": AFTER_TOOL, "yn": AFTER_ONE, "yN": AFTER_ALL,
    },
    "call 1 has its result": {
        "ya": REST_ALL, "yA": REST_ALL, "yo": REST_ONE, "yO": REST_ONE, "yn": REST_ONE, "yN": REST_ALL,
    },
}  # fmt: skip
"""The marks after a key; at a place that is not listed nothing changes."""

_number = count(1)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    home = tmp_path_factory.mktemp("choices")
    furnish(home)
    with child(home, env={"PARLEY_DEMO_PACE": "0"}) as nvim:
        waiting(nvim, "all are undecided")
        nvim.command("ParleyRespond")  # from here on the servers run, and the tools are known
        nvim.until_screen(") · count")
        yield nvim


def line(chat: int, number: int, tool: str, mark: str = "") -> str:
    call = {"index": number - 1, "id": f"call_{chat}_{number}", "type": "function"}
    call["function"] = {"name": tool, "arguments": json.dumps({"text": str(number)})}
    return f"❓:{mark} `{json.dumps(call)}`\n"


def waiting(nvim: Child, state: str) -> None:
    """A new chat with calls in a given state, which ran in no other chat."""
    chat = next(_number)
    has_result = state == "call 1 has its result"
    first = line(chat, 1, "note", "[ya]" if has_result else "")
    result = f"\n🛠️: [note][call_{chat}_1]\n\n`noted`\n\n" if has_result else ""
    nvim.clear()
    text = BEFORE + first + result + line(chat, 2, "note") + line(chat, 3, "other")
    nvim.edit(f"chat-{chat}.md", text)
    ready(nvim)
    if state == "call 1 has its yes":
        go(nvim, "call 1")
        nvim.keys("yo")
        comes(nvim, MARKED[state])
        ready(nvim)


def ready(nvim: Child) -> None:
    """Return when the keys exist and nothing runs."""
    wait = "return vim.fn.maparg('ya', 'n') ~= '' and not require('parley.handle').busy(0)"
    until(nvim, lambda: nvim.lua(wait), "the keys")


def go(nvim: Child, place: str) -> None:
    moved = 5 if "\U0001f6e0" in nvim.text() and place in ("call 2", "call 3") else 0
    nvim.nvim.api.win_set_cursor(0, (ROWS[place] + moved, 0))


def marks(nvim: Child) -> str:
    lines = [each for each in nvim.lines() if each.startswith("❓:")]
    return " ".join(each[3:5] if each[2] == "[" else "-" for each in lines)


def comes(nvim: Child, expected: str) -> None:
    until(nvim, lambda: marks(nvim) == expected, f"the marks {expected}")


def press(nvim: Child, key: str, place: str) -> None:
    """Press a key until it counts. Away from the calls, approving several takes a second press;
    declining gets no reason.
    """
    nvim.keys(key)
    if place == "another exchange":
        return
    if key in ("ya", "yA") and place == "text":
        before = marks(nvim)
        until(
            nvim,
            lambda: (
                f"calls: press {key} again, or move the cursor to one of them" in nvim.messages()
            ),
            "the first press",
        )
        assert marks(nvim) == before
        assert nvim.cursor == (ROWS[place], 0)
        ready(nvim)
        nvim.keys(key)
    elif key == "yN" or (key == "yn" and place.startswith("call")):
        nvim.until_screen("Reason (may be empty):")
        nvim.keys("<CR>")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("place", ROWS)
@pytest.mark.parametrize("state", TABLE)
def test_each_key_decides_these_calls(desk: Child, state: str, place: str) -> None:
    for key in KEYS:
        waiting(desk, state)
        before = desk.text()
        go(desk, place)
        expected = TABLE[state][key].get(place, "").format(key)
        press(desk, key, place)
        if expected:
            comes(desk, expected)
        elif place == "another exchange":
            desk.keys("<Esc>:<Esc>")
            desk.until_open()
        else:
            until(desk, lambda: "put the cursor on its ❓ line" in desk.messages(), "the message")
        if not expected:
            assert desk.text() == before, key
            assert marks(desk) == MARKED[state], key


@pytest.mark.parametrize("key", KEYS)
def test_the_command_decides_the_same_as_the_key(desk: Child, key: str) -> None:
    waiting(desk, "all are undecided")
    go(desk, "call 2")
    desk.command(f"ParleyApprove {key} since I say so")
    comes(desk, TABLE["all are undecided"][key]["call 2"].format(key))
    if key == "yn":
        assert "`The user declined this call. since I say so`" in desk.text()


def test_away_from_the_calls_only_two_consecutive_presses_count(desk: Child) -> None:
    waiting(desk, "all are undecided")
    go(desk, "text")
    desk.keys("ya")
    desk.until(
        lambda: (
            "ya applies to 3 calls: press ya again, or move the cursor to one of them"
            in desk.messages()
        ),
        "the message",
    )
    ready(desk)
    desk.keys("l")
    desk.command("messages clear")
    desk.keys("ya")
    desk.until(lambda: "ya applies to 3 calls" in desk.messages(), "the message once more")
    assert marks(desk) == "- - -"
    ready(desk)
    desk.keys("yA")
    desk.until(lambda: "yA applies to 3 calls" in desk.messages(), "the message of the other key")
    assert marks(desk) == "- - -"


def test_a_slowly_yanked_paragraph_runs_nothing(desk: Child) -> None:
    waiting(desk, "all are undecided")
    go(desk, "text")
    desk.keys("ya")
    desk.until(lambda: "ya applies to 3 calls" in desk.messages(), "the end of 'timeoutlen'")
    desk.keys("p")
    desk.keys("u")
    ready(desk)
    assert marks(desk) == "- - -"


def test_one_call_can_be_decided_from_anywhere_in_its_answer(desk: Child) -> None:
    waiting(desk, "all are undecided")
    for number in (2, 3):
        go(desk, f"call {number}")
        desk.keys("yo")
        comes(desk, {2: "- yo -", 3: "- yo yo"}[number])
        ready(desk)
    go(desk, "text")
    desk.keys("ya")
    comes(desk, "ya yo yo")


def test_the_model_gets_the_reason_for_a_decline(desk: Child) -> None:
    waiting(desk, "all are undecided")
    go(desk, "call 2")
    desk.keys("yn")
    desk.until_screen("Decline this call. Reason (may be empty):")
    desk.keys("not on a Monday<CR>")
    comes(desk, "- yn -")
    assert "`The user declined this call. not on a Monday`" in desk.text()
    assert "Why" not in desk.screen()


@pytest.mark.parametrize("leave", ["<Esc>", "why not<Esc>", "<C-c>"])
@pytest.mark.parametrize("key", ["yn", "yN"])
def test_cancelling_the_reason_decides_nothing(desk: Child, key: str, leave: str) -> None:
    waiting(desk, "all are undecided")
    go(desk, "call 2")
    before = desk.text()
    desk.keys(key)
    desk.until_screen("Reason (may be empty):")
    desk.keys(leave)
    ready(desk)
    assert desk.text() == before
    assert "Press ENTER" not in desk.screen()
    assert "traceback" not in desk.messages()


def test_a_decline_applies_to_its_call_even_if_the_cursor_has_moved(
    desk: Child,
) -> None:
    waiting(desk, "all are undecided")
    desk.lua("_G.input = vim.ui.input; vim.ui.input = function(_, done) _G.done = done end")
    go(desk, "call 2")
    desk.keys("yn")
    until(desk, lambda: desk.lua("return _G.done ~= nil"), "the question")
    go(desk, "call 3")
    desk.lua("vim.api.nvim_buf_set_lines(0, 0, 0, true, { '', '' })")
    desk.lua("_G.done('') vim.ui.input = _G.input")
    comes(desk, "- yn -")
