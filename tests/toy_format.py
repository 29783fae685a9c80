"""A complete invented wire format: an adapter, and its entry for the table.

It sends one text; lines of JSON come back as server-sent events, `{"text": …}` and finally
`{"done": true}`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from parley.chat.history import UserTurn
from parley.models import decoder
from parley.models.events import Event
from parley.models.fields import text
from parley.models.formats import SDK, Format
from parley.models.request import Request, tool_fields
from parley.tools.convert import Definition, shape
from parley.tools.convert import definition as mcp_definition


def request_body(request: Request) -> dict[str, Any]:
    turns = request.turns()
    texts = [turn.text for turn in turns if isinstance(turn, UserTurn)]
    return {"toy": request.model, "texts": texts, "stream": True} | tool_fields(
        request, turns, tool, False
    )


class Decoder(decoder.Decoder):
    """Text, and its end."""

    def _take(self, raw: Mapping[str, Any]) -> Iterator[Event]:
        yield from self._say(text(raw, "text"))
        if raw.get("done"):
            yield from self._conclude([], "complete", "")

    def _finish(self) -> Iterator[Event]:
        raise decoder.ended_early(self.provider)


def unstreamed(reply: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield {**reply, "done": True}


def tool(name: str, definition: Definition) -> dict[str, Any]:
    return shape(name, definition, "toy_schema")


def definition(shape: Mapping[str, Any]) -> dict[str, Any]:
    return mcp_definition(shape, "toy_schema")


TOY = Format(
    name="toy",
    kind="toy",
    option="toy",
    title="the toy format",
    sdk=SDK("openai", "AsyncOpenAI", "https://toys.invalid/v0"),
    path="/play",
    request_body=request_body,
    decoder=Decoder,
    unstreamed=unstreamed,
    tool=tool,
    definition=definition,
)
