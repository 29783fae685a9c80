"""A running call's row shows its seconds and its server's progress, then its outcome."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from parley.chat.transcript import Proposal, Runner
from parley.engine import CallBegan, CallEnded
from parley.nvim.running import RunningCalls
from tests.chats import OK, call, tool
from tests.nvim.harness import Child, child

HERE = Path(__file__).parent
LONG = "\n".join(f"Line {number} of a long answer." for number in range(60))
BEFORE = f"💬: first\n\n🤖:[Demo-OpenAI]\n\n{LONG}\n\n"
JSON = '{"index"'
_number = count(1)


@pytest.mark.parametrize(
    ("ran_by", "may_change"), [("provider", False), ("agent", True), (None, True)]
)
def test_only_a_providers_call_certainly_changes_no_files(
    ran_by: Runner | None, may_change: bool
) -> None:
    calls, proposal = RunningCalls(lambda: 0.0), Proposal(call(1), ran_by=ran_by)
    calls.facts(CallBegan(proposal, tool("web_search", "anthropic")))
    calls.facts(CallEnded(proposal, OK))
    assert calls.take_changes() is may_change


@pytest.fixture(scope="module")
def neovim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    with child(tmp_path_factory.mktemp("running"), width=100, height=24) as nvim:
        yield nvim


@pytest.fixture
def nvim(neovim: Child) -> Child:
    neovim.clear()
    neovim.lua("""
        _G.events = {}
        vim.api.nvim_create_autocmd('User', {
          group = vim.api.nvim_create_augroup('test', {}),
          pattern = { 'ParleyToolStart', 'ParleyToolEnd' },
          callback = function(event) table.insert(_G.events, { event.match, event.data }) end,
        })
    """)
    return neovim


def ask(
    nvim: Child, home: Path, question: str, before: str = "", timeout_s: int = 60, **more: object
) -> None:
    """Ask in a long chat for calls to a server whose tool ends when `home/go` exists."""
    server = {
        "command": sys.executable,
        "args": [str(HERE / "patient_server.py")],
        "env": {"GO": str(home / "go"), "PROGRESS": "half of it"},
        "timeout_s": timeout_s,
    }
    settings = {
        "agent": "Demo-OpenAI",
        "status": {"llm": False},
        "mcp": {"servers": {"patient": server}},
        "approval": {"auto": ["patient/*"]},
        "safety": {"rate_limit_per_minute": 100000},
        "loop": {"timeout_s": timeout_s},
    }
    nvim.lua("require('parley').setup(...)", settings | more)
    nvim.edit(f"chat-{next(_number)}.md", f"{BEFORE}💬: {question}\n")
    nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    if before:
        nvim.command(before)
    nvim.command("normal! G$")
    nvim.command("ParleyRespond")


def ask_for_some(nvim: Child, home: Path, question: str) -> None:
    """Ask for calls that wait for a choice: `look_up`, and `fail`, which fails at once."""
    patient = {
        "command": sys.executable,
        "args": [str(HERE / "patient_server.py")],
        "env": {"GO": str(home / "go")},
    }
    search = {"command": sys.executable, "args": [str(HERE / "search_server.py")]}
    ask(
        nvim,
        home,
        question,
        mcp={"servers": {"patient": patient, "search": search}},
        approval={"auto": []},
    )
    nvim.until_waiting()
    nvim.until_screen("Please choose")
    assert JSON not in nvim.screen()


def row(nvim: Child, start: str) -> str:
    """The screen's last row with this start; "" if there is none."""
    return next(
        (line for line in reversed(nvim.screen().split("\n")) if line.startswith(start)), ""
    )


def complete(nvim: Child) -> None:
    nvim.until(lambda: nvim.lines()[-1] == "💬: ", "the next question")
    nvim.until_idle()


def test_a_running_call_shows_seconds_and_progress_and_is_folded_at_its_end(
    nvim: Child, tmp_path: Path
) -> None:
    ask(nvim, tmp_path, 'call look_up {"query":"google"}')
    nvim.until(lambda: "running" in row(nvim, "❓"), "the state")
    nvim.until(lambda: row(nvim, "❓").endswith("(half of it, 2 of 5)"), "the progress")
    nvim.until(lambda: re.search(r"running [1-9] s \(", row(nvim, "❓")), "a second")
    assert nvim.screen().count("half of it") == 1
    assert row(nvim, "❓").startswith(
        '❓ ya look_up(query: "google") · patient · by rule · running'
    )
    (tmp_path / "go").touch()
    complete(nvim)
    done = nvim.until(lambda: row(nvim, "🛠 "), "the fold")
    assert re.fullmatch(r'🛠 look_up\(query: "google"\) → 5 B, ok · by rule · \d+\.\d s', done)
    assert "🛠️: [look_up]" in nvim.text()
    assert "`found`" not in nvim.screen()


