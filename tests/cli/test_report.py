"""Calls that others ran while the model wrote its reply, for a pipe, a person and a program."""

from __future__ import annotations

from dataclasses import replace

import pytest

from parley.chat.transcript import ToolCall
from parley.cli.ask import AnswerReport
from parley.cli.report import Report, TerminalReport
from parley.cli.terminal import open_screen
from parley.models.events import Finished, Ran, RanResult, TextDelta
from parley.storage.chat_file import TextDocument
from parley.tools.results import Outcome
from tests.chats import TOOLS
from tests.fakes import LoggedTools, ScriptedModel, ScriptStep, Turns

FIND = ToolCall("s1", "web_search", '{"query":"x"}')
REPLY: list[ScriptStep] = [
    TextDelta("I look."),
    Ran(FIND, "provider"),
    RanResult("s1", Outcome("ok", "a page\nanother")),
    TextDelta("\nNothing "),
    TextDelta("yet."),
    Ran(replace(FIND, id="s2"), "provider"),
    TextDelta("Once more."),
    Ran(ToolCall("e1", "edit", "{}"), "agent"),
    RanResult("e1", Outcome("error", "no such file")),
    TextDelta("Done.\n📝: nothing was found."),
    Finished("complete"),
]


async def reported(report: Report, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """The standard output and the standard error of a turn."""
    open_screen()
    turns = Turns("", ScriptedModel(list(REPLY)), LoggedTools(TOOLS))
    document = TextDocument("💬: What is new?\n", 0, report.text)
    turns.ports = replace(turns.ports, document=document, observer=report)
    report.end(await turns.run())
    return capsys.readouterr()


async def test_a_pipe_gets_the_calls_with_those_who_ran_them_between_the_texts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    out, _ = await reported(Report(), capsys)
    assert out.split("\n\n") == [
        "I look.",
        '❓ web_search {"query":"x"} (run by the provider)\n🛠️ web_search\na page\nanother',
        "Nothing yet.",
        '❓ web_search {"query":"x"} (run by the provider)',
        "Once more.",
        "❓ edit {} (run by the agent)\n🛠️ edit\nno such file",
        "Done.\n📝: nothing was found.\n",
    ]


async def test_an_answer_alone_has_a_blank_line_in_place_of_each_call(
    capsys: pytest.CaptureFixture[str],
) -> None:
    out, _ = await reported(AnswerReport(), capsys)
    assert out == "I look.\n\nNothing yet.\n\nOnce more.\n\nDone.\n"


async def test_a_terminal_gets_a_row_for_each_call_and_the_start_of_its_result(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, rows = await reported(TerminalReport(), capsys)
    assert [row for row in rows.splitlines() if row.strip()] == [
        '❓ web_search(query: "x") · run by the provider',
        '🛠 web_search(query: "x") · run by the provider → 2 lines, 14 B, ok',
        "   a page",
        "   another",
        '❓ web_search(query: "x") · run by the provider',
        "❓ edit() · run by the agent",
        "🛠 edit() · run by the agent → 12 B, error",
        "   no such file",
    ]
