"""A program in the place of Python: has a fork made of what it is started with, and is there as
long as it.

Imports nothing that takes time: it starts in ten milliseconds.
"""

import marshal
import os
import sys
from _signal import (  # type: ignore[import-not-found]
    SIG_DFL,
    SIGHUP,
    SIGINT,
    SIGKILL,
    SIGQUIT,
    SIGTERM,
    SIGUSR1,
    signal,
)
from _socket import AF_UNIX, SCM_RIGHTS, SOCK_STREAM, SOL_SOCKET, socket


def ask(
    connection: socket,
    arguments: list[str],
    environ: dict[str, str],
    folder: str,
    handles: tuple[int, ...],
) -> None:
    """Ask the server at the other end for a fork; it writes the fork's id, and how it ends, in
    two lines.
    """
    mask = os.umask(0)
    os.umask(mask)
    message = marshal.dumps((arguments, environ, folder, mask))
    rights = b"".join(handle.to_bytes(4, sys.byteorder) for handle in handles)
    connection.sendmsg([len(message).to_bytes(8)], [(SOL_SOCKET, SCM_RIGHTS, rights)])
    connection.sendall(message)


def main() -> None:
    """Play the fork for the process that started this one."""
    connection = socket(AF_UNIX, SOCK_STREAM)
    connection.connect(sys.argv[1])
    ask(connection, sys.argv[2:], dict(os.environ), os.getcwd(), (0, 1, 2))  # noqa: PTH109 - no pathlib here
    for number in (SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1):
        signal(number, lambda number, _: connection.send(bytes([number])))
    nothing = os.open(os.devnull, os.O_RDWR)
    for handle in (0, 1, 2):  # the fork's alone from here on: what it closes is closed
        os.dup2(nothing, handle)
    reply = b""
    while piece := connection.recv(64):
        reply += piece
    code = int(reply.split()[1])
    if code < 0:
        if -code != SIGKILL:
            signal(-code, SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main()
