"""How turns continue and end in a real Neovim: the demo model, a real MCP server, and every kind of
stop.

The demo server checks requests strictly, and a refusal leaves a notice. So a turn that continues
after a stop has sent a valid request.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from parley.chat.reader import parse
from parley.chat.transcript import Answer, Result, Text
from tests.nvim.harness import Child, child

SEARCH = 'call extra__web_search {"query":"google"}'
EXTRA = {"command": sys.executable, "args": [str(Path(__file__).parent / "search_server.py")]}
BASE: dict[str, Any] = {
    "agent": "Demo-OpenAI",
    "mcp": {"servers": {"extra": EXTRA}},
    "approval": {"auto": ["extra/*"]},
    "safety": {"rate_limit_per_minute": 100000},
    "status": {"llm": False},
}
RECORD = """
_G.said = {}
vim.api.nvim_create_autocmd('User', { pattern = 'ParleyStatus', callback = function(e)
  table.insert(_G.said, e.data.text)
end })
"""
_number = count(1)


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    with child(tmp_path_factory.mktemp("stops"), init=RECORD) as nvim:
        yield nvim


@pytest.fixture
def nvim(one: Child) -> Child:
    one.clear()
    one.lua("_G.said = {}")
    return one


def set_up(nvim: Child, **settings: Any) -> None:
    """Add settings to these tests' common ones; the server is ready."""
    wanted = BASE | settings
    if nvim.lua(
        "local same = vim.deep_equal(_G.settings, ...) _G.settings = ... return same", wanted
    ):
        return
    nvim.lua("require('parley').setup(...)", wanted)
    nvim.command("ParleyTools")
    nvim.until(lambda: "write_note" in nvim.text(), "the server")
    nvim.command("bwipeout")


def ask(nvim: Child, question: str) -> Path:
    path = nvim.edit(f"stops-{next(_number)}.md", f"💬: {question}\n")
    nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    nvim.command("ParleyRespond")
    return path


def ended(nvim: Child) -> Answer:
    """The answer, as soon as the next question can be typed."""
    nvim.until(lambda: nvim.lines()[-1] == "💬: ", "the end of the turn")
    nvim.until_idle()
    assert nvim.variable("parley_status") == ""
    transcript = parse(nvim.text() + "\n")
    assert transcript.problems == ()
    return transcript.exchanges[-2].answers[-1]


def results(answer: Answer) -> list[str]:
    return [p.result.status if p.result else "none" for p in answer.proposals]


def last_text(answer: Answer) -> str:
    last = answer.segments[-1]
    assert isinstance(last, Text), last
    return last.text


def statuses(nvim: Child) -> list[str]:
    said: list[str] = nvim.lua("return _G.said")
    return said


def next_question(nvim: Child) -> None:
    """Check that a further question below is answered, so the provider accepts the whole file."""
    nvim.keys("G$asay: fine<Esc>")
    nvim.command("ParleyRespond")
    nvim.until_text("🤖:[Demo-OpenAI]\n\nfine\n\n💬: ")
    nvim.until_idle()
    assert "Interrupted" not in nvim.text()


@dataclass(frozen=True)
class Conclusion:
    """A turn that reaches an answer: the calls' results, and the answer's text."""

    question: str
    results: list[str]
    says: list[str]
    settings: dict[str, Any] = field(default_factory=dict)
    status: str = "Formulating response..."


