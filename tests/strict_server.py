"""The demo server of a test run, which refuses what the providers would refuse.

`python -m tests.strict_server LISTENER LIFE` inherits a listening socket, and a pipe that closes
when the tests end. It imports almost nothing before the first request, because many test runs have
none.
"""

import atexit
import os
import select
import socket
import subprocess
import sys
import threading
from pathlib import Path

ROOT = Path(__file__).parents[1]


def serve() -> int:
    """Start it for as long as this process lives, and return its port."""
    life, mine = os.pipe()
    # asyncio disables Nagle's delay only for sockets that name their protocol
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(2048)
        handles = (listener.fileno(), life)
        process = subprocess.Popen(
            [sys.executable, "-m", __name__, *map(str, handles)],
            cwd=ROOT,
            pass_fds=handles,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(life)
        atexit.register(process.wait)
        atexit.register(os.close, mine)  # first
        port: int = listener.getsockname()[1]
        return port


def main(listener: socket.socket, life: int) -> None:
    """Serve until the tests end."""
    if life in select.select([listener.fileno(), life], [], [])[0]:
        return
    import uvicorn

    from parley.demo.server import create_app
    from tests.strict import check

    threading.Thread(target=_end_with, args=(life,), daemon=True).start()
    config = uvicorn.Config(
        create_app(check=check),
        log_level="critical",
        lifespan="off",
        http="h11",
        ws="none",
        date_header=False,
    )
    uvicorn.Server(config).run(sockets=[listener])


def _end_with(life: int) -> None:
    os.read(life, 1)
    os._exit(0)


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]))
