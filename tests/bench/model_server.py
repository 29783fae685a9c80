"""A chat-completions server for measurements. The user's last words choose the reply:

    N tokens                 this many, at once
    N tokens in S seconds    this many, evenly spaced
    N tokens in S seconds, first after M ms
                             the same, after a wait
    N calls                  a call to each round's only tool, N times, then a word

It prints its port, then a line of JSON for each request: its number, its time on the clock that all
of a machine's processes share (seconds, CLOCK_MONOTONIC), its connection's number, and its size.
After a spaced reply, it prints another line: the number of the answered request, and the time on
this clock at which it sent each token.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator
from functools import cache
from itertools import count
from typing import Any

CONNECTIONS, REQUESTS = count(1), count(1)
LIST = b'{"object":"list","data":[{"id":"bench","object":"model"}]}'
MODELS = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (
    len(LIST),
    LIST,
)


def chunk(delta: dict[str, Any], reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    payload = {"id": "x", "object": "chat.completion.chunk", "choices": [choice]}
    return b"data: " + json.dumps(payload).encode() + b"\n\n"


def word(number: int) -> bytes:
    """Lines of ten words in paragraphs of five lines, similar to prose."""
    end = "\n\n" if number % 50 == 49 else "\n" if number % 10 == 9 else " "
    return chunk({"content": f"word{number}{end}"})


def end(reason: str = "stop") -> bytes:
    return chunk({}, reason) + b"data: [DONE]\n\n"


@cache
def at_once(tokens: int) -> bytes:
    """Cached, so that a second reply of this length takes the server no time."""
    return b"".join(map(word, range(tokens))) + end()


async def reply(request: int, body: dict[str, Any]) -> AsyncIterator[bytes]:
    texts = [m["content"] for m in body["messages"] if m["role"] == "user"]
    text = texts[-1] if isinstance(texts[-1], str) else json.dumps(texts[-1])
    if asked := re.findall(r"(\d+) calls", text):
        last = max(n for n, m in enumerate(body["messages"]) if m["role"] == "user")
        rounds = sum(m["role"] == "tool" for m in body["messages"][last:])
        if rounds < int(asked[-1]):
            name = body["tools"][0]["function"]["name"]
            call = {"index": 0, "id": f"c{rounds}", "type": "function"}
            yield chunk({"tool_calls": [{**call, "function": {"name": name, "arguments": "{}"}}]})
            yield end("tool_calls")
            return
    spaced = r"(\d+) tokens(?: in (\d+) seconds(?:, first after (\d+) ms)?)?"
    numbers = re.findall(spaced, text)
    tokens, seconds, wait = numbers[-1] if numbers else ("1", "", "")
    if not seconds:
        yield at_once(int(tokens))
        return
    start, sent = time.monotonic() + int(wait or 0) / 1e3, list[float]()
    for number in range(int(tokens)):
        await asyncio.sleep(start + number * int(seconds) / int(tokens) - time.monotonic())
        sent.append(time.monotonic())
        yield word(number)
    print(json.dumps({"answered": request, "sent": sent}), flush=True)
    yield end()


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    connection = next(CONNECTIONS)
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
            if head.startswith(b"GET "):
                writer.write(MODELS)
                continue
            raw = await reader.readexactly(int(length[1])) if length else b"{}"
            at, request = time.monotonic(), next(REQUESTS)
            seen = {"number": request, "at": at, "connection": connection, "bytes": len(raw)}
            print(json.dumps(seen), flush=True)
            writer.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: "
                b"chunked\r\n\r\n"
            )
            async for data in reply(request, json.loads(raw)):
                writer.write(b"%x\r\n%s\r\n" % (len(data), data))
                await writer.drain()
            writer.write(b"0\r\n\r\n")
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main() -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=2**27)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
