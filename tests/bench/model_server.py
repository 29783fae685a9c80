"""A chat-completions server for measuring: answers at once with as many tokens as the question names.

Prints its port, then a line with the time of each request on the clock that all processes share.
"""

from __future__ import annotations

import asyncio
import json
import re
import time

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


def event(text: str) -> bytes:
    chunk = {
        "id": "x",
        "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": {"content": text}}],
    }
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


END = b'data: {"id":"x","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


def reply(tokens: int) -> bytes:
    """Lines of ten words, a heading now and then, as prose is."""
    words = (f"word{n}" + ("\n" if n % 10 == 9 else " ") for n in range(tokens))
    return b"".join(map(event, words)) + END


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    body = json.loads(await reader.readexactly(int(length[1]))) if length else {}
    print(json.dumps({"at": time.monotonic()}), flush=True)
    asked = body["messages"][-1]["content"]
    number = re.search(r"(\d+) tokens", asked if isinstance(asked, str) else json.dumps(asked))
    writer.write(HEAD + reply(int(number[1]) if number else 1))
    await writer.drain()
    writer.close()


async def main() -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=2**26)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
