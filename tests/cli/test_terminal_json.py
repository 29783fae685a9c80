"""The output for programs: one shape for all commands and errors, and the tree of a chat."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any, get_args

import pytest
from jsonschema import Draft202012Validator

from parley import engine
from parley.chat.transcript import Attachment, Proposal, Result, ServerTask, ToolCall
from parley.cli import main
from parley.cli.exits import EXITS
from parley.cli.terminal import emit, open_screen, plain, snake_case
from parley.models.events import (
    AgentPlan,
    Answered,
    Aside,
    Call,
    Cited,
    Finished,
    Paused,
    Ran,
    RanResult,
    RateLimits,
    TextDelta,
    ThinkingDelta,
    ThinkingEnd,
    Usage,
    Withdrawn,
)
from parley.policy.permissions import Permission
from parley.storage.ledger import LedgerFile, default_path
from parley.tools.catalogue import Tool
from tests.cli.shell import Shell
from tests.forks import ForkServer
from tests.json_schema import OF_ONE, schema, types_of, validate
from tests.streams_corpus import DECODERS, STREAMS, events_of
from tests.test_docs import JSON, table
from tests.test_transcripts import expect

CORPUS = sorted((Path(__file__).parent.parent / "transcripts").glob("*.md"))
CALL = ToolCall("c1", "web_search", '{"query": 1}', 0, '{"more": 1}')
TOOL = Tool("mock", "web_search", input_schema={"type": "object"}, output_schema={"type": "object"})
RESULT = Result("ok", "body", (Attachment("a, 1 B", f"chat.assets/{'0' * 64}.png"),))
CHAT = "💬: find the stock price of google\n"
COMMANDS = {
    "calls that wait": ("respond chat.md", 3),
    "several chats": ("respond chat.md none.md", 1),
    "an answer, by a choice on calls that were seen": ("respond chat.md --choose yA", 0),
    "a chat that is not there": ("respond none.md", 1),
    "no question": ("respond empty.md", 1),
    "an agent that is not there": ("respond chat.md --agent Nobody", 1),
    "invalid arguments": ("respond", 2),
    "a comparison": ("compare chat.md Demo Demo-OpenAI", 3),
    "a summary": ("compact chat.md", 0),
    "a summary of nothing": ("compact empty.md", 1),
    "a check": ("check chat.md", 0),
    "a check with errors": ("check broken.md none.md chat.md", 1),
    "a log": ("log chat.md", 0),
    "a log that is not there": ("log none.md", 1),
    "a new chat": ("ask hello", 0),
    "a chat to continue that is not there": ("ask hello -c none.md", 1),
    "nothing asked": ("ask", 2),
    "tools": ("tools", 0),
    "agents": ("agents", 0),
    "prompts": ("prompts", 0),
    "skills": ("skills", 0),
    "models": ("agents --models", 0),
    "settings": ("config", 0),
    "permissions": ("allow", 0),
    "the known chats": ("list", 0),
    "chats with a word": ("list google", 0),
    "a permission that is not there": ("allow --remove 7", 1),
    "a setting that is not there": ("config nothing", 1),
    "a command that is not there": ("nothing", 2),
}


EXAMPLES: tuple[engine.TurnEvent, ...] = (
    TextDelta("a"),
    ThinkingDelta("b"),
    ThinkingEnd("c", True),
    Call(CALL),
    Usage(1, 2, 3, 4, 5),
    Finished("refusal", "no"),
    Withdrawn(),
    RateLimits((("requests-remaining", "1"),)),
    Answered("another"),
    Aside("not told as a line of its own"),
    engine.ServerWait(("a", "b")),
    engine.MissingTools(("a",)),
    engine.CallBegan(Proposal(CALL, "ya"), TOOL),
    engine.TaskBegan(Proposal(CALL, "ya", task=ServerTask("task-1"))),
    engine.CallProgress(TOOL, "{}", "half"),
    engine.CallEnded(Proposal(CALL, "ya"), RESULT),
    engine.CallRefused(Proposal(CALL), Result("refused", "no")),
)


def rows() -> dict[str, str]:
    """The types on the page, with its text about their fields."""
    cells = table(JSON, "type", "of")
    return {name.strip(" `"): fields for types, _, fields in cells for name in types.split(",")}


def names(schema: Any) -> set[str]:
    """A line's properties in all of its shapes."""
    own = set(schema.get("properties", ())) - {"type"}
    return own.union(*(names(shape) for shape in schema.get("anyOf", ())))


def printed(capsys: pytest.CaptureFixture[str], events: Iterable[engine.TurnEvent]) -> list[str]:
    """The lines for a turn's events."""
    open_screen()
    for event in events:
        if not isinstance(event, Aside):
            emit(snake_case(type(event)), **plain(event))
    return capsys.readouterr().out.splitlines()


