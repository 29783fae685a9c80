"""Waiting calls and ended turns are announced: in variables, events, the status line, messages and
the cursor.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from parley.nvim.announcements import reminder
from parley.settings.values import ChoiceKeys, Key, Keys
from tests.nvim.harness import Child, child

EXTRA = {"command": sys.executable, "args": [str(Path(__file__).parent / "search_server.py")]}
TWO = 'call extra__web_search {"query":"google"}, call extra__web_search {"query":"apple"}'
BASE: dict[str, Any] = {
    "agent": "Demo-OpenAI",
    "mcp": {"servers": {"extra": EXTRA}},
    "safety": {"rate_limit_per_minute": 100000},
    "status": {"llm": False},
}
RECORD = """
_G.heard = {}
for _, name in ipairs({ 'ParleyWaiting', 'ParleyAnswered', 'ParleyStopped', 'ParleyChat' }) do
  vim.api.nvim_create_autocmd('User', { pattern = name, callback = function(e)
    local path = vim.api.nvim_buf_get_name(e.data.buf)
    table.insert(_G.heard, { name, e.data.calls or e.data.why or '', path:match('[^/]*$') })
  end })
end
vim.o.laststatus = 2
vim.o.statusline = "%{%v:lua.require'parley'.status()%}"
"""


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    with child(tmp_path_factory.mktemp("waiting"), init=RECORD, width=80, height=24) as nvim:
        yield nvim


@pytest.fixture
def nvim(one: Child) -> Child:
    one.clear()
    one.lua("_G.heard = {} require('parley').setup(...)", BASE)
    return one


def heard(nvim: Child) -> list[list[Any]]:
    events: list[list[Any]] = nvim.lua("return _G.heard")
    return events


def ask(nvim: Child, question: str, name: str = "chat.md", topic: str = "") -> None:
    front = f"---\ntopic: {topic}\n---\n\n" if topic else ""
    nvim.edit(name, f"{front}💬: {question}\n")
    nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    nvim.command("normal! G$")
    nvim.command("ParleyRespond")


def waits(nvim: Child) -> None:
    nvim.until_waiting()
    nvim.until_idle()


def test_a_buffer_that_becomes_a_chat_is_announced_once(nvim: Child) -> None:
    nvim.edit("chat.md", "💬: hello\n")
    nvim.until(lambda: heard(nvim), "the event")
    nvim.command("enew | buffer chat.md")
    nvim.until(lambda: nvim.variable("parley_agent"), "the agent")
    assert heard(nvim) == [["ParleyChat", "", "chat.md"]]
    assert nvim.variable("parley_waiting") == 0


def test_waiting_calls_are_counted_announced_and_in_the_status_line(nvim: Child) -> None:
    ask(nvim, TWO)
    waits(nvim)
    assert nvim.variable("parley_waiting") == 2
    assert heard(nvim)[1:] == [["ParleyWaiting", 2, "chat.md"]]
    nvim.until(lambda: nvim.screen().split("\n")[-2] == "2 calls are waiting", "the status line")
    nvim.keys("yo")
    nvim.until(lambda: nvim.variable("parley_waiting") == 1, "the choice")
    nvim.until_idle()
    assert nvim.lua("return require('parley').status()") == "1 call is waiting"
    nvim.keys("jyo")
    nvim.until(lambda: nvim.lines()[-1] == "💬: ", "the next question")
    nvim.until_idle()
    nvim.until(lambda: heard(nvim)[-1][0] == "ParleyAnswered", "the event of the end")
    assert nvim.variable("parley_waiting") == 0
    assert heard(nvim)[2:] == [["ParleyWaiting", 1, "chat.md"], ["ParleyAnswered", "", "chat.md"]]
    assert nvim.lua("return require('parley').status()").startswith("Demo-OpenAI")


def test_a_call_waits_beside_one_that_is_refused(nvim: Child) -> None:
    ask(nvim, 'call extra__web_search {"query":"google"}, call extra__web_search {"quarry":"x"}')
    waits(nvim)
    assert "1 call is waiting" in nvim.lua("return require('parley').status()")
    for keys in ("", "zR", "zM"):
        nvim.keys(keys)
        nvim.until(lambda: ">> Please choose (yA/ya):" in nvim.screen(), f"the prompt after {keys}")
    assert nvim.screen().count("refused") == 1


def test_a_chat_opened_from_disk_says_that_calls_wait_in_it(nvim: Child) -> None:
    ask(nvim, TWO)
    waits(nvim)
    nvim.command("write | bwipeout")
    nvim.lua("_G.heard = {}")
    nvim.command(f"edit {nvim.home / 'chat.md'}")
    nvim.until(lambda: nvim.variable("parley_waiting") == 2, "the calls that wait")
    assert heard(nvim) == [["ParleyChat", "", "chat.md"], ["ParleyWaiting", 2, "chat.md"]]
    assert "wait" not in nvim.messages()


def test_a_turn_that_a_limit_or_the_user_stops_is_announced_with_its_reason(nvim: Child) -> None:
    nvim.lua("require('parley').setup(...)", BASE | {"approval": {"auto": ["extra/*"]}})
    ask(nvim, 'call slow {"seconds": 600}')
    nvim.until_text("❓:[ya]")
    nvim.until(
        lambda: "Slow" in nvim.variable("parley_status") or "step" in nvim.variable("parley_status")
    )
    nvim.command("ParleyStop")
    nvim.until(lambda: heard(nvim)[-1][0] == "ParleyStopped", "the event")
    assert heard(nvim)[-1][1] == "stopped by the user"
    assert nvim.lua("return vim.b.parley_status") == ""


def test_a_removed_answer_is_announced_as_a_stop(nvim: Child) -> None:
    nvim.lua("require('parley').setup(...)", BASE | {"approval": {"auto": ["extra/*"]}})
    ask(nvim, 'call slow {"seconds": 600}')
    nvim.until_text("❓:[ya]")
    nvim.command("undo")
    nvim.until(lambda: heard(nvim)[-1][0] == "ParleyStopped", "the event")
    assert (
        heard(nvim)[-1][1]
        == "the answer was removed, so its turn has ended. :ParleyRespond asks again"
    )
    assert nvim.variable("parley_status") == ""


LEAVE_AT_A_CHANGE = """
vim.api.nvim_buf_attach(0, false, { on_lines = function()
  vim.schedule(vim.cmd.tabnew)
  return true
end })
"""


def test_events_in_a_hidden_chat_are_announced_once_with_its_topic(nvim: Child) -> None:
    ask(nvim, TWO, topic="Shares of two")
    nvim.command("enew")
    nvim.until(
        lambda: "Shares of two: 2 calls are waiting for your choice" in nvim.messages(),
        "the message",
    )
    nvim.command("messages clear | buffer chat.md")
    waits(nvim)
    nvim.command("call search('^❓', 'w')")
    nvim.lua(LEAVE_AT_A_CHANGE)
    nvim.keys("ya")
    nvim.until(lambda: "Shares of two: the answer is ready" in nvim.messages(), "the message")
    assert nvim.messages().count("Shares of two") == 1


def test_a_user_who_sees_the_chat_or_has_disabled_messages_gets_none(nvim: Child) -> None:
    nvim.command("split")
    ask(nvim, TWO, topic="Shares of two")
    nvim.command("wincmd p")
    nvim.until(lambda: [event for event in heard(nvim) if event[0] == "ParleyWaiting"], "the calls")
    nvim.lua("require('parley').setup(...)", BASE | {"status": {"notify": False, "llm": False}})
    ask(nvim, "say: fine", "silent.md")
    nvim.command("enew")
    nvim.until(lambda: heard(nvim)[-1][0] == "ParleyAnswered", "the answer")
    assert nvim.messages() == ""


def test_asking_while_calls_wait_names_and_shows_them(nvim: Child) -> None:
    ask(nvim, TWO)
    waits(nvim)
    long = [f"note {number}" for number in range(60)]
    nvim.lua("vim.api.nvim_buf_set_lines(0, 0, 0, true, ...)", [*long, ""])
    nvim.until_idle()
    nvim.command("normal! 1G")
    nvim.command("call cursor(search('^💬'), 1)")
    nvim.command("normal! zb")
    assert "❓" not in nvim.screen()
    nvim.lua("_G.heard = {}")
    nvim.command("ParleyRespond")
    said = "Parley: 2 calls are waiting: ya all, yo the call under the cursor, K details"
    nvim.until(lambda: said in nvim.messages(), "the message")
    nvim.until_idle()
    assert nvim.lines()[nvim.cursor[0] - 1].startswith("❓:")
    assert "yn" in nvim.screen()
    assert heard(nvim) == []
    nvim.keys("j")
    row = nvim.cursor
    nvim.command("messages clear | ParleyRespond")
    nvim.until(lambda: said in nvim.messages(), "the message again")
    nvim.until_idle()
    assert nvim.cursor == row


def test_asking_an_empty_question_below_waiting_calls_leads_to_them(nvim: Child) -> None:
    ask(nvim, TWO)
    waits(nvim)
    nvim.keys("Go<CR>💬: <Esc>")
    nvim.command("ParleyRespond")
    nvim.until(lambda: "2 calls are waiting: ya all" in nvim.messages(), "the message")
    nvim.until_idle()
    assert nvim.lines()[nvim.cursor[0] - 1].startswith("❓:")


def test_waiting_messages_name_the_configured_keys() -> None:
    assert reminder(1, Keys()) == "1 call is waiting: ya yes, yn no, K details"
    assert (
        reminder(3, Keys(scope="case"))
        == "3 calls are waiting: yA all, ya the call under the cursor, K details"
    )
    assert reminder(1, Keys(choices=ChoiceKeys(ya=Key("gy"), yn=Key("")))) == (
        "1 call is waiting: gy yes, :ParleyApprove yn no, K details"
    )
    by_command = reminder(1, Keys(choices=ChoiceKeys(enabled=False)))
    assert by_command == "1 call is waiting: :ParleyApprove ya yes, :ParleyApprove yn no, K details"
