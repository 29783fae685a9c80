"""What programs read: one shape for all commands, errors included, and the tree of a chat."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest

from parley import engine
from parley.cli import main
from parley.cli.exits import EXITS
from parley.cli.terminal import snake_case
from tests.cli.fork_server import ForkServer
from tests.cli.shell import Shell
from tests.test_docs import SHELL, table

CORPUS = sorted((Path(__file__).parent.parent / "transcripts").glob("*.md"))
CHAT = "💬: find the stock price of google\n"
COMMANDS = {
    "an answer": ("respond chat.md --choose yA", 0),
    "calls that wait": ("respond chat.md", 3),
    "a chat that is not there": ("respond none.md", 1),
    "no question": ("respond empty.md", 1),
    "an agent that is not there": ("respond chat.md --agent Nobody", 1),
    "wrong arguments": ("respond", 2),
    "a summary": ("compact chat.md", 0),
    "a summary of nothing": ("compact empty.md", 1),
    "a check": ("check chat.md", 0),
    "a check with errors": ("check broken.md none.md chat.md", 1),
    "a log": ("log chat.md", 0),
    "a log that is not there": ("log none.md", 1),
    "tools": ("tools", 0),
    "a command that is not there": ("nothing", 2),
}


def documented() -> set[str]:
    """The types that the page on the shell names."""
    return {name.strip(" `") for types, *_ in table(SHELL, "type", "of") for name in types.split(",")}


def test_the_page_names_all_that_a_turn_tells() -> None:
    kinds = {snake_case(event) for event in get_args(engine.TurnEvent)} - {"aside"}
    assert kinds <= documented()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_speaks_in_lines_of_one_shape_and_ends_with_its_code(
    tmp_path: Path, forks: ForkServer, name: str
) -> None:
    shell = Shell(tmp_path, forks)
    shell.chat.write_text(CHAT, encoding="utf-8")
    (tmp_path / "empty.md").write_text("nothing\n", encoding="utf-8")
    (tmp_path / "broken.md").write_text("💬: q\n\n🤖:[A]\n\n❓: `{no}`\n", encoding="utf-8")
    if name == "a log":
        shell.run("respond", "chat.md")
    arguments, code = COMMANDS[name]
    done = shell.run(*arguments.split(), "--json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.returncode, done.stderr) == (code, b"")
    assert {line["type"] for line in lines} <= documented()
    assert lines[-1] == {"type": "end", "code": code, "kind": EXITS[code][0]}
    assert [line["type"] for line in lines].count("end") == 1
    assert {"record", "totals"} <= {line["type"] for line in lines} or name != "a log"
    assert any(line["type"] in ("error", "problem") for line in lines) == (code in (1, 2))


def test_a_call_that_waits_is_told_as_it_is_and_as_a_person_reads_it(
    tmp_path: Path, forks: ForkServer
) -> None:
    shell = Shell(tmp_path, forks)
    shell.chat.write_text(CHAT, encoding="utf-8")
    lines = [json.loads(line) for line in shell.run("respond", "chat.md", "--json").stdout.splitlines()]
    (call,) = [line for line in lines if line["type"] == "call_waiting"]
    assert call["text"] == 'web_search {"query":"google stock price"}'
    assert call["caution"] == ""
    assert (call["call"]["name"], call["call"]["arguments"]) == (
        "web_search",
        '{"query":"google stock price"}',
    )


def tree(path: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["parse", str(path)]) == 0
    parsed: dict[str, Any] = json.loads(capsys.readouterr().out)
    return parsed


def test_a_tree_tells_what_each_part_is_and_where_it_stands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "chat.md"
    path.write_text("💬: q\n🔒: mine\n\n🤖:[A]\n\none\n\n❓:[yX] `{no}`\n", encoding="utf-8")
    parsed = tree(path, capsys)
    assert parsed["version"] == 1
    (exchange,) = parsed["exchanges"]
    assert exchange["question"] == {
        "line": 1,
        "end_line": 3,
        "parts": [
            {"kind": "text", "line": 1, "end_line": 1, "text": "q"},
            {"kind": "note", "line": 2, "end_line": 3, "text": "mine"},
        ],
    }
    assert exchange["answers"] == [
        {
            "line": 4,
            "end_line": 8,
            "agent": "A",
            "segments": [
                {"kind": "text", "line": 6, "end_line": 7, "text": "one"},
                {
                    "kind": "broken",
                    "line": 8,
                    "end_line": 8,
                    "text": "❓:[yX] `{no}`",
                    "choice": None,
                    "marker": "proposal",
                },
            ],
        }
    ]
    assert [(p["line"], p["column"]) for p in parsed["problems"]] == [(8, 5), (8, 11)]


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_all_parts_of_a_tree_stand_one_below_the_other(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parsed = tree(path, capsys)
    answers = [answer for exchange in parsed["exchanges"] for answer in exchange["answers"]]
    questions = [exchange["question"] for exchange in parsed["exchanges"] if exchange["question"]]
    for parts in (
        parsed["preamble"],
        *(q["parts"] for q in questions),
        *(a["segments"] for a in answers),
        sorted([*questions, *answers], key=lambda turn: turn["line"]),
    ):
        lines = [number for part in parts if "line" in part for number in (part["line"], part["end_line"])]
        assert lines == sorted(lines)
        assert all(number >= 1 for number in lines)
    assert all(problem["line"] >= 1 and problem["column"] >= 1 for problem in parsed["problems"])