def test_the_schema_next_to_the_page_matches_the_code() -> None:
    Draft202012Validator.check_schema(schema())
    expect(
        JSON.with_suffix(".schema.json"), json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"
    )


def test_the_page_has_every_type_of_the_schema_with_its_fields() -> None:
    page, definitions = rows(), schema()["$defs"]
    types = {name.removeprefix("line_") for name in definitions if name.startswith("line_")}
    assert set(page) == types
    for kind in types - {"record"}:  # the page does not list the facts of each kind of record
        fields = names(definitions[f"line_{kind}"]) - ({"file"} if kind in OF_ONE else set())
        assert all(f"`{field}`" in page[kind] for field in fields), kind


def test_every_command_prints_lines_of_the_schema_and_each_type_occurs(
    tmp_path: Path, forks: ForkServer, capsys: pytest.CaptureFixture[str]
) -> None:
    shell = Shell(tmp_path, forks)
    (tmp_path / "empty.md").write_text("nothing\n", encoding="utf-8")
    (tmp_path / "broken.md").write_text("💬: q\n\n🤖:[A]\n\n❓: `{no}`\n", encoding="utf-8")
    types = types_of(printed(capsys, EXAMPLES))
    assert {type(example) for example in EXAMPLES} == set(get_args(engine.TurnEvent))
    for path in sorted(STREAMS.glob("*/*.sse")):
        if path.parent.name in DECODERS:
            events = events_of(path, [path.read_bytes()])[0]
            told = [
                event
                for event in events
                if not isinstance(event, Ran | RanResult | Cited | AgentPlan | Paused)
            ]
            types |= types_of(printed(capsys, told))
    with closing(LedgerFile(default_path(shell.environ))) as ledger:
        ledger.allow(Permission("demo", "web_search", "d"), "")
    for file in ("prompts/p.md", "skills/s/SKILL.md"):
        path = Path(shell.environ["XDG_CONFIG_HOME"]) / "parley" / file
        path.parent.mkdir(parents=True)
        path.write_text("---\ndescription: D\n---\n", encoding="utf-8")
    for name, (arguments, code) in COMMANDS.items():
        shell.chat.write_text(CHAT, encoding="utf-8")
        done = shell.run(*arguments.split(), "--json")
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        assert (done.returncode, done.stderr) == (code, b""), name
        types |= types_of(done.stdout.splitlines())
        assert lines[-1] == {"type": "end", "code": code, "kind": EXITS[code][0]}
        assert [line["type"] for line in lines].count("end") == 1
        assert any(line["type"] in ("error", "problem") for line in lines) == (code in (1, 2)), name
    types |= types_of(verified(shell).splitlines()) | {"changed_file", "revert", "model"}
    assert types == set(rows())


def verified(shell: Shell) -> bytes:
    """The output for a chat with an edit, a forged answer, and earlier settings."""
    shell.chat.write_text(CHAT, encoding="utf-8")
    assert shell.run("respond", "chat.md").returncode == 3
    assert shell.run("respond", "chat.md", "--choose", "yA").returncode == 0
    text = shell.text.replace("google", "apple", 1).replace(
        "💬: \n", "💬: q\n\n🤖:[A]\n\nForged.\n"
    )
    shell.chat.write_text(text, encoding="utf-8")
    shell.configure('system_prompt = "Be rude."')
    lines = shell.run("verify", "chat.md", "--json").stdout
    return lines + shell.run("replay", "chat.md", "--requests", "--json").stdout


def test_the_problems_of_all_sample_chats_are_lines_of_the_schema(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["check", "--json", *map(str, CORPUS)]) == 1
    assert types_of(capsys.readouterr().out.splitlines()) == {"problem", "end"}


def test_a_waiting_call_is_printed_raw_and_readable(tmp_path: Path, forks: ForkServer) -> None:
    shell = Shell(tmp_path, forks)
    shell.chat.write_text(CHAT, encoding="utf-8")
    lines = [
        json.loads(line) for line in shell.run("respond", "chat.md", "--json").stdout.splitlines()
    ]
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
    validate(parsed, "chat")
    return parsed


def test_a_tree_has_each_parts_kind_and_lines(
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
def test_a_trees_parts_follow_one_another(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parsed = tree(path, capsys)
    answers = [answer for exchange in parsed["exchanges"] for answer in exchange["answers"]]
    questions = [exchange["question"] for exchange in parsed["exchanges"] if exchange["question"]]
    for parts in (
        parsed["preamble"],
        *(q["parts"] for q in questions),
        *(a["segments"] for a in answers),
        sorted([*questions, *answers], key=lambda turn: turn["line"]),
    ):
        lines = [
            number
            for part in parts
            if "line" in part
            for number in (part["line"], part["end_line"])
        ]
        assert lines == sorted(lines)
        assert all(number >= 1 for number in lines)
    assert all(problem["line"] >= 1 and problem["column"] >= 1 for problem in parsed["problems"])