ANSWERED: dict[str, Conclusion] = {
    "a single call": Conclusion(SEARCH, ["ok"], ["GOOGL"]),
    "recovery after an error": Conclusion(
        f"one after another: call fail {{}}, {SEARCH}",
        ["error", "ok"],
        ["fail failed", "it did not work", "GOOGL"],
        status="Tool Fail failed, trying alternative approach...",
    ),
    "error, ok, error, error": Conclusion(
        f"one after another: call fail {{}}, {SEARCH}, call fail {{}}, call fail {{}}",
        ["error", "ok", "error", "error"],
        ["fail failed"],
    ),
    "no tools": Conclusion("call fail {}", [], ["No tools were offered"], {"tool_mode": "off"}),
    "a limit of 0": Conclusion(
        "call fail {}", [], ["No tools were offered"], {"max_tool_calls": 0}
    ),
    "five calls with room for three": Conclusion(
        f"{SEARCH}, {SEARCH}, {SEARCH}, {SEARCH}, {SEARCH}",
        ["ok", "ok", "ok", "refused", "refused"],
        ["Tool call limit exceeded for this message"],
        {"max_tool_calls": {"per_message": 3}},
    ),
    "a plain number is one per message": Conclusion(
        f"again and again {SEARCH}", ["ok", "ok"], ["GOOGL"], {"max_tool_calls": 2}
    ),
    "seven calls in one reply": Conclusion(
        ", ".join([SEARCH] * 7),
        ["ok"] * 5 + ["refused"] * 2,
        ["Too many tool calls (7) - max allowed: 5"],
    ),
    "one failure beside others": Conclusion(
        f'call fail {{}}, {SEARCH}, call slow {{"seconds": 0.1}}',
        ["error", "ok", "ok"],
        ["fail failed", "GOOGL", "waited 0.1 s"],
    ),
    "a call without an answer beside others": Conclusion(
        f'call silent {{"seconds": 600}}, {SEARCH}',
        ["error", "ok"],
        ["did not answer within 1 s", "GOOGL"],
        {"mcp": {"servers": {"extra": EXTRA | {"timeout_s": 1}}}},
    ),
}


@pytest.mark.parametrize("what", ANSWERED)
def test_a_turn_reaches_an_answer(nvim: Child, what: str) -> None:
    turn = ANSWERED[what]
    set_up(nvim, **turn.settings)
    ask(nvim, turn.question)
    answer = ended(nvim)
    assert results(answer) == turn.results
    assert [said for said in turn.says if said not in last_text(answer)] == [], nvim.text()
    assert turn.status in statuses(nvim)
    assert statuses(nvim)[-1] == ""
    assert "🔒" not in nvim.text()


def test_four_calls_run_in_sequence_after_one_key(nvim: Child) -> None:
    set_up(nvim, approval={})
    queries = ["google", "microsoft", "apple", "amazon"]
    calls = [f'call extra__web_search {{"query":"{query}"}}' for query in queries]
    ask(nvim, f"one after another: {', '.join(calls)}")
    nvim.until_waiting()
    nvim.until_idle()
    nvim.keys("yA")
    answer = ended(nvim)
    assert [p.choice for p in answer.proposals] == ["yA", "ya", "ya", "ya"]
    assert results(answer) == ["ok"] * 4
    assert [p.call.index for p in answer.proposals] == [0, 0, 0, 0]
    assert last_text(answer).count("extra__web_search returned") == 4


@dataclass(frozen=True)
class Stopped:
    """A turn that a limit ends: the calls' results, the reason, and a further respond's outcome."""

    question: str
    results: list[str]
    reason: str
    then: list[str]
    settings: dict[str, Any] = field(default_factory=dict)


STOPS: dict[str, Stopped] = {
    "ten rounds": Stopped(
        f"again and again {SEARCH}",
        ["ok"] * 10,
        "reached the maximum of 10 rounds of tool calls",
        ["ok"] * 20,
    ),
    "three errors in a row": Stopped(
        "again and again call fail {}",
        ["error"] * 3,
        "all tool calls failed in 3 replies in a row",
        ["error"] * 6,
    ),
    "an unknown tool, twice": Stopped(
        "again and again, no matter what, call nowhere {}",
        ["refused"] * 2,
        "the model asked twice for a tool that does not exist: nowhere",
        ["refused"] * 4,
    ),
    "no tool left": Stopped(
        "no matter what, again and again, call nowhere {}",
        ["refused"],
        "the model asked for a tool, but there are none",
        ["refused"] * 2,
        {"tool_mode": "off"},
    ),
    "calls though tools are off": Stopped(
        f"again and again, no matter what, {SEARCH}",
        ["ok", "refused"],
        "the model kept asking for tools after reaching the limit of tool calls",
        ["ok", "refused", "refused"],
        {"max_tool_calls": 1},
    ),
}


