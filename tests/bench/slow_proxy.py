"""A TCP proxy with latency: `slow_proxy.py PORT SECONDS` forwards to PORT and delays each byte by
this time.

It prints its own port. A new connection takes one round trip before any byte is forwarded, as with
a distant server.
"""

from __future__ import annotations

import asyncio
import sys


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seconds: float) -> None:
    loop = asyncio.get_running_loop()
    while data := await reader.read(65536):
        loop.call_later(seconds, writer.write, data)
    loop.call_later(seconds, writer.close)


async def main(port: int, trip_s: float) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(trip_s)
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
        pumps = pump(reader, far_writer, trip_s / 2), pump(far_reader, writer, trip_s / 2)
        await asyncio.gather(*pumps, return_exceptions=True)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), float(sys.argv[2])))
