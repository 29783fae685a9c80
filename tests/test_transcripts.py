"""The corpus of chats, `transcripts/NAME.md`: each chat's problems, next step and requests.

Next to each chat, `NAME.problems` contains the output of `parley check` (no file: no output),
`NAME.step` the next step for its last exchange, and `NAME.requests` its messages in each wire
format. A new case needs no code: `PARLEY_EXPECT=1` in the environment rewrites these files, to be
read and committed.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from parley.chat.reader import parse
from parley.chat.transcript import Broken, Proposal, Transcript
from parley.chat.writer import render
from parley.policy.approval import LedgerView
from parley.policy.plan import (
    AskModel,
    AwaitChoices,
    AwaitQuestion,
    Complete,
    Decide,
    Resume,
    RunTools,
    Settle,
    Situation,
    StartAnswer,
    Step,
    Stop,
    next_step,
)
from tests.chats import TOOLS
from tests.defaults import limits_with
from tests.formats import CLAUDE, OPENAI, RESPONSES

CASES = sorted((Path(__file__).parent / "transcripts").glob("*.md"))
MESSAGES = {CLAUDE: "messages", OPENAI: "messages", RESPONSES: "input"}
EMPTY = "no exchange"


def read(path: Path) -> Transcript:
    """The transcript of a chat file; bytes that are not UTF-8 are preserved."""
    return parse(path.read_bytes().decode("utf-8", "surrogateescape"))


def corpus(name: str) -> Transcript:
    """A chat of the corpus, by its name."""
    return read(Path(__file__).parent / "transcripts" / f"{name}.md")


def expect(path: Path, text: str) -> None:
    """Compare a text with its file, or write the file on request. A missing file stands for ""."""
    if os.environ.get("PARLEY_EXPECT"):
        if text:
            path.write_text(text, encoding="utf-8")
        else:
            path.unlink(missing_ok=True)
    assert text == (path.read_text(encoding="utf-8") if path.exists() else "")


def step_text(transcript: Transcript) -> str:
    """The next step for the last exchange, without this machine's decisions, as lines."""
    if not transcript.exchanges:
        return EMPTY
    situation = Situation(
        transcript, len(transcript.exchanges) - 1, TOOLS, LedgerView(), limits_with()
    )
    return "\n".join(step_lines(next_step(situation)))


def step_lines(step: Step) -> list[str]:
    """A step's name, and one line for each of its items."""
    name = type(step).__name__
    match step:
        case AskModel(tools_on):
            return [name if tools_on else f"{name} without tools"]
        case Stop(reason):
            return [f"{name}: {reason}"]
        case Settle(results):
            return [
                name,
                *(f"  {p.call.id} [{result.status}] {result.body}" for p, result in results),
            ]
        case AwaitChoices(calls):
            return [name, *(f"  {_call_name(call)}" for call in calls)]
        case RunTools(proposals):
            return [name, *(f"  {_call_name(proposal)}" for proposal in proposals)]
        case Decide() | StartAnswer() | AwaitQuestion() | Resume() | Complete():
            return [name]


def _call_name(call: Proposal | Broken) -> str:
    return f"{call.call.id} {call.call.name}" if isinstance(call, Proposal) else "a broken call"


def requests_text(transcript: Transcript) -> str:
    """The chat's messages for its last exchange in each format, as readable JSON."""
    if not transcript.exchanges:
        return EMPTY
    at = len(transcript.exchanges) - 1
    bodies: dict[str, Any] = {
        wire.name: wire.body(wire.ask(transcript, at))[field] for wire, field in MESSAGES.items()
    }
    return json.dumps(bodies, ensure_ascii=False, indent=1)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_chat_has_these_problems_and_round_trips(path: Path) -> None:
    transcript = read(path)
    lines = [
        f"{p.line + 1}:{p.column + 1}: {p.severity}: {p.message}\n" for p in transcript.problems
    ]
    expect(path.with_suffix(".problems"), "".join(lines))
    assert parse(render(transcript)) == transcript


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_chat_has_this_next_step(path: Path) -> None:
    expect(path.with_suffix(".step"), step_text(read(path)) + "\n")


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_chat_has_these_requests(path: Path) -> None:
    expect(path.with_suffix(".requests"), requests_text(read(path)) + "\n")


def test_the_corpus_has_a_chat_of_each_kind() -> None:
    assert len(CASES) >= 30
