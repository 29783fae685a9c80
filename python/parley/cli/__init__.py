"""The command line: continues chats without an editor, and prints their content.

Each command reads its arguments, calls one function, and returns an exit code. This room makes no
decisions.
"""

from __future__ import annotations

import gc
import os
import sys

from parley.cli.exits import CTRL_C, FAILED

TYPE_CHECKING = False  # like `typing.TYPE_CHECKING`: import nothing until Ctrl-C is handled
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    if argv is None:  # our own process: do not scan the objects that imports create
        gc.set_threshold(200_000, 20, 50)
    try:
        try:
            return _main(argv)
        finally:
            if argv is None:
                _end_quietly()
    except KeyboardInterrupt:
        return CTRL_C


def _main(argv: Sequence[str] | None) -> int:
    _fill_descriptors()
    from parley.cli.terminal import complain, open_screen
    from parley.errors import ParleyError

    screen, code = open_screen(), FAILED
    words = sys.argv[1:] if argv is None else list(argv)
    screen.as_json = "--json" in words[: words.index("--") if "--" in words else None]
    try:
        from parley.cli.arguments import parser

        arguments = parser().parse_args(words)
        code = arguments.run(arguments)
    except ParleyError as error:
        complain(str(error))
    except SystemExit as leave:  # argparse has printed an error or help
        code = leave.code if isinstance(leave.code, int) else FAILED
    except Exception:  # noqa: BLE001 - no caller would report it
        from traceback import format_exc

        for line in format_exc().splitlines():
            screen.complain(line)
        complain("this is a bug in Parley: please report it with the lines above")
    except KeyboardInterrupt:
        code = CTRL_C
    return screen.end(code)


def _fill_descriptors() -> None:
    """Open descriptors 0, 1 and 2 if they are closed: our next open file would take their place."""
    try:
        while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
            pass
        os.close(number)
    except OSError:
        return


def _end_quietly() -> None:
    """Ignore Ctrl-C while the interpreter exits, because it is too late to report it."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.freeze()  # otherwise a last collection scans these objects: a fifth of a turn's time
