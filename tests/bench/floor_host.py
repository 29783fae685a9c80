"""The minimum for a remote plugin's host: one question, one read, one kept connection, one write
per frame.

`floor_host.py PORT`: the minimum cost of any such plugin; it is not usable as a plugin.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import pynvim

FRAME_S = 0.016


class Host:
    """Asks the model served on a port."""

    def __init__(self, nvim: pynvim.Nvim, port: int) -> None:
        self.nvim = nvim
        self.port = port
        self.connection: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self.tasks = set[asyncio.Task[None]]()

    def on_notification(self, _: str, arguments: list[Any]) -> None:
        """Send a buffer's whole text as a question."""
        lines = self.nvim.api.buf_get_lines(arguments[0], 0, -1, True)
        task = self.nvim.loop.create_task(self.ask(arguments[0], lines))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def ask(self, buf: int, lines: list[str]) -> None:
        if self.connection is None:
            self.connection = await asyncio.open_connection("127.0.0.1", self.port, limit=2**24)
        reader, writer = self.connection
        body = {
            "model": "m",
            "stream": True,
            "messages": [{"role": "user", "content": "\n".join(lines)}],
        }
        raw = json.dumps(body).encode()
        writer.write(
            b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: %d\r\n\r\n%s" % (len(raw), raw)
        )
        await reader.readuntil(b"\r\n\r\n")
        row, column, pending, written, left = len(lines) - 1, len(lines[-1].encode()), [], 0.0, b""

        def write(text: str) -> None:
            nonlocal row, column
            pieces = text.split("\n")
            self.nvim.api.buf_set_text(buf, row, column, row, column, pieces, async_=True)
            column = (column if len(pieces) == 1 else 0) + len(pieces[-1].encode())
            row += len(pieces) - 1

        while size := int(await reader.readline(), 16):
            data = await reader.readexactly(size)
            await reader.readexactly(2)
            *events, left = (left + data).split(b"\n\n")
            payloads = (json.loads(event[6:]) for event in events if event != b"data: [DONE]")
            pending += [payload["choices"][0]["delta"].get("content", "") for payload in payloads]
            if self.nvim.loop.time() - written > FRAME_S:
                write("".join(pending))
                pending, written = [], self.nvim.loop.time()
        await reader.readline()
        write("".join(pending) + "\n\n💬: ")


if __name__ == "__main__":
    nvim = pynvim.attach("stdio")
    host = Host(nvim, int(sys.argv[1]))
    nvim.run_loop(lambda *_: None, host.on_notification)
