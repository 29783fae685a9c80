"""Whatever a model, tools and a user do, the chat matches its requests and its own replies."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from parley import engine
from parley.chat.reader import parse
from parley.chat.rounds import last_notice
from parley.chat.transcript import Result, Text, ToolCall, Transcript
from parley.engine.ports import NoAttachments
from parley.errors import ModelError
from parley.models.events import Call, Finished, TextDelta, ThinkingDelta, ThinkingEnd
from parley.verification import RequestRecord, Verification, replay_chat, verify_chat
from tests.chats import TOOLS
from tests.defaults import limits_with
from tests.examples import examples
from tests.fakes import LoggedTools, RecordingModel, ScriptStep, Turns, says
from tests.ledgers import open_ledger

THOUGHT: list[ScriptStep] = [ThinkingDelta("hm"), ThinkingEnd("signature")]
texts = st.sampled_from(
    ["Yes.", "No.\n\n📝: no", "  💬: not a question\n\n", "a" * 900, "✓", "Yes.", ""]
)
names = st.sampled_from([*(name for name, _ in TOOLS.tools), "unknown"])
arguments = st.sampled_from(["{}", '{"query": "x"}', '{"query": "yy"}', "no"])
tool_calls = st.builds(
    lambda name, text, number: ToolCall(f"c{number}", name, text),
    names,
    arguments,
    st.integers(0, 2),
)
ends = st.sampled_from(
    [None, None, None, None, Finished("length"), ModelError("no", reason="it broke")]
)
replies = st.tuples(st.booleans(), texts, st.lists(tool_calls, max_size=2), ends)
results = st.sampled_from(
    [Result("ok", "fine"), Result("error", "bad"), Result("ok", "b" * 700), Result("ok", "")]
)
moves = st.sampled_from(["ya", "ya", "yA", "yn", "ask", "ask", "ask", "go on", "again"])


def reply_steps(thinks: bool, text: str, calls: Sequence[ToolCall], end: Any) -> list[ScriptStep]:
    """The content of a model's reply."""
    said: list[ScriptStep] = [*(THOUGHT if thinks else []), *([TextDelta(text)] if text else [])]
    if isinstance(end, BaseException):
        return [*said, end]
    return [*said, *map(Call, calls), end or Finished("tool_calls" if calls else "complete")]


async def conversation(
    script: Sequence[Any], results: Sequence[Result], user: Sequence[str], request: dict[str, Any]
) -> Turns:
    """A chat with a model that follows this script, tools with these results, and this user."""
    outcomes, model = (
        iter(results),
        RecordingModel(*(reply_steps(*r) for r in script), *[says("Done.")] * 40),
    )
    tools = LoggedTools(
        TOOLS, {tool.name: lambda _: next(outcomes, Result("ok", "")) for _, tool in TOOLS.tools}
    )
    turns = Turns("💬: first\n", model, tools, limits=limits_with(max_iterations=3))
    model.ledger = turns.ledger
    resolve = turns.resolve

    def narrow(transcript: Transcript) -> engine.ChatSettings:
        settings = resolve(transcript)
        return replace(settings, request=replace(settings.request, **request))

    turns.resolve = narrow
    end = await turns.run()
    for number, move in enumerate(user):
        if end.kind == "waiting" and move in ("ya", "yA", "yn"):
            observation = await engine.observe(turns.ports, turns.resolve)
            line = observation.undecided()[0].span.start
            await engine.choose(turns.ports, turns.resolve, line, engine.Press(move, "command"))  # type: ignore[arg-type]
        elif move == "ask" and turns.text.endswith("💬: \n"):
            turns.ask(f"question {number}")
        end = await (turns.regenerate() if move == "again" else turns.run())
    return turns


requests = st.fixed_dictionaries(
    {
        "window": st.sampled_from([None, 2_000, 900]),
        "max_full_exchanges": st.sampled_from([None, 1, 2]),
    }
)
conversations = st.tuples(
    st.lists(replies, min_size=3, max_size=8),
    st.lists(results, max_size=8),
    st.lists(moves, max_size=9),
    requests,
)


def outcome(turns: Turns, text: str) -> Verification:
    rows = turns.ledger.requests()
    return verify_chat(
        parse(text), [RequestRecord(r.at, json.loads(r.header), r.units, r.reply) for r in rows]
    )


@given(conversations)
@examples(30)
def test_an_unedited_chat_has_no_edits(story: Any) -> None:
    turns = asyncio.run(conversation(*story))
    result = outcome(turns, turns.text)
    assert result.edits == ()
    assert result.unknown == ()
    assert result.same == result.requests


answered = st.builds(
    lambda thinks, text, story: (
        [(thinks, text, [], None), *story[0]],
        story[1],
        ["ask", *story[2]],
        story[3],
    ),
    st.booleans(),
    st.sampled_from(["Yes.", "✓"]),
    conversations,
)
"""Conversations whose first question has a complete answer, which no later move replaces."""


@given(answered, st.randoms(use_true_random=False))
@examples(30)
def test_an_edit_of_a_models_text_is_reported(story: Any, chance: Any) -> None:
    turns = asyncio.run(conversation(*story))
    transcript, known = (
        parse(turns.text),
        {reply for row in turns.ledger.requests() for reply in row.reply},
    )
    spans = [
        segment.span
        for exchange in transcript.exchanges
        for answer in exchange.answers
        for segment in answer.segments
        if not last_notice(answer)
        if isinstance(segment, Text) and segment.text in ("Yes.", "✓")
    ]
    assert known
    assert outcome(turns, turns.text).same
    lines, span = turns.text.split("\n"), chance.choice(spans)
    number = next(n for n in range(span.start, span.end) if lines[n])
    lines[number] = "Edited."
    result = outcome(turns, "\n".join(lines))
    assert result.edits or result.unknown or result.requests < len(turns.ledger.requests())


@given(conversations)
@example(
    (
        [(False, "Yes.", [ToolCall("c0", "unknown", given)], None) for given in ("{}", "no")],
        [],
        [],
        {"window": None, "max_full_exchanges": None},
    )
)
@example(
    (
        [(False, "Yes.", [ToolCall("c0", "read_file", "{}")], None)] * 2,
        [],
        ["yn", "ya"],
        {"window": None, "max_full_exchanges": None},
    )
)
@example(
    (
        [
            (False, "Yes.", [ToolCall("c0", "read_file", "{}")], None),
            (False, "Yes.", [], Finished("length")),
            (
                False,
                "Yes.",
                [ToolCall("c0", "read_file", "{}"), ToolCall("c1", "unknown", "{}")],
                None,
            ),
            (False, "Yes.", [ToolCall("c0", "unknown", "{}")], None),
        ],
        [],
        ["ya"] * 3,
        {"window": None, "max_full_exchanges": None},
    )
)
@example(
    (
        [
            (False, "Yes.", [ToolCall("c0", "unknown", "{}")], None),
            (False, "Yes.", [ToolCall("c0", "unknown", "{}")], None),
            (False, "", [], None),
        ],
        [],
        ["ya"],
        {"window": None, "max_full_exchanges": None},
    )
)
@examples(30)
def test_a_finished_chat_follows_from_its_own_replies_and_results(story: Any) -> None:
    turns = asyncio.run(conversation(*story))
    transcript = parse(turns.text)
    other = open_ledger().chat("")
    result = asyncio.run(
        replay_chat(transcript, turns.resolve, other, NoAttachments().read, lambda *_: None)
    )
    assert result.diff == ""
