"""Exports a chat as a provider's messages on one line of JSON, for training and other programs.

Knows which parts of a chat belong in the messages, which the wire formats produce. A chat does not
contain tool definitions, so the lines do not contain them either.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from parley.chat.front_matter import read_front_matter
from parley.chat.history import ModelTurn, Turn, history
from parley.chat.rounds import rounds
from parley.chat.transcript import (
    CHOICES,
    YES,
    Answer,
    Attachment,
    Exchange,
    Text,
    Transcript,
)
from parley.models.encode import fit_body
from parley.models.formats import format_for
from parley.models.request import Request

_NO = frozenset(CHOICES) - YES
_ENDLESS = 2**62
"""The size, in tokens, of a window in which any chat fits."""

# "The per-line training example of a fine-tuning input file for chat models using the supervised
# method": `messages`, and `tools` and `parallel_tool_calls`, which may be missing (OpenAI's API
# description 2.3.0, FineTuneChatRequestInput, read 2026-11-23).  "Each line in the JSONL file
# should be a JSON object with the following structure: {"system": "<optional_system_message>",
# "messages": [...]}. The first message must be from the "user". The last message must be from the
# "assistant". User and assistant messages must alternate. No extraneous keys are allowed."
# (platform.claude.com/cookbook/finetuning-finetuning-on-bedrock, read 2026-11-23)
_ANTHROPIC = "anthropic"


def message_line(transcript: Transcript, option: str) -> str:
    """A chat's JSON line, in the format that the shell calls `option`; "" if it has no content."""
    exchanges = _finished(transcript.exchanges)
    turns = tuple(
        map(_bare, history(Transcript(exchanges), len(exchanges) - 1, max_full_exchanges=None))
    )
    if not turns:
        return ""
    system = _system(transcript)
    request = Request(
        Transcript(exchanges),
        len(exchanges) - 1,
        "",
        "",
        system=system,
        window=_ENDLESS,
        wire_turns=turns,
    )
    line: dict[str, Any] = {
        "messages": [_slim(message) for message in format_for(option).body(request)["messages"]]
    }
    if option == _ANTHROPIC and system.strip():
        line = {"system": system, **line}
    return json.dumps(fit_body(line), ensure_ascii=False)


def message_problems(transcript: Transcript) -> Iterator[str]:
    """Notices about content that is not exported, or that providers reject for training."""
    calls = [p for e in transcript.exchanges for a in e.answers for p in a.calls]
    results = filter(None, (call.readable_result for call in calls))
    returned = [attachment for result in results for attachment in result.attachments]
    asked_with = (p for e in transcript.exchanges if e.question for p in e.question.parts)
    pictures = [*returned, *(part for part in asked_with if isinstance(part, Attachment))]
    if any(not attachment.is_text for attachment in pictures):
        yield "pictures are replaced with text"
    if any(attachment.is_text for attachment in returned):
        yield "only the beginning of long results is included, as in the file"
    if any(call.ran_by == "provider" for call in calls):
        yield "calls that a provider ran are left out"
    exchanges = _finished(transcript.exchanges)
    if exchanges != _finished(transcript.exchanges, with_waiting=True):
        yield "the last calls have no results yet, so the reply that made them is left out"
    if (
        exchanges
        and not exchanges[-1].answers
        and exchanges[-1].question
        and exchanges[-1].question.text
    ):
        yield "it ends with a question, but training data must end with an answer"


def _finished(exchanges: Sequence[Exchange], *, with_waiting: bool = False) -> tuple[Exchange, ...]:
    """The exchanges up to the last exchange with content; empty questions and answers are left out.

    Last rounds with waiting calls do not count unless `with_waiting` is set, because their outcome
    is unknown.
    """
    before = list(exchanges)
    while before:
        last = before.pop()
        answers = list(last.answers)
        while answers:
            answer = answers.pop() if with_waiting else _decided(answers.pop())
            if _says_something(answer):
                return (*before, Exchange(last.question, (*answers, answer)))
        if last.question and last.question.text.strip():
            return (*before, Exchange(last.question))
    return ()


def _decided(answer: Answer) -> Answer:
    """An answer without the last rounds whose calls are waiting."""
    replies = list(rounds(answer))
    while replies and not all(call.result or call.choice in _NO for call in replies[-1].proposals):
        replies.pop()
    return Answer(answer.agent, tuple(segment for reply in replies for segment in reply.segments))


def _says_something(answer: Answer) -> bool:
    return any(call.ran_by != "provider" for call in answer.calls) or any(
        isinstance(segment, Text) and segment.text.strip() for segment in answer.segments
    )


def _system(transcript: Transcript) -> str:
    """The part of the system prompt that is in the file."""
    keys = read_front_matter(transcript.front_matter).keys
    return "\n\n".join(filter(None, (keys.get("system_prompt"), keys.get("system_prompt+"))))


def _bare(turn: Turn) -> Turn:
    """A turn without thinking, and without the hint on how to read more of a long result."""
    if not isinstance(turn, ModelTurn):
        return turn
    calls = tuple(replace(outcome, whole=None) for outcome in turn.calls)
    return replace(
        turn, parts=tuple(p for p in turn.parts if isinstance(p, Text)), calls=calls, open=False
    )


def _slim(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message without a provider's cache marks; a single text block becomes plain text.

    Adjacent texts are joined with a blank line, because programs that join blocks do not add a
    separator.
    """
    content = message["content"]
    if isinstance(content, list):
        blocks = list(_with_whole_texts(content))
        is_text = len(blocks) == 1 and blocks[0]["type"] == "text"
        content = blocks[0]["text"] if is_text else blocks
    return {**message, "content": content}


def _with_whole_texts(blocks: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for is_text, run in groupby(blocks, lambda block: block["type"] == "text"):
        if is_text:
            yield {"type": "text", "text": "\n\n".join(block["text"] for block in run)}
        else:
            yield from ({k: v for k, v in block.items() if k != "cache_control"} for block in run)
