"""Replaces Python: requests a fork for its own arguments and environment, and lives as long as that
fork.

It avoids slow imports and starts in ten milliseconds.
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
    """Ask the server at the other end for a fork; it writes the fork's id and its exit status, each
    on a line.
    """
    mask = os.umask(0)
    os.umask(mask)
    message = marshal.dumps((arguments, environ, folder, mask))
    rights = b"".join(handle.to_bytes(4, sys.byteorder) for handle in handles)
    connection.sendmsg([len(message).to_bytes(8)], [(SOL_SOCKET, SCM_RIGHTS, rights)])
    connection.sendall(message)


def main() -> None:
    """Act as the fork for the process that started this program."""
    connection = socket(AF_UNIX, SOCK_STREAM)
    connection.connect(sys.argv[1])
    ask(connection, sys.argv[2:], dict(os.environ), os.getcwd(), (0, 1, 2))  # noqa: PTH109 - no pathlib here
    for number in (SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1):
        signal(number, lambda number, _: connection.send(bytes([number])))
    nothing = os.open(os.devnull, os.O_RDWR)
    for handle in (0, 1, 2):  # only in the fork: what it closes is closed
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
