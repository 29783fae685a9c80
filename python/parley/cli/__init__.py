"""The command line: moves chats on without an editor, and shows what is in them.

Each command reads its arguments, calls one function, and returns an exit code; nothing is decided here.
"""

from __future__ import annotations

import gc
import os
import sys

from parley.cli.exits import CTRL_C, FAILED

TYPE_CHECKING = False  # of `typing`: nothing is imported before Ctrl-C is waited for
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code says how it ended."""
    if argv is None:  # a process of its own: an SDK makes a million values that stay, and need no look
        gc.set_threshold(50_000, 20, 50)
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
    except SystemExit as leave:  # argparse has said what is wrong, or helped
        code = leave.code if isinstance(leave.code, int) else FAILED
    except Exception:  # noqa: BLE001 - nothing is left above us to report it
        from traceback import format_exc

        for line in format_exc().splitlines():
            screen.complain(line)
        complain("this is a bug in Parley: please report it with the lines above")
    except KeyboardInterrupt:
        code = CTRL_C
    return screen.end(code)


def _fill_descriptors() -> None:
    """Let closed descriptors 0, 1 and 2 lead nowhere, or a file that we open would be our output."""
    try:
        while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
            pass
        os.close(number)
    except OSError:
        return


def _end_quietly() -> None:
    """A Ctrl-C while the interpreter ends comes too late to be told."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.freeze()  # else it looks through those values once more: a fifth of the time of a turn
