"""`parley respond` asks the user at its terminal. The tests cover the screen and each key."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.glass import Glass
from tests.cli.shell import PARLEY, Shell, is_stopped
from tests.cli.test_terminal import SERVER
from tests.nvim.harness import Child
from tests.workspace.trees import work_tree

QUESTION = "can you find the latest stock price of google and microsoft?"
GOOGLE = 'web_search(query: "google stock price") · mock'
MICROSOFT = 'web_search(query: "microsoft stock price") · mock'
SAYS = "Let me search the web for both."
MEANING = "ya all 2 · yo this · yA/yO and remember · yn no · K details · j/k another call"
CHOOSE = ">> Please choose ("
PROMPT = f"{CHOOSE}yA/ya/yo/yO):"
ANSWER = "Google (GOOGL) is at $911 and Microsoft (MSFT) is at $544 as of today."
Respond = Callable[..., AbstractContextManager[Glass]]


@pytest.fixture
def respond(shell: Shell, neovim: Child) -> Respond:
    @contextmanager
    def start(
        *arguments: str, columns: int = 80, rows: int = 24, **environ: Any
    ) -> Iterator[Glass]:
        with shell.terminal(
            "respond", "chat.md", *arguments, columns=columns, rows=rows, **environ
        ) as terminal:
            yield Glass(neovim, terminal, columns, rows)

    return start


def calls(shell: Shell, *arguments: dict[str, str]) -> None:
    """A question after which the model calls a tool this many times."""
    shell.serve("pad", SERVER, HOSTILE='"a pad"', more="safety.max_tools_per_request = 6\n")
    shell.ask(" ".join(f"call note {json.dumps(each)}" for each in arguments))


def test_calls_are_drawn_as_in_the_editor_and_run_after_approval(
    shell: Shell, respond: Respond
) -> None:
    shell.ask(QUESTION)
    with respond() as glass:
        assert glass.until_row(CHOOSE) == [
            SAYS,
            "",
            f"▸1 ❓ {GOOGLE}",
            f" 2 ❓ {MICROSOFT}",
            MEANING,
            "q later",
            PROMPT,
        ]
        assert not glass.terminal.is_by_lines()
        glass.press("yX")  # not a choice: the next y starts one
        glass.press("ya")
        assert glass.end() == 0
        rows = glass.rows()
        assert glass.terminal.is_by_lines()
    assert rows[:4] == [SAYS, "", f"❓ ya {GOOGLE}", f"❓ ya {MICROSOFT}"]
    results = [
        f"🛠 {GOOGLE} → 61 B, ok",
        '   {"matches": ["google stock GOOGL price is $911 as of today"]}',
    ]
    at = rows.index(results[0])
    assert rows[at : at + 2] == results
    assert " ".join(rows[8:11]).split()[: len(ANSWER.split())] == ANSWER.split()
    assert shell.text.count("❓:[ya]") == 2
    assert shell.text.endswith("💬: \n")


def test_calls_are_decided_one_at_a_time_and_declining_takes_a_reason(
    shell: Shell, respond: Respond
) -> None:
    shell.ask(QUESTION)
    with respond() as glass:
        glass.until_row(CHOOSE)
        glass.press("jyo")
        rows = glass.until_row("ya yes · yA and remember")
        assert rows[2:4] == [f"❓ yo {MICROSOFT}", f"❓ {GOOGLE}"]
        glass.press("yn")
        glass.until_row("reason (may be empty):")
        glass.press("too olx\x7fd, é中\r")
        assert glass.end() == 0
    assert "The user declined this call. too old, é中" in shell.text
    assert shell.text.count("🛠️:") == 2
    assert "$544" in shell.text
    assert "$911" not in shell.text


def test_a_cancelled_reason_decides_nothing_and_leaving_keeps_the_calls_waiting(
    shell: Shell, respond: Respond
) -> None:
    shell.ask(QUESTION)
    for leave in ("\x03", "\x04", "q"):
        with respond() as glass:
            glass.until_row(CHOOSE)
            glass.press("yN")
            glass.until_row("reason (may be empty):")
            glass.press("\x03")
            glass.until_row(CHOOSE)
            glass.press(leave)
            assert glass.end() == 3
            rows = "\n".join(glass.rows())
            assert glass.terminal.is_by_lines()
        assert rows.rstrip().endswith(
            f"❓ {GOOGLE}\n❓ {MICROSOFT}\n"
            "parley: these calls are waiting. parley respond chat.md asks about them again"
        )
    assert shell.text.count("❓: `") == 2


def test_a_whole_call_is_shown_on_pages_and_then_the_screen_is_restored(
    shell: Shell, respond: Respond
) -> None:
    shell.ask(QUESTION)
    with respond(columns=60, rows=16) as glass:
        before = glass.until_row(CHOOSE)
        glass.press("K")
        page = glass.until_row("1-15 of")
        assert page[:6] == [
            "mock/web_search",
            "",
            "Arguments",
            "│ {",
            '│   "query": "google stock price"',
            "│ }",
        ]
        glass.press("G")
        page = glass.until_row('"required": [')
        assert page[-1].endswith("q back")
        glass.press("q")
        assert glass.until_row(CHOOSE) == before
        glass.press("q")
        assert glass.end() == 3


@pytest.mark.parametrize("columns", [60, 80])
def test_six_long_calls_fit_the_terminal_and_an_approval_asks_to_see_them_first(
    shell: Shell, respond: Respond, columns: int
) -> None:
    lines = "\n".join(f"line {number} of what is written" for number in range(30))
    calls(shell, *({"path": f"/src/{name}.py", "text": f"{name} {lines}"} for name in "abcdef"))
    with respond(columns=columns) as glass:
        rows = glass.until_row(CHOOSE)
        area = rows[rows.index("") + 1 :] if "" in rows else rows
        assert len(area) <= 23
        assert [row[1] for row in area if "❓ note(" in row] == list("123456")
        assert area[1:4] == [
            "     text:",
            "     │ a line 0 of what is written",
            "     │ line 1 of what is written",
        ]
        assert any("rows, K" in row for row in area)
        assert all(len(row) < columns for row in area)
        glass.press("ya")
        rows = glass.until_row("was not fully shown")
        assert "❓:[ya]" not in shell.text
        glass.press("6")
        glass.until_row("▸6 ❓")
        glass.press("ya")
        assert glass.end() == 0
    assert shell.text.count("❓:[ya]") == 6


def test_no_key_counts_before_its_call_could_be_read(shell: Shell, respond: Respond) -> None:
    calls(shell, {"text": "x"})
    with respond(PARLEY_LEAST_SEEN_S="3600") as glass:
        glass.until_row(CHOOSE)
        for key in ("ya", "yA", "ya", "yo"):
            glass.press(key)
            glass.until_row(f"has just appeared: read it, then press {key} again")
        glass.press("q")
        assert glass.end() == 3
    assert "❓: `" in shell.text


@pytest.mark.parametrize("pages", [0, 12])
def test_only_the_rows_that_the_pager_reached_count_as_shown(
    shell: Shell, respond: Respond, pages: int
) -> None:
    calls(shell, {"text": "\n".join(f"line {number}" for number in range(60))})
    with respond(rows=12) as glass:
        glass.until_row(CHOOSE)
        glass.press("K")
        glass.until_row("1-11 of")
        for _ in range(pages):
            glass.press(" ")
        glass.press("G")  # skipped rows were not read
        glass.until(lambda rows: re.search(r"-(\d+) of \1 ·", rows) is not None, "the last page")
        glass.press("q")
        glass.until_row(CHOOSE)
        glass.press("ya")
        if not pages:
            glass.until_row("was not fully shown")
            glass.press("ya")
        assert glass.end() == 0
        assert ("was not fully shown" in glass.terminal.text) == (pages == 0)


def edits_a_file(shell: Shell, lines: int) -> Path:
    """A question after which the model changes all lines of a file in a Git project."""
    root = work_tree(
        shell.folder / "project", {"a.txt": "".join(map("old {}\n".format, range(lines)))}
    )
    shell.folder, shell.chat = root, root / "chat.md"
    content = "".join(map("new {}\n".format, range(lines)))
    shell.ask(f"call write_file {json.dumps({'path': 'a.txt', 'content': content})}")
    return root / "a.txt"


def test_the_diff_of_a_waiting_edit_is_drawn_and_is_approved_as_drawn(
    shell: Shell, respond: Respond
) -> None:
    file = edits_a_file(shell, 2)
    with respond() as glass:
        rows = glass.until_row(CHOOSE)
        at = rows.index("❓ write_file(a.txt) +2 −2 · workspace")
        drawn = ["  a.txt", "  @@ -1,2 +1,2 @@", "  - old 0", "  - old 1", "  + new 0", "  + new 1"]
        assert rows[at + 1 : at + 7] == drawn
        file.write_text("old 0\nmine\n")
        glass.press("ya")
        rows = glass.until_row("the file has changed: look at the new diff of write_file")
        assert "  - mine" in rows
        assert file.read_text() == "old 0\nmine\n"
        glass.press("ya")
        assert glass.end() == 0
    assert file.read_text() == "new 0\nnew 1\n"


@pytest.mark.parametrize("pages", [0, 12])
def test_a_diff_longer_than_the_terminal_counts_when_the_pager_reached_its_end(
    shell: Shell, respond: Respond, pages: int
) -> None:
    file = edits_a_file(shell, 30)
    with respond(rows=20) as glass:
        rows = glass.until_row(CHOOSE)
        assert "  ⋮ +47 rows, K" in rows
        assert "  + new 0" not in rows
        glass.press("K")
        glass.until_row("1-19 of")
        glass.press(" " * pages)
        if pages:
            glass.until(lambda text: re.search(r"-(\d+) of \1 ·", text) is not None, "the end")
        glass.press("q")
        glass.until_row(CHOOSE)
        glass.press("ya")
        if not pages:
            glass.until_row("write_file was not fully shown as it is now: press K or ya again")
            assert file.read_text().startswith("old 0\n")
            glass.press("ya")
        assert glass.end() == 0
        assert ("was not fully shown" in glass.terminal.text) == (pages == 0)
    assert file.read_text().startswith("new 0\n")


def test_a_call_that_may_have_run_warns_and_runs_after_a_second_approval(
    shell: Shell, respond: Respond
) -> None:
    calls(shell, {"text": "x"})
    with respond() as glass:
        glass.until_row(CHOOSE)
        before = shell.text
        glass.press("ya")
        assert glass.end() == 0
    shell.chat.write_text(before, encoding="utf-8")
    with respond() as glass:
        rows = glass.until_row(CHOOSE)
        assert "this call may already have run" in " ".join(rows)
        glass.press("ya")
        glass.until_row("no result in the file. ya reruns it")
        glass.press("ya")
        assert glass.end() == 0


def test_input_from_before_the_question_is_discarded(shell: Shell, respond: Respond) -> None:
    shell.ask(QUESTION)
    with respond(PARLEY_DEMO_PACE="0.03") as glass:
        glass.until_row("Let me")
        glass.press("yayayA")
        glass.until_row(CHOOSE)
        assert "❓:[" not in shell.text
        glass.press("q")
        assert glass.end() == 3
    assert "❓:[" not in shell.text


def test_in_a_terminal_of_three_rows_an_approval_asks_to_see_the_call_first(
    shell: Shell, respond: Respond
) -> None:
    calls(shell, {"text": "hello"})
    with respond(columns=40, rows=3) as glass:
        glass.until_row(CHOOSE)
        glass.press("ya")
        glass.until(lambda text: "press K or ya again" in " ".join(text.split()), "the doubt")
        assert "❓:[" not in shell.text
        glass.press("ya")
        assert glass.end() == 0
    assert shell.text.count("❓:[ya]") == 1


def test_pasted_text_decides_nothing_but_can_be_a_reason(shell: Shell, respond: Respond) -> None:
    shell.ask(QUESTION)
    with respond() as glass:
        glass.until_row(CHOOSE)
        glass.press("\x1b[200~yaml\nyA\nyn\n\x1b[201~")
        glass.until_row("pasted text is not a choice: type the choice")
        glass.press("\x1b[20")  # terminal input arrives in pieces
        glass.press("0~yo" + "ya\n" * 3000)
        glass.press("yA\x1b[201~")
        glass.press("y\x1b[200~a\x1b[201~")
        assert "❓:[" not in shell.text
        glass.press("yN")
        glass.until_row("reason (may be empty):")
        glass.press("not \x1b[200~this\x08\none, ya\n\x1b[201~but that\r")
        assert glass.end() == 0
        assert (
            glass.terminal.output.count(b"\x1b[?2004h")
            == glass.terminal.output.count(b"\x1b[?2004l")
            == 1
        )
    assert shell.text.count("The user declined this call. not this one, ya but that") == 2
    shell.ask(QUESTION)
    with respond() as glass:
        glass.until_row(CHOOSE)
        glass.press("\x1b[200~ya")  # its end never arrives

        def is_over(_: str) -> bool:
            glass.press("\x03")
            return glass.terminal.is_by_lines()

        glass.until(is_over, "Ctrl-C")
        assert glass.end() in (3, 130)  # Ctrl-C may have been pressed twice
    assert "❓:[" not in shell.text


def test_a_question_stays_readable_after_a_resize_and_a_stop(
    shell: Shell, respond: Respond
) -> None:
    shell.ask(QUESTION)
    with respond(columns=100) as glass:
        glass.until_row(CHOOSE)
        glass.resize(60, 20)
        narrow = "yn no · K details\nj/k another call · q later\n" + PROMPT
        rows = glass.until(lambda text: text.endswith(narrow), "what fits into 60 cells")
        assert f"▸1 ❓ {GOOGLE}" in rows
        glass.press("K")
        glass.until_row("│ {")
        os.kill(glass.terminal.process.pid, signal.SIGTSTP)
        glass.until(lambda _: is_stopped(glass.terminal.process.pid), "the stop")
        assert glass.terminal.is_by_lines()
        assert f"▸1 ❓ {GOOGLE}" in glass.until_row(CHOOSE)  # the shell must not see the page
        os.kill(glass.terminal.process.pid, signal.SIGCONT)
        glass.until(lambda _: not glass.terminal.is_by_lines(), "keys")
        glass.until_row("│ {")
        glass.press("q")
        glass.until(lambda text: text.endswith(PROMPT), "the prompt")
        glass.press("ya")
        assert glass.end() == 0
    assert ANSWER in shell.text


def test_a_signal_that_ends_the_command_restores_the_terminal(
    shell: Shell, respond: Respond
) -> None:
    shell.ask(QUESTION)
    with respond() as glass:
        glass.until_row(CHOOSE)
        os.kill(glass.terminal.process.pid, signal.SIGTERM)
        assert glass.end() == 130
        assert glass.terminal.is_by_lines()
    assert shell.text.count("❓: `") == 2


def test_the_scope_setting_determines_the_keys_meaning(shell: Shell, respond: Respond) -> None:
    shell.configure('keys.scope = "case"')
    shell.ask(QUESTION)
    with respond() as glass:
        glass.until_row("ya this · yA all 2 and remember")
        glass.press("ya")
        rows = glass.until_row("ya yes · yA and remember")
        assert rows[2:4] == [f"❓ ya {GOOGLE}", f"❓ {MICROSOFT}"]
        glass.press("q")
        assert glass.end() == 3


def test_the_user_is_asked_below_a_piped_answer(tmp_path: Path, neovim: Child) -> None:
    shell = Shell(tmp_path)
    shell.ask(QUESTION)
    command = shlex.join([*PARLEY, "respond", "chat.md"])
    with shell.terminal("-c", f"{command} | cat", program=("/bin/sh",)) as terminal:
        glass = Glass(neovim, terminal, 80, 24)
        glass.until(
            lambda text: SAYS in text and GOOGLE in text and PROMPT in text, "what is asked"
        )
        glass.press("ya")
        assert glass.end() == 0
        rows = glass.until_row("$544 as of today. Do")
        assert f"❓ ya {MICROSOFT}" in rows