def test_a_call_may_exceed_its_and_the_turns_time_while_its_server_reports_progress(
    nvim: Child, tmp_path: Path
) -> None:
    ask(nvim, tmp_path, 'call look_up {"query":"beat"}', timeout_s=1)
    nvim.until(
        lambda: re.search(r"running \d+ s \(half of it, (1[5-9]|2\d)\)", row(nvim, "❓")),
        "1.5 seconds",
    )
    (tmp_path / "go").touch()
    complete(nvim)
    nvim.until(lambda: ", ok · by rule · " in row(nvim, "🛠 "), "the fold")


def test_progress_is_at_the_tip_if_the_calls_row_is_not_on_the_screen(
    nvim: Child, tmp_path: Path
) -> None:
    search = {"command": sys.executable, "args": [str(HERE / "search_server.py")]}
    slow = 'call slow {"seconds":600}'
    approval = {"auto": ["search/*"]}
    ask(
        nvim,
        tmp_path,
        f"{slow} and call fail {{}}",
        mcp={"servers": {"search": search}},
        approval=approval,
    )
    nvim.until_screen("`it did not work`")
    nvim.until_screen("(step ")
    nvim.until(lambda: nvim.screen().count("step ") == 1, "it once")
    nvim.keys("Gzt")
    nvim.until(lambda: re.search(r"^\S step \d+ \(", nvim.screen(), re.M), "it at the tip instead")
    nvim.command("ParleyStop")
    nvim.until_idle()


def test_a_failed_call_shows_its_result_and_says_that_it_failed(
    nvim: Child, tmp_path: Path
) -> None:
    (tmp_path / "go").touch()
    ask(nvim, tmp_path, 'call look_up {"query":"fail"}')
    complete(nvim)
    nvim.until(
        lambda: re.search(r'look_up\(query: "fail"\).* · failed( [\d.]+ s)?$', row(nvim, "❓")),
        "the state",
    )
    assert "`found`" in nvim.screen()


def test_a_call_shown_as_text_has_its_state_after_its_line(nvim: Child, tmp_path: Path) -> None:
    ask(
        nvim,
        tmp_path,
        'call look_up {"query":"google"}',
        before="setlocal foldmethod=expr foldexpr=0",
    )
    nvim.until(
        lambda: re.search(
            r"\}` running( \d+ s)? \(half of it, 2 of 5\)", nvim.screen().replace("\n", "")
        ),
        "it",
    )
    (tmp_path / "go").touch()
    complete(nvim)
    assert "running" not in nvim.screen()


def test_listeners_receive_each_calls_start_and_end(nvim: Child, tmp_path: Path) -> None:
    (tmp_path / "go").touch()
    ask(nvim, tmp_path, 'call look_up {"query":"google"}')
    complete(nvim)
    nvim.until(lambda: len(nvim.lua("return _G.events")) == 2, "two events")
    (start, began), (end, ended) = nvim.lua("return _G.events")
    assert (start, end) == ("ParleyToolStart", "ParleyToolEnd")
    buf = nvim.nvim.current.buffer.number
    assert {key: began[key] for key in ("buf", "name", "server")} == {
        "buf": buf,
        "name": "look_up",
        "server": "patient",
    }
    assert ended["id"] == began["id"]
    assert ended["ok"] is True
    assert ended["seconds"] >= 0


def test_after_a_stop_no_call_is_shown_as_running(nvim: Child, tmp_path: Path) -> None:
    ask(nvim, tmp_path, 'call look_up {"query":"google"}')
    nvim.until(lambda: "running" in row(nvim, "❓"), "the state")
    nvim.command("ParleyStop")
    nvim.until_idle()
    nvim.until(lambda: "failed" in row(nvim, "❓") or ", error" in row(nvim, "🛠"), "how it ended")
    assert "cancelled" in nvim.text()
    assert "running" not in nvim.screen()


def test_calls_that_end_out_of_order_keep_their_rows_times_and_outcomes(
    nvim: Child, tmp_path: Path
) -> None:
    ask_for_some(
        nvim,
        tmp_path,
        'call look_up {"query":"google"} and call fail {} and call slow {"seconds":0.3}',
    )
    nvim.keys("ztya")
    nvim.until(
        lambda: "🛠 slow" in nvim.screen() or "🛠️: [slow]" in nvim.screen(), "the last one's result"
    )
    nvim.until(
        lambda: re.search(r"^❓ ya look_up.* · running [1-9] s$", nvim.screen(), re.M), "a second"
    )
    nvim.until(
        lambda: re.search(r"^❓ ya fail\(\).* · failed", nvim.screen(), re.M), "how it ended"
    )
    assert re.search(r"^🛠 slow\(seconds: 0.3\).* → 12 B, ok · 0\.[3-9] s$", nvim.screen(), re.M)
    assert JSON not in nvim.screen()
    (tmp_path / "go").touch()
    complete(nvim)
    lines = nvim.until_screen("🛠 look_up").split("\n")
    signs = [line.split("(")[0] for line in lines if re.match("❓|🛠 ", line)]
    assert signs == ["🛠 look_up", "❓ ya fail", "🛠 slow"]
    assert "`it did not work`" in lines
    assert "+--" not in nvim.screen()
    assert JSON not in nvim.screen()


