"""A chat as messages of a provider's API, on one line of JSON: what training files and chats are made of.

Knows which parts of a chat are in them, and that they are what the wire formats make of it. Definitions of
tools are in no chat, so they are in none of the lines.
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
    Proposal,
    Text,
    Transcript,
)
from parley.models.encode import fit_body
from parley.models.formats import format_for
from parley.models.request import Request

_NO = frozenset(CHOICES) - YES
_ENDLESS = 2**62
"""Tokens of a window into which any chat fits."""

# "The per-line training example of a fine-tuning input file for chat models using the supervised method":
# `messages`, and `tools` and `parallel_tool_calls`, which may be missing (OpenAI's API description 2.3.0,
# FineTuneChatRequestInput, read 2026-11-23).
#
# "Each line in the JSONL file should be a JSON object with the following structure: {"system":
# "<optional_system_message>", "messages": [...]}. The first message must be from the "user". The last message
# must be from the "assistant". User and assistant messages must alternate. No extraneous keys are allowed."
# (platform.claude.com/cookbook/finetuning-finetuning-on-bedrock, read 2026-11-23)
_ANTHROPIC = "anthropic"


def message_line(transcript: Transcript, option: str) -> str:
    """The line of JSON for a chat, in the format of that name in the shell; "" where nothing was asked."""
    exchanges = _finished(transcript.exchanges)
    turns = tuple(map(_bare, history(Transcript(exchanges), len(exchanges) - 1, max_full_exchanges=None)))
    if not turns:
        return ""
    system = _system(transcript)
    request = Request(
        Transcript(exchanges), len(exchanges) - 1, "", "", system=system, window=_ENDLESS, wire_turns=turns
    )
    line: dict[str, Any] = {
        "messages": [_slim(message) for message in format_for(option).body(request)["messages"]]
    }
    if option == _ANTHROPIC and system.strip():
        line = {"system": system, **line}
    return json.dumps(fit_body(line), ensure_ascii=False)


def lacks(transcript: Transcript) -> Iterator[str]:
    """Notices of what a line cannot hold of a chat, or what providers do not take for training."""
    results = (p.result for e in transcript.exchanges for a in e.answers for p in a.proposals if p.result)
    returned = [attachment for result in results for attachment in result.attachments]
    asked_with = (p for e in transcript.exchanges if e.question for p in e.question.parts)
    pictures = [*returned, *(part for part in asked_with if isinstance(part, Attachment))]
    if any(not attachment.is_text for attachment in pictures):
        yield "pictures are replaced by words"
    if any(attachment.is_text for attachment in returned):
        yield "only the beginning of long results is included, as in the file"
    exchanges = _finished(transcript.exchanges)
    if exchanges != _finished(transcript.exchanges, with_waiting=True):
        yield "the last calls have no results yet, so the reply that made them is left out"
    if exchanges and not exchanges[-1].answers and exchanges[-1].question and exchanges[-1].question.text:
        yield "it ends with a question, but training data must end with an answer"


def _finished(exchanges: Sequence[Exchange], *, with_waiting: bool = False) -> tuple[Exchange, ...]:
    """The exchanges up to where something was said last: what is only begun below that is left out.

    Last rounds whose calls wait do not count, unless they are asked for: what came of them nobody knows.
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
    """An answer without last rounds whose calls wait."""
    replies = list(rounds(answer))
    while replies and not all(call.result or call.choice in _NO for call in replies[-1].proposals):
        replies.pop()
    return Answer(answer.agent, tuple(segment for reply in replies for segment in reply.segments))


def _says_something(answer: Answer) -> bool:
    return any(
        isinstance(segment, Proposal) or (isinstance(segment, Text) and bool(segment.text.strip()))
        for segment in answer.segments
    )


def _system(transcript: Transcript) -> str:
    """The system prompt, as far as the file says it."""
    keys = read_front_matter(transcript.front_matter).keys
    return "\n\n".join(filter(None, (keys.get("system_prompt"), keys.get("system_prompt+"))))


def _bare(turn: Turn) -> Turn:
    """A turn without what only a conversation that goes on has: thinking, and how to read on in a result."""
    if not isinstance(turn, ModelTurn):
        return turn
    calls = tuple(replace(outcome, whole=None) for outcome in turn.calls)
    return replace(turn, parts=tuple(p for p in turn.parts if isinstance(p, Text)), calls=calls, open=False)


def _slim(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message without the marks of a provider's cache; one block of text is the text itself.

    Texts side by side are one, with a blank line between them: who puts blocks together glues them.
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
