"""Replies that come in one piece: as the payloads of the stream they would have been, for the same decoders.

For short replies that nobody watches come. Knows the outlines of the formats; the adapters know the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from parley.models.fields import sequence

Raw = Mapping[str, Any]


def unstreamed(body: Raw) -> dict[str, Any]:
    """A request whose reply shall come in one piece."""
    return {name: value for name, value in body.items() if name != "stream_options"} | {"stream": False}


def anthropic(message: Raw) -> Iterator[Raw]:
    """The payloads of a message."""
    yield {"type": "message_start", "message": message}
    for index, block in enumerate(sequence(message, "content")):
        yield {"type": "content_block_start", "index": index, "content_block": block}
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "message_delta", "delta": message, "usage": message.get("usage")}
    yield {"type": "message_stop"}


def openai_chat(completion: Raw) -> Iterator[Raw]:
    """The chunk that says all of a completion."""
    choices = [{**choice, "delta": choice.get("message")} for choice in sequence(completion, "choices")]
    yield {**completion, "choices": choices}


def openai_responses(response: Raw) -> Iterator[Raw]:
    """The payloads of a response."""
    for index, item in enumerate(sequence(response, "output")):
        yield {"type": "response.output_item.added", "output_index": index, "item": item}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": response}