def test_a_call_undecided_after_an_undo_does_not_say_how_it_ended(
    nvim: Child, tmp_path: Path
) -> None:
    (tmp_path / "go").touch()
    ask_for_some(nvim, tmp_path, 'call look_up {"query":"a"} and call look_up {"query":"fail"}')
    nvim.keys("ya")
    complete(nvim)
    nvim.until(lambda: "failed" in row(nvim, "❓"), "how it failed")
    nvim.keys("<Esc>u")
    nvim.until_screen("Please choose")
    nvim.until(
        lambda: row(nvim, "W ❓").endswith('look_up(query: "fail") · patient'), "the row alone"
    )
    assert not re.search("· (done|failed)", nvim.screen())


def test_undoing_a_choice_and_then_its_answer_leaves_rows_and_then_nothing(
    nvim: Child, tmp_path: Path
) -> None:
    (tmp_path / "go").touch()
    ask_for_some(nvim, tmp_path, 'call look_up {"query":"google"} and call fail {}')
    nvim.keys("ya")
    complete(nvim)
    nvim.keys("u")
    nvim.until_screen("Please choose")
    assert nvim.screen().count("❓ ") == 2
    assert JSON not in nvim.screen()
    nvim.keys("u")
    nvim.until(lambda: "❓" not in nvim.text(), "the undo")
    nvim.until_idle()
    assert "Error" not in nvim.messages()
    assert "+--" not in nvim.screen()


def test_undoing_and_redoing_a_choice_leaves_rows(nvim: Child, tmp_path: Path) -> None:
    ask_for_some(nvim, tmp_path, 'call look_up {"query":"google"} and call fail {}')
    nvim.keys("yo")
    nvim.until_screen("❓ yo look_up(")
    assert JSON not in nvim.screen()
    for key, sign in {"u": "❓", "<C-r>": "❓ yo"}.items():
        nvim.until_idle()
        nvim.keys(key)
        nvim.until_screen(f'{sign} look_up(query: "google")')
        assert "❓ fail()" in nvim.screen()
        assert JSON not in nvim.screen()


def test_undoing_a_choice_never_shows_its_calls_text_even_before_the_host_reacts(
    nvim: Child, tmp_path: Path
) -> None:
    ask_for_some(nvim, tmp_path, 'call look_up {"query":"google"} and call fail {}')
    nvim.keys("yo")
    nvim.until_screen("❓ yo look_up(")
    nvim.until_idle()
    nvim.lua("_G.draw = require('parley.view').draw require('parley.view').draw = function() end")
    try:
        nvim.keys("u")
        nvim.until(lambda: "❓:[yo]" not in nvim.text(), "the undo")
        assert JSON not in nvim.screen()
    finally:
        nvim.lua("require('parley.view').draw = _G.draw")


def test_a_call_that_the_user_has_opened_stays_open_when_it_is_decided(
    nvim: Child, tmp_path: Path
) -> None:
    ask_for_some(nvim, tmp_path, 'call look_up {"query":"google"} and call fail {}')
    nvim.keys("zo")
    nvim.until_screen(JSON)
    nvim.keys("yo")
    nvim.until(lambda: "❓:[yo]" in nvim.text(), "the choice")
    nvim.until_idle()
    assert "❓:[yo]" in nvim.screen()
    assert "\n❓ fail()" in nvim.screen()


def test_the_users_folds_stay_when_a_choice_in_them_is_undone(nvim: Child, tmp_path: Path) -> None:
    ask_for_some(nvim, tmp_path, 'call look_up {"query":"google"} and call fail {}')
    first = 1 + next(row for row, line in enumerate(nvim.lines()) if line.startswith("💬: call"))
    last = len(nvim.lines())
    nvim.command(
        f"setlocal nofoldenable | {first},{last}fold | setlocal foldenable | {first}foldopen"
    )
    nvim.keys("yo")
    nvim.until_screen("❓ yo look_up(")
    nvim.until_idle()
    nvim.keys("u")
    nvim.until_screen('❓ look_up(query: "google")')
    levels = [nvim.nvim.funcs.foldlevel(line) for line in range(first, last + 1)]
    marks = [line.startswith("❓") for line in nvim.lines()[first - 1 :]]
    assert levels == [2 if is_call else 1 for is_call in marks]
