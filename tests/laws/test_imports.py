"""A chat that is exported as messages and imported again says the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given

from parley.chat.history import ModelTurn, Turn, UserTurn, history
from parley.chat.reader import parse
from parley.chat.transcript import Exchange, Proposal, Text, Transcript
from parley.export.messages import message_line
from parley.imports.formats import chats
from parley.models.encode import arguments_object, wire_name
from tests.examples import examples
from tests.strategies import transcripts

FORMATS = ["openai", "anthropic"]
MUTE = """💬: a

🤖:

❓: `{"index":0,"id":"c","type":"function","function":{"name":"x","arguments":""}}`

🛠️: [x][c]

`Error: `

❓: `{"index":1,"id":"d","type":"function","function":{"name":"x","arguments":"{\\"_raw\\": \\"{}\\"}"}}`

🛠️: [x][d][error]

```
```
"""


def turns(transcript: Transcript) -> list[Turn]:
    """What is said in a chat, without what is only begun."""
    exchanges = list(transcript.exchanges)
    while exchanges and not says(exchanges[-1]):
        answers = exchanges[-1].answers[:-1]
        exchanges[-1:] = [Exchange(exchanges[-1].question, answers)] if answers else []
    last = exchanges[-1] if exchanges else None
    if last and last.answers and not any(map(is_said, last.answers[-1].segments)):
        exchanges[-1] = Exchange(
            last.question, tuple(a for a in last.answers if any(map(is_said, a.segments)))
        )
    return list(history(Transcript(tuple(exchanges)), len(exchanges) - 1, max_full_exchanges=None))


def is_said(segment: object) -> bool:
    return isinstance(segment, Proposal) or (isinstance(segment, Text) and bool(segment.text.strip()))


def says(exchange: Exchange) -> bool:
    asks = exchange.question is not None and bool(exchange.question.text.strip())
    return asks or any(is_said(segment) for answer in exchange.answers for segment in answer.segments)


def outline(transcript: Transcript, option: str) -> list[Any]:
    """Who says what; what one of them says twice in a row is one, as it is on the wire."""
    lines = list[Any]()
    for turn in turns(transcript):
        who = "user" if isinstance(turn, UserTurn) else "model"
        if turn.text and lines and lines[-1][0] == who:
            lines[-1] = (who, f"{lines[-1][1]}\n\n{turn.text}")
        elif turn.text:
            lines.append((who, turn.text))
        if isinstance(turn, ModelTurn):
            lines += (
                ("call", wire_name(o.call.name), arguments_object(o.call.arguments)) for o in turn.calls
            )
            lines += (result(o.status != "ok", o.content, option) for o in turn.calls)
    return lines


def result(is_error: bool, content: str, option: str) -> Any:
    if option == "openai":
        return "result", f"Error: {content}" if is_error else content
    return "result", is_error, content


def joined(line: str) -> Any:
    """A line in which texts that stand side by side are one."""
    value = json.loads(line)
    for message in value["messages"]:
        if isinstance(message["content"], list):
            blocks = list[Any]()
            for block in message["content"]:
                if blocks and blocks[-1]["type"] == block["type"] == "text":
                    blocks[-1] = {"type": "text", "text": f"{blocks[-1]['text']}\n\n{block['text']}"}
                else:
                    blocks.append(block)
            is_text = len(blocks) == 1 and blocks[0]["type"] == "text"
            message["content"] = blocks[0]["text"] if is_text else blocks
    return value


@pytest.mark.parametrize("option", FORMATS)
@examples(30)
@given(transcript=transcripts())
@example(transcript=parse(MUTE))
def test_an_exported_chat_that_is_imported_says_the_same(option: str, transcript: Transcript) -> None:
    line = message_line(transcript, option)
    assert bool(line) == bool(outline(transcript, option))
    if not line:
        return
    (chat,) = chats(line, option)
    again = parse(chat.text)
    assert outline(again, option) == outline(transcript, option)
    assert joined(message_line(again, option)) == joined(line)
    assert [problem for problem in again.problems if problem.severity == "error"] == []
