"""An HTTP server with planned faults: cut connections, silence, errors, nonsense."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.local_server import LocalServer


@dataclass(frozen=True)
class Forever:
    """The same bytes repeatedly, until the client disconnects."""

    piece: bytes


Part = bytes | Forever | Literal["cut", "reset", "silence"]
"""The parts of a response's body: bytes, a missing end, a reset connection, endless silence."""
BEAT_S = 0.01

STREAM = {"content-type": "text/event-stream"}


@dataclass(frozen=True)
class Response:
    """The response to one request."""

    parts: Sequence[Part] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: STREAM)


class FaultyServer(LocalServer):
    """Serves the responses in order, and repeats the last one. Keeps the requests."""

    def __init__(self, check: Callable[[Any], list[str]] = lambda _: []) -> None:
        """`check` returns the reasons to refuse a request with 400."""
        super().__init__()
        self.check = check
        self.script = list[Response]()
        self.requests = list[Any]()
        self.heads = list[str]()
        self.hung_up = asyncio.Event()
        """Set when a client has disconnected before the end of a response."""

    @property
    def paths(self) -> list[str]:
        """The paths of the requests."""
        return [head.split(" ", 2)[1] for head in self.heads]

    def plan(self, *script: Response) -> None:
        """Restart with these responses."""
        self.script, self.requests, self.heads = list(script), [], []
        self.hung_up.clear()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await self._answer(reader, writer):
            pass

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Serve one request; return False if the connection cannot be used again."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = next(
            (line for line in head.split("\r\n") if line.startswith("content-length:")), ":0"
        )
        self.heads.append(head)
        self.requests.append(
            json.loads(await reader.readexactly(int(length.split(":")[1])) or b"null")
        )
        if reasons := self.check(self.requests[-1]):
            body = json.dumps({"error": {"message": reasons[0]}}).encode()
            response = Response([body], 400, {"content-type": "application/json"})
        else:
            response = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        headers = {**response.headers, "transfer-encoding": "chunked"}
        lines = [
            f"HTTP/1.1 {response.status} x",
            *(f"{name}: {value}" for name, value in headers.items()),
        ]
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        return await self._send(response.parts, reader, writer)

    async def _send(
        self, parts: Sequence[Part], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        for part in parts:
            await writer.drain()
            match part:
                case "cut":
                    return False
                case "reset":
                    at_once = struct.pack("ii", 1, 0)
                    writer.get_extra_info("socket").setsockopt(
                        socket.SOL_SOCKET, socket.SO_LINGER, at_once
                    )
                    return False
                case "silence":
                    with suppress(ConnectionError):
                        await reader.read(1)  # until the client disconnects
                    self.hung_up.set()
                    return False
                case Forever(piece):
                    with suppress(ConnectionError):  # the client may close the connection any time
                        while not reader.at_eof():
                            writer.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                            await writer.drain()
                            with suppress(TimeoutError):
                                await asyncio.wait_for(reader.read(1), BEAT_S)
                    self.hung_up.set()
                    return False
                case b"":
                    pass  # an empty chunk would be the end
                case bytes():
                    writer.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True


# --- Streams that are well ------------------------------------------------------------------------


def event(payload: object) -> bytes:
    """One server-sent event."""
    return f"data: {json.dumps(payload, ensure_ascii=False)}\n\n".encode()


def _anthropic(*pieces: str) -> list[bytes]:
    delta = {"type": "content_block_delta", "index": 0}
    return [
        event({"type": "message_start", "message": {"usage": {"input_tokens": 3}}}),
        event(
            {
                "type": "content_block_start",
                "index": 0,
                "content_block": {"type": "text", "text": ""},
            }
        ),
        *(event({**delta, "delta": {"type": "text_delta", "text": piece}}) for piece in pieces),
        event({"type": "content_block_stop", "index": 0}),
        event(
            {
                "type": "message_delta",
                "delta": {"stop_reason": "end_turn"},
                "usage": {"output_tokens": 2},
            }
        ),
        event({"type": "message_stop"}),
    ]


def _chat(*pieces: str) -> list[bytes]:
    return [
        *(event({"choices": [{"index": 0, "delta": {"content": piece}}]}) for piece in pieces),
        event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
        b"data: [DONE]\n\n",
    ]


def _responses(*pieces: str) -> list[bytes]:
    delta = {"type": "response.output_text.delta", "output_index": 0}
    usage = {"input_tokens": 3, "output_tokens": 2}
    return [
        event({"type": "response.created", "response": {}}),
        event(
            {"type": "response.output_item.added", "output_index": 0, "item": {"type": "message"}}
        ),
        *(event({**delta, "delta": piece}) for piece in pieces),
        event(
            {"type": "response.output_item.done", "output_index": 0, "item": {"type": "message"}}
        ),
        event({"type": "response.completed", "response": {"status": "completed", "usage": usage}}),
    ]


SAYS = {"anthropic": _anthropic, "chat": _chat, "responses": _responses}
"""For each wire format, the parts of a stream with these pieces."""

BEGUN = {"anthropic": 3, "chat": 1, "responses": 3}
"""The number of parts up to the end of the first piece."""