def assert_stopped(nvim: Child, reason: str) -> None:
    """Everything that a stop leaves: the notice, the empty question below it, the status, the
    message.
    """
    assert nvim.text().endswith(f"\n\n🔒: [Unable to complete task: {reason}]\n\n💬: ")
    assert nvim.text().count("🔒: [Unable") == 1
    assert statuses(nvim)[-2:] == [f"Stopped: {reason}", ""]
    assert f"Unable to complete task: {reason}" in nvim.messages().replace("\n", " ")


@pytest.mark.parametrize("what", STOPS)
def test_a_limit_ends_a_turn_which_can_then_be_resumed(nvim: Child, what: str) -> None:
    turn = STOPS[what]
    set_up(nvim, **turn.settings)
    ask(nvim, turn.question)
    assert results(ended(nvim)) == turn.results
    assert_stopped(nvim, turn.reason)
    nvim.lua("_G.said = {}")
    nvim.command("1")
    nvim.command("ParleyRespond")
    nvim.until(lambda: statuses(nvim)[-1:] == [""], "the end of the second turn")
    assert results(ended(nvim)) == turn.then
    assert_stopped(nvim, turn.reason)
    next_question(nvim)


def until_status(nvim: Child, words: str) -> None:
    """Check that the server wrote this text to its stderr, by reopening its page."""

    def told() -> bool:
        nvim.command("ParleyTools")
        nvim.until(lambda: nvim.name.endswith("parley://tools"), "the page")
        found = words in nvim.text()
        nvim.command("bwipeout")
        return found

    nvim.until(told, f"{words!r} of the server")


def test_a_timeout_cancels_the_call_at_its_server(nvim: Child) -> None:
    set_up(nvim, loop={"timeout_s": 1.5})
    ask(nvim, f'call silent {{"seconds": 600}}, {SEARCH}')
    silent, search = ended(nvim).proposals
    reason = "it took longer than 1.5 seconds"
    assert silent.result == Result("error", f"The call was cancelled: {reason}")
    assert search.result is not None
    assert search.result.status == "ok"
    assert_stopped(nvim, reason)
    until_status(nvim, "slow: cancelled")
    nvim.command("1")
    nvim.command("ParleyRespond")
    nvim.until_text("silent failed: The call was cancelled")
    assert results(ended(nvim)) == ["error", "ok"]
    next_question(nvim)


def test_a_users_stop_cancels_the_call_at_its_server_but_not_its_sibling(
    nvim: Child,
) -> None:
    set_up(nvim)
    ask(nvim, f'call slow {{"seconds": 600}}, {SEARCH}')
    nvim.until_text("GOOGL")
    nvim.until(
        lambda: any("Progress" in s or "step" in s for s in statuses(nvim)), "the call's progress"
    )
    nvim.command("ParleyStop")
    assert results(ended(nvim)) == ["error", "ok"]
    assert "`The call was cancelled: the user stopped it`" in nvim.text()
    assert nvim.text().endswith("\n\n🔒: [Stopped: by the user]\n\n💬: ")
    assert statuses(nvim)[-2:] == ["Stopped: by the user", ""]
    until_status(nvim, "slow: cancelled")
    nvim.command("1")
    nvim.command("ParleyRespond")
    nvim.until_text("slow failed: The call was cancelled")
    ended(nvim)
    next_question(nvim)


def test_another_neovim_counts_the_sessions_calls(tmp_path: Path) -> None:
    init = "require('parley').setup({ agent = 'Demo-OpenAI', max_tool_calls = { per_session = 2 },"
    init += " approval = { auto = { 'mock/*' } } })"
    search = 'call web_search {"query":"google"}'
    with child(tmp_path, init=init) as first:
        path = ask(first, f"{search}, {search}, {search}")
        assert results(ended(first)) == ["ok", "ok", "refused"]
        assert "`Tool call limit exceeded for this session`" in first.text()
        first.command("write")
    with child(tmp_path, init=init) as second:
        second.command(f"edit {path}")
        second.until(lambda: second.lua("return require('parley.chat').is_attached(0)"), "the chat")
        second.keys(f"G$a{search}<Esc>")
        second.command("ParleyRespond")
        second.until_text("No tools were offered to me.")
        assert results(ended(second)) == []
